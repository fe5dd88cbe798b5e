"""What the HTTP integrations share: which pool a request draws on, and how its answer settles it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Optional

from . import _cover
from ._context import checked_priority
from ._errors import ConfigError, Error, NeverFits, QueueFull, StoreUnavailable
from ._cover import Cover
from ._native import Answer, Call, Lease, StreamFilter
from ._tap import Tap, default_tap

#: Exceptions of HTTP clients after which nothing was sent.
_NOT_SENT = {
    "ConnectError",
    "ConnectTimeout",
    "PoolTimeout",
    "UnsupportedProtocol",
    "LocalProtocolError",
    "ProxyError",
    "ClientConnectorError",
    "ConnectionTimeoutError",
    "NewConnectionError",
}


class Policy:
    """Who calls through a client, and what its calls draw on."""

    def __init__(
        self,
        tap: Optional[Tap] = None,
        *,
        agent: Optional[str] = None,
        priority: Optional[str] = None,
        pool: Optional[str] = None,
        provider: Optional[str] = None,
        wait: Optional[float] = None,
        task: Optional[str] = None,
        cost: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self._tap = tap
        self._pool = pool
        self._provider = provider
        stated = {
            "agent": agent,
            "priority": checked_priority(priority),
            "timeout": wait,
            "task": task,
            "cost": dict(cost) if cost else None,
        }
        self._call = {name: value for name, value in stated.items() if value is not None}

    @property
    def tap(self) -> Tap:
        if self._tap is None:
            self._tap = default_tap()
        return self._tap

    def describe(self, method: str, host: str, path: str, body: bytes = b"") -> Optional[Call]:
        return self.tap.describe(method, host, path, body, self._provider)

    def plan(
        self, call: Optional[Call], method: str, host: str, path: str
    ) -> Optional[tuple[str, dict[str, Any]]]:
        """Returns the pool of a request and the arguments of its reserve.

        `None` if it uses no quota: it is no call of a model, and the client states no pool.
        """
        pool = self._pool or (call.pool if call is not None else None)
        if pool is None:
            if self._provider is not None or self.tap.provider_at(host) is not None:
                return None
            raise ConfigError(
                f"{method} {host}{path.split('?')[0]} draws on no known pool; name one with "
                "pool='provider/scope', or the format of the server with provider='openai'"
            )
        if call is None:
            return pool, self._call
        return pool, {**self._call, "call": call}

    def cover(self, pool: str) -> Optional[Cover]:
        """Returns the lease that `with_retry` or `limited` reserved for the call, if any."""
        return _cover.take(self.tap, pool)


class Exchange:
    """A call that was admitted, and the answer that settles it while it passes."""

    __slots__ = ("answer", "cover", "filter", "lease", "reported")

    def __init__(self, lease: Lease, filters: bool, cover: Optional[Cover]) -> None:
        self.lease = lease
        self.cover = cover
        self.filter = StreamFilter() if filters else None
        self.answer: Optional[Answer] = None
        self.reported = False

    def refused(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Settles the call by the answer of an error."""
        self._means(self.lease.settle_by(status, headers, body[:MAX_ERROR]))

    async def arefused(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self._means(await self.lease.asettle_by(status, headers, body[:MAX_ERROR]))

    def _means(self, meaning: dict[str, Any]) -> None:
        if self.cover is not None:
            self.cover.meaning = meaning

    def begin(self, status: int, headers: list[tuple[str, str]]) -> None:
        """Reads the head of the answer."""
        self.answer = self.lease.read(status, headers)
        if not any(
            name.lower() == "content-type" and "event-stream" in value for name, value in headers
        ):
            self.filter = None

    def feed(self, chunk: bytes) -> Optional[int]:
        """Reads bytes of the body. Returns the input of the call when it becomes known."""
        if self.answer is None:
            return None
        self.answer.feed(chunk)
        if self.reported:
            return None
        known = self.answer.known_input
        self.reported = known is not None
        return known

    def shown(self, chunk: bytes) -> bytes:
        """Returns what of the bytes the caller gets."""
        return self.filter.pass_on(chunk) if self.filter is not None else chunk

    def rest(self) -> bytes:
        return self.filter.finish() if self.filter is not None else b""

    def settle(self, whole: bool = False) -> None:
        """Ends the call with what the answer stated. What was settled before stays so."""
        if self.lease.is_settled or self.answer is None:
            return
        try:
            self.lease.answered(self.answer, whole=whole)
        except Error:
            # The lease has ended, or the settlement is sent with the next step.
            pass

    async def asettle(self, whole: bool = False) -> None:
        if self.lease.is_settled or self.answer is None:
            return
        try:
            await self.lease.aanswered(self.answer, whole=whole)
        except Error:
            pass

    def fail(self, error: BaseException) -> None:
        """Ends a call without an answer: cancelled if it was never sent, else at its estimate."""
        if self.lease.is_settled:
            return
        try:
            if any(kind.__name__ in _NOT_SENT for kind in type(error).__mro__):
                self.lease.cancel()
            else:
                self.lease.commit()
        except Error:
            pass


def refusal(call: Optional[Call], error: Error) -> Optional[tuple[int, dict[str, str], bytes]]:
    """Returns a refusal as an answer in the provider's own format, so that SDKs raise theirs."""
    if call is None:
        return None
    status = 429
    if isinstance(error, NeverFits):
        status = 422
    elif isinstance(error, (QueueFull, StoreUnavailable)):
        status = 503
    elif isinstance(error, ConfigError):
        return None
    body = call.refusal(status, str(error))
    if body is None:
        return None
    headers = {
        "content-type": "application/json",
        "x-standpipe-origin": "ledger",
        "x-should-retry": "false",
    }
    if error.reason:
        headers["x-standpipe-reason"] = error.reason
    if error.position is not None:
        headers["x-standpipe-position"] = str(error.position)
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    return status, headers, body.encode()


def readable(headers: list[tuple[str, str]]) -> bool:
    """Whether the body is not compressed, so that it can be read as it passes."""
    return not any(
        name.lower() == "content-encoding" and value.strip().lower() not in ("", "identity")
        for name, value in headers
    )


#: Larger bodies of errors are not read to the end.
MAX_ERROR = 64 * 1024
