"""LangChain: a rate limiter for chat models, and a callback that settles their calls.

    limiter = StandpipeRateLimiter("anthropic/sonnet", agent="blog")
    model = ChatAnthropic(model=…, max_retries=0, rate_limiter=limiter, callbacks=[limiter.callback])

The limiter reserves a call before the model is called. The callback settles it with the usage that
the model reports; without the callback each call settles at its estimate when the next one begins.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Optional

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.rate_limiters import BaseRateLimiter

from ._errors import Error, Timeout
from ._native import Lease
from ._retry import answer_of
from ._tap import Tap, default_tap

__all__ = ["StandpipeCallback", "StandpipeRateLimiter"]


class StandpipeRateLimiter(BaseRateLimiter):
    """A rate limiter of LangChain on a pool. The arguments are those of `reserve`."""

    def __init__(self, pool: str, *, tap: Optional[Tap] = None, **call: Any) -> None:
        self._pool, self._tap, self._call = pool, tap, call
        self._leases: deque[Lease] = deque()
        self._lock = threading.Lock()
        #: Settles the calls with their usage.
        self.callback: StandpipeCallback = StandpipeCallback(self)

    @property
    def tap(self) -> Tap:
        return self._tap if self._tap is not None else default_tap()

    def acquire(self, *, blocking: bool = True) -> bool:
        call = self._call if blocking else {**self._call, "timeout": 0}
        try:
            self._add(self.tap.reserve(self._pool, **call))
        except Timeout:
            if blocking:
                raise
            return False
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        call = self._call if blocking else {**self._call, "timeout": 0}
        try:
            self._add(await self.tap.areserve(self._pool, **call))
        except Timeout:
            if blocking:
                raise
            return False
        return True

    def _add(self, lease: Lease) -> None:
        with self._lock:
            if not self.callback.is_used:
                # Without the callback the end of a call is unknown.
                self._leases.clear()
            self._leases.append(lease)

    def take(self) -> Optional[Lease]:
        """Returns the lease of the oldest call that is not settled."""
        with self._lock:
            return self._leases.popleft() if self._leases else None


class StandpipeCallback(BaseCallbackHandler):
    """Settles the calls that a `StandpipeRateLimiter` admitted."""

    def __init__(self, limiter: StandpipeRateLimiter) -> None:
        self._limiter = limiter
        self.is_used: bool = False

    def on_chat_model_start(self, *_args: Any, **_kwargs: Any) -> None:
        self.is_used = True

    def on_llm_start(self, *_args: Any, **_kwargs: Any) -> None:
        self.is_used = True

    def on_llm_end(self, response: Any, **_kwargs: Any) -> None:
        lease = self._limiter.take()
        if lease is None:
            return
        try:
            lease.commit(**_usage(response))
        except Error:
            # The lease has ended, or the settlement is sent with the next step.
            pass

    def on_llm_error(self, error: BaseException, **_kwargs: Any) -> None:
        lease = self._limiter.take()
        if lease is None:
            return
        answer = answer_of(error)
        try:
            if answer is not None:
                lease.settle_by(*answer)
            else:
                lease.commit()
        except Error:
            pass


def _usage(response: Any) -> dict[str, int]:
    """Returns what a response of LangChain says that its call used."""
    for generations in getattr(response, "generations", []):
        for generation in generations:
            usage = getattr(getattr(generation, "message", None), "usage_metadata", None)
            if usage:
                return {unit: int(usage[unit]) for unit in ("input_tokens", "output_tokens")}
    return {}
