"""A shared rate limiter for all processes that use one API key.

Every process, worker and agent that uses a key reserves each call here *before* making it, and
settles it afterwards. Together they stay under the provider's limits, without a server.

>>> import standpipe
>>> tap = standpipe.open("memory", limits={"my/api": {"requests": "60/min", "tokens": "9k/min"}})
>>> with tap.reserve("my/api", agent="blog", tokens=1200, timeout=30) as lease:
...     lease.commit(tokens=900)  # what the call used; the rest goes back at once
>>> tap.status("my/api").limits[1]["used"]
900
"""

from __future__ import annotations

from ._context import agent
from ._errors import (
    ConfigError,
    Error,
    InvalidArgument,
    LeaseGone,
    NeverFits,
    QueueFull,
    Refused,
    StoreUnavailable,
    Terminal,
    Timeout,
)
from ._limited import limited
from ._native import Lease
from ._retry import NotServed, awith_retry, with_retry
from ._tap import Leases, Peek, Tap, default_tap, open

# `typing` is a large part of the time that an import takes. Only type checkers need it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._aiohttp import aiohttp_middleware
    from ._httpx import AsyncTransport, Transport, httpx_async_client, httpx_client
    from ._requests import RequestsAdapter, requests_session
    from ._status import PoolStatus, Status

__all__ = [
    "AsyncTransport",
    "ConfigError",
    "Error",
    "InvalidArgument",
    "Lease",
    "LeaseGone",
    "Leases",
    "NeverFits",
    "NotServed",
    "Peek",
    "PoolStatus",
    "QueueFull",
    "Refused",
    "RequestsAdapter",
    "Status",
    "StoreUnavailable",
    "Tap",
    "Terminal",
    "Timeout",
    "Transport",
    "agent",
    "aiohttp_middleware",
    "awith_retry",
    "default_tap",
    "httpx_async_client",
    "httpx_client",
    "limited",
    "open",
    "requests_session",
    "with_retry",
]

#: What is imported when it is first used: it needs another package, or few programs need it.
_LATER = {
    "AsyncTransport": "_httpx",
    "Transport": "_httpx",
    "httpx_async_client": "_httpx",
    "httpx_client": "_httpx",
    "RequestsAdapter": "_requests",
    "requests_session": "_requests",
    "aiohttp_middleware": "_aiohttp",
    "PoolStatus": "_status",
    "Status": "_status",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
