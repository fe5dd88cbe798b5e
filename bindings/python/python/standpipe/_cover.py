"""The lease that already covers a call, so that it is reserved once.

`with_retry` and `limited` reserve before they call a function. A transport inside that function
then draws on the same lease, instead of reserving the call again.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from contextvars import Token
    from typing import Any, Callable, Optional

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
        self.end()

    async def __aenter__(self) -> Cover:
        return self.__enter__()

    async def __aexit__(self, *_exception: object) -> None:
        _current.reset(self._token)
        await self.aend()

    def end(self) -> None:
        if not self.taken:
            self.lease.__exit__()

    async def aend(self) -> None:
        if not self.taken:
            await self.lease.aclose()


def generator(cover: Cover, body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Runs a generator. Its lease covers calls of its body, and not those that its caller makes
    between two items."""
    step: Callable[[Any], Any] = body.send
    sent = None
    try:
        while True:
            token = _current.set(cover)
            try:
                item = step(sent)
            except StopIteration as end:
                return end.value
            finally:
                _current.reset(token)
            try:
                step, sent = body.send, (yield item)
            except GeneratorExit:
                raise
            except BaseException as error:
                step, sent = body.throw, error
    finally:
        try:
            body.close()
        finally:
            cover.end()


async def agenerator(cover: Cover, body: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, None]:
    """Runs an asynchronous generator in the same way."""
    try:
        while True:
            token = _current.set(cover)
            try:
                item = await body.__anext__()
            except StopAsyncIteration:
                return
            finally:
                _current.reset(token)
            yield item
    finally:
        try:
            await body.aclose()
        finally:
            await cover.aend()


def take(tap: Tap, pool: str) -> Optional[Cover]:
    """Takes the lease that covers a call on this pool. Only the first call of a function gets it."""
    cover = _current.get()
    if cover is None or cover.taken or cover.tap is not tap:
        return None
    if cover.lease.pool != pool or cover.lease.is_settled:
        return None
    cover.taken = True
    return cover
