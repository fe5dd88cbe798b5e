"""`with_retry`: the one retry layer. Switch the retries of SDKs off (`max_retries=0`)."""

from __future__ import annotations

import time

from ._cover import Cover
from ._errors import Error
from ._tap import default_tap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from typing import Any, Callable, Optional, TypeVar

    from ._native import Lease
    from ._tap import Tap

    T = TypeVar("T")

#: The waits after a failure other than quota: half a second, then twice as long each time.
_FIRST, _LONGEST = 0.5, 8.0


class NotServed(Error):
    """The call was not served. `__cause__` is why, `last` the exception of the last try."""

    last: Optional[BaseException] = None
    tries: int = 0


class _Tries:
    """A call on its way through its tries."""

    def __init__(self, timeout: float, call: dict[str, Any]) -> None:
        self.ends = time.monotonic() + timeout
        self.call = call
        self.count = 0
        self.wait = 0.0
        self.lease: Optional[str] = None
        self.last: Optional[BaseException] = None

    def next(self) -> dict[str, Any]:
        self.count += 1
        left = max(0.0, self.ends - time.monotonic())
        call = {**self.call, "timeout": left}
        if self.lease is not None:
            call["retry_of"] = self.lease
        if self.wait:
            call["hold"] = self.wait
        return call

    def after(self, lease: Lease, error: BaseException, meaning: Mapping[str, Any]) -> bool:
        """Returns whether the call is tried again."""
        self.lease, self.last = lease.id, error
        if meaning["meaning"] == "refused":
            # The ledger knows how long to wait: the next reserve waits for it.
            self.wait = 0.0
            return bool(meaning["kind"] != "terminal")
        self.wait = min(max(2 * self.wait, _FIRST), _LONGEST)
        return bool(meaning.get("transient"))

    def failed(self, why: Error) -> NotServed:
        tries = "1 try" if self.count <= 2 else f"{self.count - 1} tries"
        details = {**why.__dict__, "last": self.last, "tries": self.count - 1}
        return NotServed(f"not served in {tries}: {why}", **details)


def answer_of(error: BaseException) -> Optional[tuple[int, list[tuple[str, str]], bytes]]:
    """Returns the answer that an exception of an HTTP client or an SDK carries."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    status = status or getattr(error, "status_code", None) or getattr(error, "status", None)
    if not isinstance(status, int):
        return None
    headers = getattr(response, "headers", None) or getattr(error, "headers", None) or {}
    listed = [(str(name), str(value)) for name, value in dict(headers).items()]
    try:
        body = getattr(response, "content", b"")
    except Exception:
        body = b""
    return status, listed, body if isinstance(body, bytes) else b""


def _settle(cover: Cover, error: Exception) -> Mapping[str, Any]:
    """Settles the lease of a call that failed, and returns what its failure means."""
    lease = cover.lease
    if cover.meaning is not None:
        return cover.meaning
    if lease.is_settled and not cover.taken:
        # The function has settled it, so it regards the call as done.
        return {"meaning": "failed", "transient": False}
    if not lease.is_settled:
        answer = answer_of(error)
        if answer is not None:
            return lease.settle_by(*answer)
        lease.commit()
    broken = isinstance(error, (ConnectionError, TimeoutError)) or any(
        kind.__name__ in ("TransportError", "APIConnectionError", "ClientConnectionError")
        for kind in type(error).__mro__
    )
    return {"meaning": "failed", "transient": broken}


def with_retry(
    pool: str,
    function: Callable[[Lease], T],
    *,
    timeout: float = 300.0,
    tap: Optional[Tap] = None,
    **call: Any,
) -> T:
    """Makes a call and retries it within `timeout` and within the pool's retry budget.

    `function` gets the lease and makes the call. What it raises is read as an answer of the
    provider: a 429 pauses every process on the pool, a broken connection or a 5xx is retried
    after a while, everything else is raised as it is. A terminal answer is never retried.
    If the call goes through a transport of Standpipe on the same pool, that transport settles the
    lease with what the answer states, and nothing is reserved twice.

    >>> import standpipe
    >>> tap = standpipe.open("memory", limits={"doc/retry": {"parallel": 5}})
    >>> answers = iter([ConnectionError("reset"), "done"])
    >>> def call(lease):
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> standpipe.with_retry("doc/retry", call, tap=tap)
    'done'
    """
    tap = tap if tap is not None else default_tap()
    tries = _Tries(timeout, call)
    while True:
        try:
            lease = tap.reserve(pool, **tries.next())
        except Error as why:
            if tries.last is None:
                raise
            raise tries.failed(why) from tries.last
        with Cover(tap, lease) as cover:
            try:
                answer = function(lease)
                if hasattr(answer, "__await__"):
                    getattr(answer, "close", lambda: None)()
                    raise TypeError("this function is asynchronous; use `await awith_retry(…)`")
                return answer
            except Error:
                raise
            except Exception as error:
                if not tries.after(lease, error, _settle(cover, error)):
                    raise


async def awith_retry(
    pool: str,
    function: Callable[[Lease], Awaitable[T]],
    *,
    timeout: float = 300.0,
    tap: Optional[Tap] = None,
    **call: Any,
) -> T:
    """Does the same as `with_retry` for a coroutine function."""
    tap = tap if tap is not None else default_tap()
    tries = _Tries(timeout, call)
    while True:
        try:
            lease = await tap.areserve(pool, **tries.next())
        except Error as why:
            if tries.last is None:
                raise
            raise tries.failed(why) from tries.last
        async with Cover(tap, lease) as cover:
            try:
                return await function(lease)
            except Error:
                raise
            except Exception as error:
                if not tries.after(lease, error, _settle(cover, error)):
                    raise
