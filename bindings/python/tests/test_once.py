"""A call is reserved once, also where `with_retry` or `limited` is around a client that has a
transport."""

import asyncio

import aiohttp
import httpx
import pytest

import standpipe
from conftest import PROMPT

CLAUDE = dict(model="claude-sonnet-test", max_tokens=100, messages=PROMPT)
KEY = {"x-api-key": "k", "x-used-output": "12"}
POOL = "anthropic/sonnet"


@pytest.fixture
def url(provider):
    return provider("--shape", "anthropic", "--requests", "1000/min").url + "/v1/messages"


@pytest.fixture
def tap(tmp_path):
    config = tmp_path / "standpipe.toml"
    config.write_text(
        f'[pool."{POOL}"]\nmodels = ["claude-sonnet-*"]\nmargin = 0\n'
        'requests = { rate = "1000/min", kind = "window" }\n'
        'output_tokens = { rate = "100k/min", kind = "window" }\n')
    return standpipe.open(config=config)


def used(tap):
    status = tap.status(POOL)
    assert status.in_flight == 0
    return [limit["used"] for limit in status.limits]


def by_httpx(tap, url):
    with standpipe.httpx_client(tap=tap, library="httpx") as client:
        return client.post(url, json=CLAUDE, headers=KEY).json()


def by_requests(tap, url):
    return standpipe.requests_session(tap=tap).post(url, json=CLAUDE, headers=KEY).json()


async def by_async_httpx(tap, url):
    async with standpipe.httpx_async_client(tap=tap, library="httpx") as client:
        return (await client.post(url, json=CLAUDE, headers=KEY)).json()


async def by_aiohttp(tap, url):
    middleware = standpipe.aiohttp_middleware(tap=tap)
    async with aiohttp.ClientSession(middlewares=[middleware]) as session:
        async with session.post(url, json=CLAUDE, headers=KEY) as answer:
            return await answer.json()


@pytest.mark.parametrize("call", [by_httpx, by_requests])
def test_a_call_counts_once(tap, url, call):
    answer = standpipe.with_retry(POOL, lambda lease: call(tap, url), tap=tap)
    assert answer["type"] == "message" and used(tap) == [1, 12]
    assert standpipe.limited(POOL, tap=tap)(call)(tap, url)["type"] == "message"
    assert used(tap) == [2, 24]


@pytest.mark.parametrize("call", [by_async_httpx, by_aiohttp])
def test_a_call_in_a_task_counts_once(tap, url, call):
    async def main():
        await standpipe.awith_retry(POOL, lambda lease: call(tap, url), tap=tap)
        await standpipe.limited(POOL, tap=tap)(call)(tap, url)

    asyncio.run(main())
    assert used(tap) == [2, 24]


def test_a_call_in_a_generator_counts_once(tap, url):
    @standpipe.limited(POOL, tap=tap)
    def items():
        sent = yield by_httpx(tap, url)["type"]
        try:
            yield sent
        except KeyError:
            yield "thrown"

    own = items()
    assert next(own) == "message"
    by_httpx(tap, url)  # its caller's, between two items: a call of its own
    assert own.send("sent") == "sent" and own.throw(KeyError()) == "thrown"
    assert list(own) == [] and used(tap) == [2, 24]


def test_a_call_in_an_asynchronous_generator_counts_once(tap, url):
    @standpipe.limited(POOL, tap=tap)
    async def items():
        yield (await by_async_httpx(tap, url))["type"]
        yield "last"

    async def main():
        own = items()
        assert await anext_of(own) == "message"
        await by_async_httpx(tap, url)
        assert await anext_of(own) == "last"
        await own.aclose()

    async def anext_of(own):  # `anext` is not in Python 3.9
        return await own.__anext__()

    asyncio.run(main())
    assert used(tap) == [2, 24]


def test_a_generator_that_fails_when_it_is_closed_frees_its_slot(tap):
    @standpipe.limited(POOL, tap=tap)
    def items():
        try:
            yield 1
        finally:
            raise KeyError("closed")

    own = items()
    next(own)
    assert tap.status(POOL).in_flight == 1
    with pytest.raises(KeyError) as kept:  # its traceback keeps the frames
        own.close()
    assert tap.status(POOL).in_flight == 0 and kept.value


def test_a_second_call_of_the_function_is_reserved_by_itself(tap, url):
    standpipe.with_retry(POOL, lambda lease: [by_httpx(tap, url), by_httpx(tap, url)], tap=tap)
    assert used(tap) == [2, 24]


def test_a_stream_that_the_function_returns_is_settled_at_its_end(tap, url):
    with standpipe.httpx_client(tap=tap, library="httpx") as client:
        def call(lease):
            request = client.build_request(
                "POST", url, json=dict(CLAUDE, stream=True), headers=KEY)
            return client.send(request, stream=True)

        stream = standpipe.with_retry(POOL, call, tap=tap)
        assert tap.status(POOL).in_flight == 1, "its call is still in flight"
        assert b"message_stop" in stream.read()
    assert used(tap) == [1, 12]


def test_the_function_must_not_settle_what_its_transport_settled(tap, url):
    def call(lease):
        by_httpx(tap, url)
        lease.commit(output_tokens=7)

    with pytest.raises(standpipe.LeaseGone, match="by the answer of its call"):
        standpipe.with_retry(POOL, call, tap=tap)
    assert used(tap) == [1, 12]


@pytest.mark.standpipe_limits({"my/retry": {"requests": "100/min"}})
def test_a_transport_below_tells_with_retry_what_to_do(standpipe_tap):
    answers = iter([
        httpx.Response(429, headers={"retry-after": "20"}), httpx.Response(503),
        httpx.ConnectError("refused"), httpx.Response(200, text="served")])

    def answer(request):
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    transport = standpipe.Transport(httpx.MockTransport(answer), pool="my/retry")
    with httpx.Client(transport=transport) as client:
        def call(lease):
            return client.get("https://example.org/").raise_for_status().text

        assert standpipe.with_retry("my/retry", call) == "served"
    assert 20 <= standpipe_tap.now() < 60
    # The call that was never sent was given back.
    assert standpipe_tap.status("my/retry").limits[0]["used"] == 3
