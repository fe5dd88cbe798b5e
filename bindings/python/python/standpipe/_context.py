"""Who asks, where a call does not state it."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar

from . import _native
from ._errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Optional, Tuple

#: The agent and the priority of the current task or thread.
current: ContextVar[Optional[Tuple[Optional[str], Optional[str]]]] = ContextVar(
    "standpipe.agent", default=None
)


class agent:
    """Names the agent of every call inside: in this thread, in this task and its children.

    >>> import standpipe
    >>> tap = standpipe.open("memory", limits={"doc/agent": {"parallel": 5}})
    >>> with standpipe.agent("blog", priority="background"):
    ...     with tap.reserve("doc/agent") as lease:
    ...         print(lease.agent)
    blog
    """

    __slots__ = ("_name", "_priority", "_tokens")

    def __init__(self, name: Optional[str] = None, *, priority: Optional[str] = None) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of an agent must be a str, not {type(name).__name__}")
        self._name = name
        self._priority = checked_priority(priority)
        self._tokens: list[Token[Optional[Tuple[Optional[str], Optional[str]]]]] = []

    def __enter__(self) -> agent:
        name, priority = current.get() or (None, None)
        self._tokens.append(current.set((self._name or name, self._priority or priority)))
        return self

    def __exit__(self, *_exception: object) -> None:
        current.reset(self._tokens.pop())


def checked_priority(priority: Optional[str]) -> Optional[str]:
    if priority is None or priority in ("critical", "standard", "background"):
        return priority
    if not isinstance(priority, str):
        raise TypeError(f"a priority must be a str, not {type(priority).__name__}")
    raise InvalidArgument(
        f"there is no priority `{priority}`; use critical, standard or background"
    )


def default_agent() -> str:
    """Returns `$STANDPIPE_AGENT`, else a name made from that of the script."""
    stated = os.environ.get("STANDPIPE_AGENT")
    if stated:
        return stated
    script = sys.argv[0] if sys.argv else ""
    folder, name = os.path.split(script)
    if name == "__main__.py":
        name = os.path.basename(folder)
    if name.startswith("ipykernel"):
        name = "notebook"
    name = os.path.splitext(name)[0]
    return _native.agent_named_after(name if name not in ("", "-c", "-") else "python")


def default_priority() -> Optional[str]:
    """Returns `$STANDPIPE_PRIORITY`."""
    return checked_priority(os.environ.get("STANDPIPE_PRIORITY") or None)
