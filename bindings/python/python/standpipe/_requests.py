"""An adapter for requests whose calls go through the tap."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Optional
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from . import _http, _otel
from ._errors import Error
from ._http import Exchange, Policy

__all__ = ["RequestsAdapter", "requests_session"]


class RequestsAdapter(HTTPAdapter):
    """An adapter for `requests.Session.mount`. `pool` and the rest are as for `Transport`.

    >>> import requests, standpipe
    >>> tap = standpipe.open("memory", limits={"web/api": {"requests": "60/min"}})
    >>> session = requests.Session()
    >>> session.mount("https://", standpipe.RequestsAdapter(tap=tap, pool="web/api"))
    """

    def __init__(self, *, tap: Any = None, **options: Any) -> None:
        names = ("agent", "priority", "pool", "provider", "wait", "task", "cost")
        policy = {name: options.pop(name) for name in names if name in options}
        self._policy = Policy(tap, **policy)
        super().__init__(**options)

    def send(  # type: ignore[override]
        self, request: Any, stream: bool = False, **options: Any
    ) -> requests.Response:
        policy = self._policy
        parts = urlsplit(request.url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        body = request.body.encode() if isinstance(request.body, str) else request.body
        is_whole = body is None or isinstance(body, bytes)
        call = policy.describe(request.method, parts.netloc, path, (body or b"") if is_whole else b"")
        plan = policy.plan(call, request.method, parts.netloc, path)
        if plan is None:
            return super().send(request, stream=stream, **options)
        changed = call.body_with_usage(body) if call is not None and is_whole and body else None
        if call is not None:
            # The usage is read from the answer, which must not be compressed.
            request.headers["accept-encoding"] = "identity"
        if changed is not None:
            request.prepare_body(changed, None)
        pool, arguments = plan
        cover = policy.cover(pool)
        try:
            lease = cover.lease if cover is not None else policy.tap.reserve(pool, **arguments)
        except Error as error:
            refused = _http.refusal(call, error)
            if refused is None:
                raise
            return _response(request, *refused)
        _otel.note(lease)
        exchange = Exchange(lease, changed is not None, cover)
        try:
            response = super().send(request, stream=True, **options)
            headers = list(response.headers.items())
            if response.status_code >= 400:
                exchange.refused(response.status_code, headers, response.content)
                return response
            exchange.begin(response.status_code, headers)
        except BaseException as error:
            exchange.fail(error)
            raise
        response.raw = _Body(response.raw, exchange, not _http.readable(headers))
        if not stream:
            # Read to the end here, so that the call is settled when it returns.
            response.content  # noqa: B018
        return response


class _Body:
    """A body on its way to the caller: what requests uses of urllib3's response."""

    def __init__(self, raw: Any, exchange: Exchange, whole: bool) -> None:
        self._raw, self._exchange, self._whole = raw, exchange, whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def _read(self, chunk: bytes) -> bytes:
        known = self._exchange.feed(chunk)
        if known is not None:
            try:
                self._exchange.lease.progress(input_tokens=known)
            except Error:
                pass
        return self._exchange.shown(chunk)

    def stream(self, amount: int = 65536, decode_content: Optional[bool] = None) -> Iterator[bytes]:
        for chunk in self._raw.stream(amount, decode_content=decode_content):
            shown = self._read(chunk)
            if shown:
                yield shown
        self._exchange.settle(self._whole)
        rest = self._exchange.rest()
        if rest:
            yield rest

    def read(self, amount: Optional[int] = None, **options: Any) -> bytes:
        chunk = self._raw.read(amount, **options)
        if chunk:
            return self._read(chunk)
        self._exchange.settle(self._whole)
        return self._exchange.rest()

    def close(self) -> None:
        try:
            self._raw.close()
        finally:
            self._exchange.settle(self._whole)

    def release_conn(self) -> None:
        self._raw.release_conn()
        self._exchange.settle(self._whole)


def _response(request: Any, status: int, headers: dict[str, str], body: bytes) -> requests.Response:
    """Returns the answer that stands for a refusal."""
    response = requests.Response()
    response.status_code, response.request, response.url = status, request, request.url
    response.headers.update(headers)
    response.raw = io.BytesIO(body)
    response._content = body
    return response


def requests_session(**options: Any) -> requests.Session:
    """Returns a session whose calls go through the tap; the arguments are the adapter's."""
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, RequestsAdapter(**options))
    return session
