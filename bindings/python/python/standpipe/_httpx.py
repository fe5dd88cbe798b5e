"""Transports for httpx and httpx2, and so for every SDK that is built on them.

A transport reserves each call before it is sent, reads the answer while it passes, and settles the
call with what it used. The caller gets the same bytes as without it.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any, Optional

from . import _http, _otel
from ._errors import Error
from ._http import Exchange, Policy

__all__ = ["AsyncTransport", "Transport", "httpx_async_client", "httpx_client"]


def _library(stated: Any = None) -> ModuleType:
    """Returns the library to use: the stated one, else httpx2, else httpx."""
    if isinstance(stated, ModuleType):
        return stated
    for name in [stated] if stated else ["httpx2", "httpx"]:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("neither httpx2 nor httpx is installed; run `pip install httpx`")


def _library_of(value: Any) -> ModuleType:
    """Returns the library that an object belongs to."""
    return importlib.import_module(type(value).__module__.split(".")[0])


class _Sent:
    """What a request is, and what of it is sent."""

    def __init__(self, policy: Policy, request: Any) -> None:
        self.request = request
        self.host = request.url.netloc.decode("ascii", "replace")
        self.path = request.url.raw_path.decode("ascii", "replace")
        self.call = policy.describe(request.method, self.host, self.path)
        self.filters = False

    def read(self, policy: Policy, body: bytes) -> None:
        """Reads the body of the request."""
        request = self.request
        self.call = policy.describe(request.method, self.host, self.path, body)
        changed = self.call.body_with_usage(body) if self.call is not None else None
        headers = [
            (name, value)
            for name, value in request.headers.raw
            if name.lower() not in (b"accept-encoding", b"content-length")
        ]
        # The usage is read from the answer, which must not be compressed.
        headers.append((b"accept-encoding", b"identity"))
        self.filters = changed is not None
        self.request = _library_of(request).Request(
            request.method,
            request.url,
            headers=headers,
            content=changed if changed is not None else body,
            extensions=request.extensions,
        )


def _headers(response: Any) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw
    ]


def _refused(sent: _Sent, error: Error) -> Any:
    """Returns the answer that stands for a refusal, or raises it."""
    answer = _http.refusal(sent.call, error)
    if answer is None:
        raise error
    status, headers, body = answer
    return _library_of(sent.request).Response(
        status, headers=headers, content=body, request=sent.request
    )


class Transport:
    """A transport that wraps another one and sends every call through the tap.

    `Transport()` wraps a new `HTTPTransport`. `pool` names the pool of every request; without it
    the provider's host and the model tell it. `wait` is how long a call waits at most.

    >>> import httpx, standpipe
    >>> tap = standpipe.open("memory", limits={"web/api": {"requests": "60/min"}})
    >>> answers = httpx.MockTransport(lambda request: httpx.Response(200, text="hello"))
    >>> transport = standpipe.Transport(answers, tap=tap, pool="web/api")
    >>> with httpx.Client(transport=transport) as client:
    ...     client.get("https://example.org/").text
    'hello'
    >>> tap.status("web/api").limits[0]["used"]
    1
    """

    def __init__(
        self, wrapped: Any = None, *, tap: Any = None, library: Any = None, **policy: Any
    ) -> None:
        self._policy = Policy(tap, **policy)
        self._wrapped = wrapped if wrapped is not None else _library(library).HTTPTransport()

    def handle_request(self, request: Any) -> Any:
        policy, sent = self._policy, _Sent(self._policy, request)
        if sent.call is not None:
            sent.read(policy, request.read())
        plan = policy.plan(sent.call, request.method, sent.host, sent.path)
        if plan is None:
            return self._wrapped.handle_request(request)
        pool, call = plan
        cover = policy.cover(pool)
        try:
            lease = cover.lease if cover is not None else policy.tap.reserve(pool, **call)
        except Error as error:
            return _refused(sent, error)
        _otel.note(lease)
        exchange = Exchange(lease, sent.filters, cover)
        try:
            response = self._wrapped.handle_request(sent.request)
            headers = _headers(response)
            if response.status_code >= 400:
                body = b"".join(response.stream)
                response.stream.close()
                exchange.refused(response.status_code, headers, body)
                response.stream = _library_of(response).ByteStream(body)
                return response
            exchange.begin(response.status_code, headers)
        except BaseException as error:
            exchange.fail(error)
            raise
        whole = not _http.readable(headers)
        response.stream = _sync_stream(_library_of(response))(response.stream, exchange, whole)
        return response

    def close(self) -> None:
        self._wrapped.close()

    def __enter__(self) -> Transport:
        self._wrapped.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._wrapped.__exit__(*exception)


class AsyncTransport:
    """The same as `Transport` for asynchronous clients."""

    def __init__(
        self, wrapped: Any = None, *, tap: Any = None, library: Any = None, **policy: Any
    ) -> None:
        self._policy = Policy(tap, **policy)
        self._wrapped = wrapped if wrapped is not None else _library(library).AsyncHTTPTransport()

    async def handle_async_request(self, request: Any) -> Any:
        policy, sent = self._policy, _Sent(self._policy, request)
        if sent.call is not None:
            sent.read(policy, await request.aread())
        plan = policy.plan(sent.call, request.method, sent.host, sent.path)
        if plan is None:
            return await self._wrapped.handle_async_request(request)
        pool, call = plan
        cover = policy.cover(pool)
        try:
            lease = cover.lease if cover is not None else await policy.tap.areserve(pool, **call)
        except Error as error:
            return _refused(sent, error)
        _otel.note(lease)
        exchange = Exchange(lease, sent.filters, cover)
        try:
            response = await self._wrapped.handle_async_request(sent.request)
            headers = _headers(response)
            if response.status_code >= 400:
                body = b"".join([chunk async for chunk in response.stream])
                await response.stream.aclose()
                await exchange.arefused(response.status_code, headers, body)
                response.stream = _library_of(response).ByteStream(body)
                return response
            exchange.begin(response.status_code, headers)
        except BaseException as error:
            exchange.fail(error)
            raise
        whole = not _http.readable(headers)
        response.stream = _async_stream(_library_of(response))(response.stream, exchange, whole)
        return response

    async def aclose(self) -> None:
        await self._wrapped.aclose()

    async def __aenter__(self) -> AsyncTransport:
        await self._wrapped.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._wrapped.__aexit__(*exception)


_streams: dict[tuple[str, str], Any] = {}


def _sync_stream(library: ModuleType) -> Any:
    """Returns the class of streams for a library, which checks what its streams derive from."""
    known = _streams.get((library.__name__, "sync"))
    if known is not None:
        return known

    class Stream(library.SyncByteStream):  # type: ignore[name-defined, misc]
        """A body on its way to the caller."""

        def __init__(self, stream: Any, exchange: Exchange, whole: bool) -> None:
            self._stream, self._exchange, self._whole = stream, exchange, whole

        def __iter__(self) -> Iterator[bytes]:
            exchange = self._exchange
            for chunk in self._stream:
                known = exchange.feed(chunk)
                if known is not None:
                    _quietly(exchange, known)
                shown = exchange.shown(chunk)
                if shown:
                    yield shown
            exchange.settle(self._whole)
            rest = exchange.rest()
            if rest:
                yield rest

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                self._exchange.settle(self._whole)

    _streams[(library.__name__, "sync")] = Stream
    return Stream


def _async_stream(library: ModuleType) -> Any:
    known = _streams.get((library.__name__, "async"))
    if known is not None:
        return known

    class Stream(library.AsyncByteStream):  # type: ignore[name-defined, misc]
        """A body on its way to the caller."""

        def __init__(self, stream: Any, exchange: Exchange, whole: bool) -> None:
            self._stream, self._exchange, self._whole = stream, exchange, whole

        async def __aiter__(self) -> AsyncIterator[bytes]:
            exchange = self._exchange
            async for chunk in self._stream:
                known = exchange.feed(chunk)
                if known is not None:
                    await _aquietly(exchange, known)
                shown = exchange.shown(chunk)
                if shown:
                    yield shown
            await exchange.asettle(self._whole)
            rest = exchange.rest()
            if rest:
                yield rest

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                await self._exchange.asettle(self._whole)

    _streams[(library.__name__, "async")] = Stream
    return Stream


def _quietly(exchange: Exchange, known: int) -> None:
    """Reports the input of a stream. A failure changes nothing: its end reports it again."""
    try:
        exchange.lease.progress(input_tokens=known)
    except Error:
        pass


async def _aquietly(exchange: Exchange, known: int) -> None:
    try:
        await exchange.lease.aprogress(input_tokens=known)
    except Error:
        pass


def _policy_of(options: dict[str, Any]) -> dict[str, Any]:
    names = ("tap", "agent", "priority", "pool", "provider", "wait", "task", "cost")
    return {name: options.pop(name) for name in names if name in options}


def httpx_client(*, library: Any = None, transport: Optional[Any] = None, **options: Any) -> Any:
    """Returns a client of httpx2 or httpx whose calls go through the tap, for any SDK on it.

    `tap`, `agent`, `priority`, `pool`, `provider`, `wait`, `task` and `cost` are for the tap,
    everything else for the client. `library` is `httpx`, `httpx2` or its name; the default is
    httpx2 if it is installed, which the SDKs of Anthropic and OpenAI use.

        client = anthropic.Anthropic(max_retries=0, http_client=standpipe.httpx_client(agent="blog"))
    """
    used, policy = _library(library), _policy_of(options)
    options.setdefault("follow_redirects", True)
    wrapped = transport if transport is not None else used.HTTPTransport(http2=False)
    return used.Client(transport=Transport(wrapped, **policy), **options)


def httpx_async_client(
    *, library: Any = None, transport: Optional[Any] = None, **options: Any
) -> Any:
    """Returns an asynchronous client whose calls go through the tap. See `httpx_client`."""
    used, policy = _library(library), _policy_of(options)
    options.setdefault("follow_redirects", True)
    wrapped = transport if transport is not None else used.AsyncHTTPTransport(http2=False)
    return used.AsyncClient(transport=AsyncTransport(wrapped, **policy), **options)
