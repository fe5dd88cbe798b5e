"""`@standpipe.limited`: every call of a function draws on a pool."""

from __future__ import annotations

from ._cover import Cover, agenerator, generator
from ._tap import default_tap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable, Optional, TypeVar, Union

    from ._tap import Tap

    F = TypeVar("F", bound=Callable[..., Any])
    Cost = Union[Mapping[str, int], Callable[..., Mapping[str, int]], None]


def limited(
    pool: str, *, cost: Cost = None, tap: Optional[Tap] = None, **call: Any
) -> Callable[[F], F]:
    """Reserves every call of a function on a pool, and settles it when the function returns.

    It wraps functions, coroutines, generators and asynchronous generators; a generator holds its
    lease until it ends. `cost` is a dict of amounts, or a function of the call's own arguments
    that returns one. The other arguments are those of `reserve`. A transport of Standpipe inside
    draws on the same lease if it uses the same pool.

    >>> import standpipe
    >>> tap = standpipe.open("memory", limits={"doc/limited": {"tokens": "9k/min"}})
    >>> @standpipe.limited("doc/limited", tap=tap, cost=lambda text: {"tokens": len(text)})
    ... def ask(text):
    ...     return text.upper()
    >>> ask("hello")
    'HELLO'
    >>> tap.status("doc/limited").limits[0]["used"]
    5
    """

    def arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        amounts = cost(*args, **kwargs) if callable(cost) else cost
        return {**call, "cost": dict(amounts)} if amounts else call

    def own() -> Tap:
        return tap if tap is not None else default_tap()

    def decorate(function: F) -> F:
        import functools
        import inspect

        wrapper: Any
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                used = own()
                cover = Cover(used, await used.areserve(pool, **arguments(args, kwargs)))
                body = agenerator(cover, function(*args, **kwargs))
                try:
                    async for item in body:
                        yield item
                finally:
                    await body.aclose()

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                used = own()
                async with Cover(used, await used.areserve(pool, **arguments(args, kwargs))):
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                used = own()
                cover = Cover(used, used.reserve(pool, **arguments(args, kwargs)))
                return (yield from generator(cover, function(*args, **kwargs)))

        elif callable(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                used = own()
                with Cover(used, used.reserve(pool, **arguments(args, kwargs))):
                    return function(*args, **kwargs)

        else:
            raise TypeError(
                "@standpipe.limited wraps a function; write @standpipe.limited('pool/name')"
            )
        result: F = wrapper
        return result

    if not (cost is None or callable(cost) or hasattr(cost, "keys")):
        raise TypeError(
            "cost must be a dict of amounts by unit, or a function that returns one, not "
            f"{type(cost).__name__}"
        )
    if not isinstance(pool, str):
        raise TypeError("@standpipe.limited needs the name of a pool: @standpipe.limited('my/api')")
    return decorate
