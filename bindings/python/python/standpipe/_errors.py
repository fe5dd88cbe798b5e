"""The exceptions. Every one is a `standpipe.Error` and can be pickled."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime
    from typing import Any, Optional

__all__ = [
    "ConfigError",
    "Error",
    "InvalidArgument",
    "LeaseGone",
    "NeverFits",
    "QueueFull",
    "Refused",
    "StoreUnavailable",
    "Terminal",
    "Timeout",
]


class Error(Exception):
    """What every exception of this package derives from.

    The attributes of a refusal are there on every error, so that one `except standpipe.Error`
    can log them; they are `None` where they do not apply.
    """

    #: The pool that the error is about.
    pool: Optional[str] = None
    #: Why: one of the reasons that every face of Standpipe uses, for example `pause` or `limit`.
    reason: Optional[str] = None
    #: What a call that timed out was waiting for.
    waited_for: Optional[str] = None
    #: The limit, for example `requests per 1min`.
    limit: Optional[str] = None
    #: How many units were missing there.
    short_by: Optional[int] = None
    #: When the call may be made; a lower bound unless `exact`.
    until: Optional[datetime.datetime] = None
    #: Whether the call is admitted at `until` if nothing else happens.
    exact: bool = False
    #: Seconds from the refusal to `until`.
    retry_after: Optional[float] = None
    #: What must happen before the call is admitted, where no instant is known.
    waiting_for: Optional[str] = None
    #: The place in the queue, from 1.
    position: Optional[int] = None
    #: How many seconds the call waited.
    waited: Optional[float] = None
    #: The id of the lease that the error is about.
    lease: Optional[str] = None

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message)
        until = details.get("until")
        if isinstance(until, float):
            import datetime

            details["until"] = datetime.datetime.fromtimestamp(until, datetime.timezone.utc)
        self.__dict__.update(details)

    def __reduce__(self) -> Any:
        return _again, (type(self), str(self), dict(self.__dict__))


class Refused(Error):
    """The call may not be made now."""


class Timeout(Refused, TimeoutError):
    """The call was not admitted in time. `retry_after` and `until` tell when it could be."""


class NeverFits(Refused):
    """The call is larger than a limit ever allows. Make it smaller or raise the limit."""


class Terminal(Refused):
    """The provider stopped the pool: a spend cap or a daily quota. `tap.resume` lifts it."""


class QueueFull(Refused):
    """Too many calls are queued or in flight on the pool."""


class LeaseGone(Error):
    """The lease has ended: it was settled before, its time was up, or its owner ended."""


class StoreUnavailable(Error):
    """The store cannot be reached or used."""


class ConfigError(Error, ValueError):
    """The configuration is wrong, or the pool has no limits."""


class InvalidArgument(Error, ValueError):
    """An argument cannot be used; the message says what to use instead."""


_KINDS = {
    "timeout": Timeout,
    "never": NeverFits,
    "terminal": Terminal,
    "queue_full": QueueFull,
    "gone": LeaseGone,
    "store": StoreUnavailable,
    "config": ConfigError,
    "invalid": InvalidArgument,
}


def make(kind: str, message: str, details: Optional[dict[str, Any]] = None) -> Error:
    """Makes the exception of a kind. The extension module calls it."""
    return _KINDS[kind](message, **(details or {}))


def _again(kind: type[Error], message: str, details: dict[str, Any]) -> Error:
    return kind(message, **details)
