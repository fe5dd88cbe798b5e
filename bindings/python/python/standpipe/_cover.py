"""The lease that already covers a call, so that it is reserved once.

`with_retry` and `limited` reserve before they call a function. A transport inside that function
then draws on the same lease, instead of reserving the call again.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any, Optional

    from ._native import Lease
    from ._tap import Tap

_current: ContextVar[Optional[Cover]] = ContextVar("standpipe.cover", default=None)


class Cover:
    """A lease for the calls of one function. Inside its `with` block a transport can take it.

    The block ends the lease at its estimate, unless a transport has taken it: that one settles it
    when its answer ends, which may be a stream that outlives the block.
    """

    __slots__ = ("_token", "lease", "meaning", "taken", "tap")

    def __init__(self, tap: Tap, lease: Lease) -> None:
        self.tap, self.lease = tap, lease
        #: Whether a transport settles the lease.
        self.taken = False
        #: What the answer meant by which a transport settled the lease.
        self.meaning: Optional[dict[str, Any]] = None

    def __enter__(self) -> Cover:
        self._token: Token[Optional[Cover]] = _current.set(self)
        return self

    def __exit__(self, *_exception: object) -> None:
        _current.reset(self._token)
        if not self.taken:
            self.lease.__exit__()

    async def __aenter__(self) -> Cover:
        return self.__enter__()

    async def __aexit__(self, *_exception: object) -> None:
        _current.reset(self._token)
        if not self.taken:
            await self.lease.aclose()


def take(tap: Tap, pool: str) -> Optional[Cover]:
    """Takes the lease that covers a call on this pool. Only the first call of a function gets it."""
    cover = _current.get()
    if cover is None or cover.taken or cover.tap is not tap:
        return None
    if cover.lease.pool != pool or cover.lease.is_settled:
        return None
    cover.taken = True
    return cover
