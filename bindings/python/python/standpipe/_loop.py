"""Waiting in an asyncio event loop, on the loop's own thread.

The library wakes a call by a byte in a pipe that the loop watches while a call waits. A cancelled
wait leaves neither a ticket nor a lease.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import Any, AsyncContextManager, Generator, Generic, TypeVar

from . import _native

T = TypeVar("T")


class _Driver:
    """The calls that wait in one loop. It must not refer to the loop, which it would keep alive."""

    __slots__ = ("__weakref__", "reactor", "waiting")

    def __init__(self) -> None:
        self.reactor = _native.Reactor()
        self.waiting: dict[int, tuple[_native.Pending, asyncio.Future[Any]]] = {}

    def add(
        self,
        loop: asyncio.AbstractEventLoop,
        number: int,
        pending: _native.Pending,
        future: asyncio.Future[Any],
    ) -> None:
        if not self.waiting:
            loop.add_reader(self.reactor.fileno(), self.wake, loop)
        self.waiting[number] = (pending, future)

    def remove(self, loop: asyncio.AbstractEventLoop, number: int) -> None:
        if self.waiting.pop(number, None) and not self.waiting and not loop.is_closed():
            loop.remove_reader(self.reactor.fileno())

    def wake(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in self.reactor.drain():
            pending, future = self.waiting.get(number, (None, None))
            # The task of a cancelled future drops its call.
            if pending is None or future is None or future.done():
                continue
            try:
                done = pending.poll(self.reactor, number)
            except BaseException as error:
                self.remove(loop, number)
                future.set_exception(error)
            else:
                if done is not None:
                    self.remove(loop, number)
                    future.set_result(done[0])


_drivers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Driver] = (
    weakref.WeakKeyDictionary()
)
_lock = threading.Lock()


def _forget_after_fork() -> None:
    global _drivers, _lock
    _drivers, _lock = weakref.WeakKeyDictionary(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _driver(loop: asyncio.AbstractEventLoop) -> _Driver:
    with _lock:
        driver = _drivers.get(loop)
        if driver is None:
            driver = _drivers[loop] = _Driver()
        return driver


def running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "there is no running asyncio event loop; await this inside `async def` under "
            "asyncio.run(…), or use the method without the leading `a` in synchronous code"
        ) from None


async def drive(pending: _native.Pending) -> Any:
    """Waits for a call of the library."""
    loop = running_loop()
    driver = _driver(loop)
    number = driver.reactor.number()
    done = pending.poll(driver.reactor, number)
    if done is not None:
        return done[0]
    future: asyncio.Future[Any] = loop.create_future()
    driver.add(loop, number, pending, future)
    try:
        return await future
    except BaseException:
        driver.remove(loop, number)
        pending.drop()
        # It was admitted in the moment in which its task was cancelled.
        if future.done() and not future.cancelled() and future.exception() is None:
            give_back(future.result())
        raise


def give_back(value: Any) -> None:
    """Cancels leases whose calls are never made."""
    for lease in value if isinstance(value, list) else [value]:
        if isinstance(lease, _native.Lease) and not lease.is_settled:
            lease.cancel()


class Reserving(Generic[T], AsyncContextManager[T]):
    """A call that waits to be admitted: `await` it, or use it with `async with`."""

    __slots__ = ("_began", "_pending", "_value")

    def __init__(self, pending: _native.Pending) -> None:
        self._pending = pending
        self._began = False

    def __await__(self) -> Generator[Any, None, T]:
        self._began = True
        return drive(self._pending).__await__()

    def __enter__(self) -> None:
        self._began = True
        raise TypeError(
            "use `async with tap.areserve(…)`, or `with tap.reserve(…)` in synchronous code"
        )

    def __exit__(self, *_exception: object) -> None:
        """Never reached; without it Python reports a missing method instead."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._began = True
        raise AttributeError(
            f"this call has no lease yet, so it has no `{name}`; write "
            "`lease = await tap.areserve(…)`, or `async with tap.areserve(…) as lease:`"
        )

    def __del__(self) -> None:
        if not self._began:
            import warnings

            text = "tap.areserve(…) was never awaited, so nothing was reserved"
            warnings.warn(text, RuntimeWarning, stacklevel=2, source=self)

    async def __aenter__(self) -> T:
        self._value: T = await self
        return self._value

    async def __aexit__(self, *_exception: object) -> None:
        value: Any = self._value
        for lease in value if isinstance(value, list) else [value]:
            await lease.aclose()
