"""Decorator, retries, and the integrations with other libraries than the SDKs."""

import asyncio

import aiohttp
import pytest
import requests
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import standpipe
from conftest import PROMPT
from standpipe.langchain import StandpipeRateLimiter

CLAUDE = dict(model="claude-sonnet-test", max_tokens=100, messages=PROMPT)
CHAT = dict(model="gpt-4o", messages=PROMPT, stream=True)
KEY = {"x-api-key": "k", "x-used-output": "12"}


@pytest.fixture
def windows(tmp_path):
    """A tap whose pools of models count output in windows, which tests can read."""
    config = tmp_path / "standpipe.toml"
    pools = [("anthropic/sonnet", "claude-sonnet-*"), ("openai/gpt-4o", "gpt-4o*")]
    config.write_text("open_pools = true\n" + "\n".join(
        f'[pool."{name}"]\nmodels = ["{models}"]\nmargin = 0\n'
        'output_tokens = { rate = "100k/min", kind = "window" }\n' for name, models in pools))
    return standpipe.open(config=config)


def output(tap, pool):
    return tap.status(pool).limits[0]["used"]


def test_requests_gets_the_same_answers_and_is_charged(provider, windows):
    claude = provider("--shape", "anthropic", "--requests", "1000/min")
    gpt = provider("--shape", "openai", "--requests", "1000/min")
    seen = []
    for session in (requests.Session(), standpipe.requests_session(tap=windows, agent="blog")):
        whole = session.post(f"{claude.url}/v1/messages", json=CLAUDE, headers=KEY).json()
        whole.pop("id")
        stream = session.post(
            f"{gpt.url}/v1/chat/completions", json=CHAT, headers=KEY, stream=True)
        lines = [line for line in stream.iter_lines() if line]
        seen.append((whole, len(lines), lines[-1]))
    assert seen[0] == seen[1]
    assert output(windows, "anthropic/sonnet") == 12
    assert output(windows, "openai/gpt-4o") == 12


def test_requests_reports_a_429_and_answers_with_a_refusal(provider):
    tap = standpipe.open(limits={"anthropic/sonnet": {"requests": "1000/min"}})
    claude = provider("--shape", "anthropic", "--requests", "1/min")
    session = standpipe.requests_session(tap=tap, agent="blog", wait=0)
    # Somebody who does not use the tap takes the only call.
    answers = [
        caller.post(f"{claude.url}/v1/messages", json=CLAUDE, headers=KEY)
        for caller in (requests, session, session)]
    assert [answer.status_code for answer in answers] == [200, 429, 429]
    assert "x-standpipe-origin" not in answers[1].headers
    assert answers[2].headers["x-standpipe-origin"] == "ledger"
    assert answers[2].json()["error"]["type"] == "rate_limit_error"
    assert len(claude.log()) == 2


def test_aiohttp_gets_the_same_answers_and_is_charged(provider, windows):
    claude = provider("--shape", "anthropic", "--requests", "1000/min")
    gpt = provider("--shape", "openai", "--requests", "1000/min")

    async def ask(*middlewares):
        async with aiohttp.ClientSession(middlewares=middlewares) as session:
            url = f"{claude.url}/v1/messages"
            async with session.post(url, json=CLAUDE, headers=KEY) as answer:
                whole = await answer.json()
                whole.pop("id")
            url = f"{gpt.url}/v1/chat/completions"
            async with session.post(url, json=CHAT, headers=KEY) as answer:
                lines = [line async for line in answer.content if line.strip()]
            return whole, len(lines), lines[-1]

    without = asyncio.run(ask())
    through = asyncio.run(ask(standpipe.aiohttp_middleware(tap=windows, agent="blog")))
    assert without == through
    assert output(windows, "anthropic/sonnet") == 12
    assert output(windows, "openai/gpt-4o") == 12


def test_langchain(tap):
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    limiter = StandpipeRateLimiter("my/slots", tap=tap, agent="chain", timeout=30)
    model = GenericFakeChatModel(
        messages=iter([AIMessage("one", usage_metadata=usage), AIMessage("two")]),
        rate_limiter=limiter, callbacks=[limiter.callback])
    assert model.invoke("hello").content == "one"
    assert tap.status("my/slots").in_flight == 0
    assert asyncio.run(model.ainvoke("hello")).content == "two"
    assert tap.status("my/slots").in_flight == 0
    with tap.reserve("my/slots"):
        assert limiter.acquire(blocking=False) is False
        assert asyncio.run(limiter.aacquire(blocking=False)) is False


def test_langchain_without_the_callback_settles_the_call_before(tap):
    limiter = StandpipeRateLimiter("my/pair", tap=tap)
    model = GenericFakeChatModel(
        messages=iter([AIMessage(str(n)) for n in range(5)]), rate_limiter=limiter)
    assert [model.invoke("hello").content for _ in range(5)] == list("01234")


def test_spans_get_the_attributes_of_their_call(provider, tap):
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    server = provider("--requests", "1000/min")
    with standpipe.httpx_client(tap=tap, pool="my/api", agent="blog", library="httpx") as client:
        with tracers.get_tracer("test").start_as_current_span("call"):
            assert client.post(f"{server.url}/call", json={}).status_code == 200
    (span,) = exporter.get_finished_spans()
    assert span.attributes["standpipe.pool"] == "my/api"
    assert span.attributes["standpipe.agent"] == "blog"
    assert span.attributes["standpipe.cost.requests"] == 1


def test_limited_wraps_every_kind_of_function(tap):
    def held():
        return tap.status("my/slots").in_flight

    @standpipe.limited("my/slots", tap=tap, agent="blog")
    def plain(a, *, b=2):
        """Says it."""
        return a + b + held()

    @standpipe.limited("my/slots", tap=tap)
    def generator():
        yield held()
        yield held()

    @standpipe.limited("my/slots", tap=tap)
    async def coroutine():
        return held()

    @standpipe.limited("my/slots", tap=tap)
    async def asynchronous():
        yield held()

    assert plain(1) == 4 and plain.__doc__ == "Says it."
    assert list(generator()) == [1, 1] and held() == 0
    assert asyncio.run(coroutine()) == 1 and held() == 0

    async def listed():
        return [item async for item in asynchronous()]

    assert asyncio.run(listed()) == [1] and held() == 0
    half = generator()
    next(half)
    assert held() == 1
    half.close()
    assert held() == 0
    with pytest.raises(TypeError, match="name of a pool"):
        standpipe.limited(lambda: None)


def test_limited_takes_its_cost_from_the_call(tap):
    @standpipe.limited("my/api", tap=tap, cost=lambda text, n: {"tokens": len(text) * n})
    def ask(text, n):
        return text

    ask("hello", 3)
    ask("you", n=2)
    assert tap.status("my/api").limits[1]["used"] == 21


class Answer(Exception):
    """An exception with the answer of a provider, as SDKs have it."""

    def __init__(self, status, **headers):
        super().__init__(status)
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.mark.standpipe_limits({"my/retry": {"requests": "100/min"}})
def test_with_retry_waits_as_the_provider_says(standpipe_tap):
    answers = iter([Answer(429, retry_after="20"), Answer(503), "served"])

    def call(lease):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert standpipe.with_retry("my/retry", call) == "served"
    assert 20 <= standpipe_tap.now() < 60


@pytest.mark.standpipe_limits({"my/retry": {"requests": "100/min"}})
def test_with_retry_raises_what_is_not_retried(standpipe_tap):
    def fails(error):
        def call(lease):
            raise error
        return call

    with pytest.raises(Answer):
        standpipe.with_retry("my/retry", fails(Answer(400)))
    with pytest.raises(KeyError):
        standpipe.with_retry("my/retry", fails(KeyError("mine")))
    assert standpipe_tap.now() == 0
    refused = Answer(429, retry_after="3600")
    with pytest.raises(standpipe.NotServed) as failed:
        standpipe.with_retry("my/retry", fails(refused), timeout=10)
    assert failed.value.last is refused and failed.value.tries == 1


def test_awith_retry(tap):
    answers = iter([ConnectionResetError(), "served"])

    async def call(lease):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert asyncio.run(standpipe.awith_retry("my/api", call, tap=tap)) == "served"


@pytest.mark.standpipe_limits({"my/api": {"requests": "10/min"}})
def test_the_fixture_s_clock_moves_only_when_a_call_waits(standpipe_tap):
    @standpipe.limited("my/api")
    def call():
        pass

    for _ in range(8):
        call()
    assert standpipe_tap.now() == 0
    call()
    assert standpipe_tap.now() >= 60
    with pytest.raises(standpipe.Timeout):
        for _ in range(10):
            standpipe_tap.reserve("my/api", timeout=1).commit()
    standpipe_tap.advance(120)

    async def asks():
        async with standpipe_tap.areserve("my/api") as lease:
            return lease.agent

    assert asyncio.run(asks()) == "test"
