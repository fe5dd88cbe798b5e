"""A middleware for the client of aiohttp, so that its calls go through the tap."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Callable

from . import _http, _otel
from ._errors import Error
from ._http import Exchange, Policy

__all__ = ["aiohttp_middleware"]


def aiohttp_middleware(*, tap: Any = None, **policy: Any) -> Callable[..., Any]:
    """Returns a middleware: `aiohttp.ClientSession(middlewares=[standpipe.aiohttp_middleware()])`.

    A refusal of the tap is raised as a `standpipe.Timeout`. The arguments are those of
    `Transport`.
    """
    own = Policy(tap, **policy)

    async def middleware(request: Any, handler: Callable[[Any], Any]) -> Any:
        host, path = request.url.authority, request.url.raw_path_qs
        call = own.describe(request.method, host, path)
        if call is not None:
            body = await _body(request)
            call = own.describe(request.method, host, path, body)
            # The usage is read from the answer, which must not be compressed.
            request.headers["accept-encoding"] = "identity"
        plan = own.plan(call, request.method, host, path)
        if plan is None:
            return await handler(request)
        changed = call.body_with_usage(body) if call is not None else None
        if changed is not None:
            await request.update_body(changed)
        pool, arguments = plan
        cover = own.cover(pool)
        lease = cover.lease if cover is not None else await own.tap.areserve(pool, **arguments)
        _otel.note(lease)
        exchange = Exchange(lease, changed is not None, cover)
        try:
            response = await handler(request)
            headers = list(response.headers.items())
            if response.status >= 400:
                await exchange.arefused(response.status, headers, await response.read())
                return response
            exchange.begin(response.status, headers)
        except BaseException as error:
            exchange.fail(error)
            raise
        whole = not _http.readable(headers)
        if "event-stream" in response.headers.get("content-type", ""):
            response.content = _Body(response.content, exchange, whole)
            return response
        try:
            exchange.feed(await response.read())
        finally:
            await exchange.asettle(whole)
        return response

    return middleware


async def _body(request: Any) -> bytes:
    """Returns the body of a request that is in memory."""
    body = request.body
    if isinstance(body, (bytes, bytearray)):
        return bytes(body)
    read = getattr(body, "as_bytes", None)
    return bytes(await read()) if read is not None else b""


class _Body:
    """A stream of events on its way to the caller: the reader of aiohttp, as far as it is used."""

    def __init__(self, content: Any, exchange: Exchange, whole: bool) -> None:
        self._content, self._exchange, self._whole = content, exchange, whole
        self._left = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    def at_eof(self) -> bool:
        return bool(self._content.at_eof()) and not self._left

    async def readany(self) -> bytes:
        if self._left:
            left, self._left = self._left, b""
            return left
        while True:
            chunk = await self._content.readany()
            if not chunk:
                await self._exchange.asettle(self._whole)
                return self._exchange.rest()
            known = self._exchange.feed(chunk)
            if known is not None:
                try:
                    await self._exchange.lease.aprogress(input_tokens=known)
                except Error:
                    pass
            shown = self._exchange.shown(chunk)
            if shown:
                return shown

    async def read(self, amount: int = -1) -> bytes:
        if amount < 0:
            parts: list[bytes] = []
            while True:
                part = await self.readany()
                if not part:
                    return b"".join(parts)
                parts.append(part)
        chunk = await self.readany()
        self._left = chunk[amount:] + self._left
        return chunk[:amount]

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        line = b""
        while True:
            chunk = await self.readany()
            if not chunk:
                return line
            line += chunk
            end = line.find(separator)
            if end >= 0:
                end += len(separator)
                self._left = line[end:] + self._left
                return line[:end]

    async def readline(self) -> bytes:
        return await self.readuntil()

    async def readchunk(self) -> tuple[bytes, bool]:
        return await self.readany(), True

    async def iter_any(self) -> AsyncIterator[bytes]:
        while True:
            chunk = await self.readany()
            if not chunk:
                return
            yield chunk

    async def iter_chunked(self, amount: int) -> AsyncIterator[bytes]:
        while True:
            chunk = await self.read(amount)
            if not chunk:
                return
            yield chunk

    async def iter_chunks(self) -> AsyncIterator[tuple[bytes, bool]]:
        async for chunk in self.iter_any():
            yield chunk, True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            line = await self.readline()
            if not line:
                return
            yield line
