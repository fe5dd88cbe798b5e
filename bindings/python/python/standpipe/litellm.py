"""LiteLLM: a custom callback that reserves each call, and settles it with its usage.

    litellm.callbacks = [StandpipeCallback(agent="blog")]
    litellm.num_retries = 0

Every call draws on the pool of its provider and model (`openai/gpt-4o`), or on `pool`. LiteLLM logs
what a callback raises and makes the call all the same, so a call waits without end unless `timeout`
is stated. Where LiteLLM takes a client of httpx, `litellm.client_session = standpipe.httpx_client(
library="httpx")` also refuses calls.
"""

from __future__ import annotations

import threading
from typing import Any, Optional

from litellm.integrations.custom_logger import (  # type: ignore[import-not-found, unused-ignore]
    CustomLogger,
)

from ._errors import Error
from ._native import Lease
from ._retry import answer_of
from ._tap import Tap, default_tap

__all__ = ["StandpipeCallback"]


class StandpipeCallback(CustomLogger):  # type: ignore[misc, unused-ignore]
    """A callback for `litellm.callbacks`. The arguments are those of `reserve`."""

    def __init__(
        self, pool: Optional[str] = None, *, tap: Optional[Tap] = None, **call: Any
    ) -> None:
        super().__init__()
        self._pool, self._tap, self._call = pool, tap, call
        self._leases: dict[str, Lease] = {}
        self._lock = threading.Lock()

    @property
    def tap(self) -> Tap:
        return self._tap if self._tap is not None else default_tap()

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Any) -> None:
        """Reserves the call, and waits for its turn."""
        key = str(kwargs.get("litellm_call_id"))
        size = len(str(messages).encode())
        limit = (kwargs.get("optional_params") or {}).get("max_tokens")
        call = {"bytes": size, "model": str(model)[:128], "timeout": None, **self._call}
        if isinstance(limit, int):
            call.setdefault("max_output_tokens", limit)
        lease = self.tap.reserve(self._pool_of(model, kwargs), **call)
        with self._lock:
            self._leases[key] = lease

    def _pool_of(self, model: Any, kwargs: Any) -> str:
        if self._pool is not None:
            return self._pool
        parameters = kwargs.get("litellm_params") or {}
        provider = parameters.get("custom_llm_provider") or kwargs.get("custom_llm_provider")
        body = b'{"model":"' + str(model).split("/")[-1].encode() + b'"}'
        path = "/v1/messages" if provider == "anthropic" else "/v1/chat/completions"
        described = self.tap.describe("POST", "", path, body, str(provider or "openai"))
        pool = described.pool if described is not None else None
        return pool if pool is not None else f"{provider}/api"

    def _take(self, kwargs: Any) -> Optional[Lease]:
        with self._lock:
            return self._leases.pop(str(kwargs.get("litellm_call_id")), None)

    def log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any = None, end_time: Any = None
    ) -> None:
        lease = self._take(kwargs)
        if lease is None:
            return
        usage = getattr(response_obj, "usage", None)
        used = {
            "input_tokens": getattr(usage, "prompt_tokens", None),
            "output_tokens": getattr(usage, "completion_tokens", None),
        }
        try:
            lease.commit(**{unit: int(n) for unit, n in used.items() if n is not None})
        except Error:
            # The lease has ended, or the settlement is sent with the next step.
            pass

    def log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any = None, end_time: Any = None
    ) -> None:
        lease = self._take(kwargs)
        if lease is None:
            return
        error = kwargs.get("exception")
        answer = answer_of(error) if isinstance(error, BaseException) else None
        try:
            if answer is not None:
                lease.settle_by(*answer)
            else:
                lease.commit()
        except Error:
            pass

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any = None, end_time: Any = None
    ) -> None:
        self.log_success_event(kwargs, response_obj)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any = None, end_time: Any = None
    ) -> None:
        self.log_failure_event(kwargs, response_obj)
