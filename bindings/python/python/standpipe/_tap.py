"""The tap: what a process opens once to reach its pools."""

from __future__ import annotations

import os
from _thread import allocate_lock

from . import _context, _native
from ._errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Optional, Union, overload

    from ._loop import Reserving
    from ._status import PoolStatus, Status

    Limits = Mapping[str, Mapping[str, Any]]
    Headers = Union[Mapping[str, str], Iterable[tuple[str, str]]]
    #: A pool by its name, or a pool and the arguments of its call.
    Call = Union[str, tuple[str, Mapping[str, Any]]]
else:

    def overload(function):
        return function


class Peek(Refused):
    """How a call would be decided now. It is true if the call would be admitted at once."""

    def __bool__(self) -> bool:
        return self.reason is None

    def __repr__(self) -> str:
        return "<Peek: admitted>" if self else f"<Peek: {self}>"


class Leases(list[_native.Lease]):
    """Several leases, which are settled together when their `with` block ends."""

    def __enter__(self) -> Leases:
        return self

    def __exit__(self, *_exception: object) -> None:
        for lease in self:
            lease.__exit__()


class Tap(_native.Tap):
    """The pools of one store. `standpipe.open` makes one; it may be used from any thread."""

    def __new__(
        cls,
        store: Optional[str] = None,
        *,
        config: Union[str, os.PathLike[str], None] = None,
        limits: Optional[Limits] = None,
        agent: Optional[str] = None,
        home: Union[str, os.PathLike[str], None] = None,
        virtual_clock: bool = False,
    ) -> Tap:
        for pool, own in (limits or {}).items():
            if not hasattr(own, "items"):
                raise TypeError(
                    f"the limits of `{pool}` must be a dict such as {{'parallel': 5}} or "
                    f"{{'requests': '60/min'}}, not {type(own).__name__}"
                )
        return super().__new__(
            cls,
            _context.current,
            store=os.fspath(store) if store is not None else None,
            config=config,
            limits={pool: dict(own) for pool, own in (limits or {}).items()},
            agent=agent or _context.default_agent(),
            home=home,
            priority=_context.default_priority(),
            virtual_clock=virtual_clock,
        )

    def areserve(self, pool: str, **call: Any) -> Reserving[_native.Lease]:
        """Reserves a call in an event loop: `async with tap.areserve(…) as lease:`, or `await` it.

        It takes the arguments of `reserve`. No thread waits; a cancelled wait leaves neither a
        ticket nor a lease.

        >>> import asyncio, standpipe
        >>> tap = standpipe.open("memory", limits={"doc/areserve": {"parallel": 1}})
        >>> async def ask(name):
        ...     async with tap.areserve("doc/areserve", agent=name) as lease:
        ...         return lease.agent
        >>> async def all():
        ...     return await asyncio.gather(*map(ask, ["a", "b", "c"]))
        >>> asyncio.run(all())
        ['a', 'b', 'c']
        """
        # Imported late: asyncio is most of the time that an import takes.
        from ._loop import Reserving, running_loop

        running_loop()
        return Reserving(self.begin_reserve(pool, **call))

    def reserve_all(self, calls: Iterable[Call], **common: Any) -> Leases:
        """Reserves several calls, all or none, and returns their leases in this order.

        Each call is a pool, or a pool and the arguments of its own. Two callers of the same pools
        never deadlock.

        >>> import standpipe
        >>> tap = standpipe.open("memory", limits={
        ...     "doc/model": {"parallel": 1}, "doc/search": {"parallel": 1}})
        >>> with tap.reserve_all(["doc/model", ("doc/search", {"agent": "blog"})]) as leases:
        ...     [lease.pool for lease in leases]
        ['doc/model', 'doc/search']
        """
        return Leases(self.reserve_each(_calls(calls), **common))

    def areserve_all(self, calls: Iterable[Call], **common: Any) -> Reserving[list[_native.Lease]]:
        """Does the same as `reserve_all` in an event loop."""
        from ._loop import Reserving, running_loop

        running_loop()
        return Reserving(self.begin_reserve_each(_calls(calls), **common))

    def peek(self, pool: str, **call: Any) -> Peek:
        """Returns how a call would be decided now. Nothing changes.

        >>> import standpipe
        >>> tap = standpipe.open("memory", limits={"doc/peek": {"parallel": 1}})
        >>> bool(tap.peek("doc/peek"))
        True
        >>> with tap.reserve("doc/peek"):
        ...     peek = tap.peek("doc/peek")
        >>> peek.reason, peek.limit, peek.waiting_for
        ('limit', 'parallel', 'a call in flight to end')
        """
        details = self.peek_details(pool, **call)
        if details is None:
            return Peek("it would be admitted", pool=pool)
        return Peek(details.pop("message"), **details)

    @overload
    def status(self) -> Status: ...
    @overload
    def status(self, pool: str) -> PoolStatus: ...
    def status(self, pool: Optional[str] = None) -> Union[Status, PoolStatus]:
        """Returns the status of a pool, or of all. It prints well, in notebooks too."""
        import json

        from ._status import PoolStatus, Status

        found = [PoolStatus(data) for data in json.loads(self.status_json(pool))]
        return Status(found) if pool is None else found[0]

    def observe(
        self,
        pool: str,
        headers: Headers,
        *,
        status: int = 200,
        body: Optional[bytes] = None,
        agent: Optional[str] = None,
    ) -> dict[str, Any]:
        """Reports an answer of the provider that belongs to no lease.

        Its limits are applied, and a refusal pauses the pool. Returns what it meant.

        >>> import standpipe
        >>> tap = standpipe.open("memory", limits={"github/doc": {"requests": "5000/h"}})
        >>> tap.observe("github/doc", {"retry-after": "60"}, status=429)["meaning"]
        'refused'
        >>> tap.peek("github/doc").reason
        'pause'
        """
        from collections.abc import Mapping

        pairs = headers.items() if isinstance(headers, Mapping) else headers
        listed = [(str(name), str(value)) for name, value in pairs]
        return self.observe_answer(pool, listed, status=status, body=body, agent=agent)

    def __repr__(self) -> str:
        return f"<Tap on {self.store} as {self.agent}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a tap cannot be pickled; open one in each process with standpipe.open(…), which is "
            "cheap: all of them share the ledger"
        )


def _calls(calls: Iterable[Call]) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(calls, (str, bytes)):
        raise TypeError("reserve_all takes a list of pools; use reserve for one pool")
    each = [(call, {}) if isinstance(call, str) else (call[0], dict(call[1])) for call in calls]
    return each


def open(
    store: Optional[str] = None,
    *,
    config: Union[str, os.PathLike[str], None] = None,
    limits: Optional[Limits] = None,
    agent: Optional[str] = None,
    home: Union[str, os.PathLike[str], None] = None,
) -> Tap:
    """Opens the tap. It is cheap: no pool is read and no thread is started.

    `store` is `file` (the default: a directory of this user), `file:/var/lib/standpipe`, `memory`
    or `redis://host`. `config` is a `standpipe.toml` to read instead of the one that the command
    line finds. `limits` gives pools limits from code. `agent` names the caller; the default is
    `$STANDPIPE_AGENT`, else the name of the script.

    >>> import standpipe
    >>> tap = standpipe.open("memory", limits={"web/api": {"requests": "30/min", "parallel": 5}})
    >>> with tap.reserve("web/api") as lease:
    ...     pass  # make the call
    >>> lease.is_settled
    True
    """
    return Tap(store, config=config, limits=limits, agent=agent, home=home)


_default: Optional[Tap] = None
_lock = allocate_lock()


def default_tap() -> Tap:
    """Returns the tap that decorators and transports use if they are given none."""
    global _default
    with _lock:
        if _default is None:
            _default = open()
        return _default
