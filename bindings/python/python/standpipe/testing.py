"""A tap for tests: in memory, on a clock that stands still until a test moves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncContextManager, Generator, Optional

from ._errors import Timeout
from ._native import Lease
from ._tap import Tap

if TYPE_CHECKING:
    from ._tap import Limits


class VirtualTap(Tap):
    """A tap with a virtual clock. Nothing waits in real time.

    A call that would wait moves the clock to the instant at which it is admitted. A call whose
    turn no instant brings, because another call must end first, is refused as if its timeout were
    over.

    >>> from standpipe.testing import VirtualTap
    >>> tap = VirtualTap(limits={"my/api": {"requests": "5/min"}})
    >>> for _ in range(4):
    ...     tap.reserve("my/api").commit()
    >>> tap.now()
    0.0
    >>> tap.reserve("my/api", timeout=120).waited > 0  # the margin leaves one of five unused
    False
    >>> int(tap.now())
    60
    """

    def __new__(cls, *, limits: Optional[Limits] = None, agent: Optional[str] = None) -> VirtualTap:
        tap = super().__new__(cls, limits=limits, agent=agent or "test", virtual_clock=True)
        assert isinstance(tap, VirtualTap)
        return tap

    def now(self) -> float:
        """Returns the seconds since the tap was opened."""
        return self.virtual_time()

    def advance(self, seconds: float) -> None:
        """Moves the clock."""
        self.advance_clock(seconds)

    def reserve(self, pool: str, /, **call: Any) -> Lease:
        timeout = call.pop("timeout", 300.0)
        ends = self.now() + (float("inf") if timeout is None else float(timeout))
        while True:
            try:
                return super().reserve(pool, **call, timeout=0)
            except Timeout as refused:
                wait = refused.retry_after
                if wait is None or self.now() + wait > ends:
                    raise
                # An instant is rounded up to a millisecond; the clock must move.
                self.advance(max(wait, 0.001))
                # A delay before a retry is over now. Asked for again it would begin again.
                call.pop("hold", None)

    def areserve(self, pool: str, **call: Any) -> Any:
        return _Reserving(self, pool, call)


class _Reserving(AsyncContextManager[Lease]):
    def __init__(self, tap: VirtualTap, pool: str, call: dict[str, Any]) -> None:
        self._tap, self._pool, self._call = tap, pool, call

    def __await__(self) -> Generator[Any, None, Lease]:
        return self._once().__await__()

    async def _once(self) -> Lease:
        return self._tap.reserve(self._pool, **self._call)

    async def __aenter__(self) -> Lease:
        self._lease = await self
        return self._lease

    async def __aexit__(self, *_exception: Any) -> None:
        self._lease.__exit__()
