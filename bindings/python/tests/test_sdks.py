"""The real SDKs through the transports, against the provider that enforces its limits."""

import asyncio

import anthropic
import httpx
import httpx2
import openai
import pytest

import standpipe
from conftest import PROMPT

CLAUDE = dict(model="claude-sonnet-test", max_tokens=100, messages=PROMPT)
TOOLS = [{
    "name": "weather", "description": "The weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}]


def plain(value):
    """An answer without what differs between two calls."""
    data = value.model_dump()
    for key in ("id", "created", "_request_id"):
        data.pop(key, None)
    return data


@pytest.fixture
def claude(provider):
    return provider("--shape", "anthropic", "--requests", "1000/min")


@pytest.fixture
def gpt(provider):
    return provider("--shape", "openai", "--requests", "1000/min")


def clients(library=httpx2, **options):
    """Two clients: without the tap and through it."""
    return library.Client(), standpipe.httpx_client(library=library, agent="blog", **options)


@pytest.fixture(autouse=True)
def fresh_default_tap(monkeypatch):
    monkeypatch.setattr("standpipe._tap._default", None)


def test_anthropic_gets_the_same_objects(claude):
    seen = []
    for http in clients():
        client = anthropic.Anthropic(
            base_url=claude.url, api_key="sk-ant-x", max_retries=0, http_client=http)
        ask = dict(CLAUDE, extra_headers={"x-used-output": "12"})
        whole = client.messages.create(**ask)
        tools = client.messages.create(**ask, tools=TOOLS)
        with client.messages.stream(**ask) as stream:
            text = "".join(stream.text_stream)
            final = plain(stream.get_final_message())
        seen.append((plain(whole), plain(tools), text, final))
    assert seen[0] == seen[1]
    assert seen[1][3]["usage"]["output_tokens"] == 12
    status = standpipe.default_tap().status("anthropic/sonnet")
    assert status.in_flight == 0
    assert [agent["name"] for agent in status.agents] == ["blog"]
    assert len(claude.log()) == 6


def test_anthropic_async_gets_the_same_objects(claude):
    async def ask(http):
        client = anthropic.AsyncAnthropic(
            base_url=claude.url, api_key="k", max_retries=0, http_client=http)
        async with client:
            async with client.messages.stream(**CLAUDE) as stream:
                events = [type(event).__name__ async for event in stream]
            whole = [plain(one) for one in await asyncio.gather(
                *(client.messages.create(**CLAUDE) for _ in range(5)))]
            return events, whole

    seen = [
        asyncio.run(ask(http))
        for http in (httpx2.AsyncClient(), standpipe.httpx_async_client(agent="blog"))
    ]
    assert seen[0] == seen[1] and len(seen[0][0]) > 3
    assert standpipe.default_tap().status("anthropic/sonnet").in_flight == 0


def test_openai_gets_the_same_objects(gpt):
    seen = []
    for http in clients():
        client = openai.OpenAI(
            base_url=f"{gpt.url}/v1", api_key="sk-x", max_retries=0, http_client=http)
        ask = dict(model="gpt-4o", messages=PROMPT, extra_headers={"x-used-output": "12"})
        whole = plain(client.chat.completions.create(**ask))
        chunks = [plain(chunk) for chunk in client.chat.completions.create(stream=True, **ask)]
        counted = list(client.chat.completions.create(
            stream=True, stream_options={"include_usage": True}, **ask))
        assert counted[-1].usage.completion_tokens == 12
        for chunk in chunks:
            assert chunk.pop("usage") is None
        seen.append((whole["choices"], chunks))
    assert seen[0] == seen[1]
    assert standpipe.default_tap().status("openai/gpt-4o").in_flight == 0


def test_openai_async_streams_the_same(gpt):
    async def ask(http):
        async with openai.AsyncOpenAI(
            base_url=f"{gpt.url}/v1", api_key="k", max_retries=0, http_client=http
        ) as client:
            stream = await client.chat.completions.create(
                model="gpt-4o", messages=PROMPT, stream=True)
            return [plain(chunk) async for chunk in stream]

    seen = [
        asyncio.run(ask(http))
        for http in (httpx2.AsyncClient(), standpipe.httpx_async_client(agent="blog"))
    ]
    assert seen[0] == seen[1] and len(seen[0]) > 2


def test_a_call_is_charged_with_what_it_used(claude, tmp_path):
    config = tmp_path / "standpipe.toml"
    config.write_text(
        '[pool."anthropic/sonnet"]\nmodels = ["claude-sonnet-*"]\n'
        'output_tokens = { rate = "100k/min", kind = "window" }\nmargin = 0\n'
    )
    tap = standpipe.open(config=config)
    with standpipe.httpx_client(tap=tap, agent="blog") as http:
        client = anthropic.Anthropic(
            base_url=claude.url, api_key="k", max_retries=0, http_client=http)
        client.messages.create(**CLAUDE, extra_headers={"x-used-output": "12"})
        with client.messages.stream(**CLAUDE, extra_headers={"x-used-output": "30"}) as stream:
            assert stream.get_final_message().usage.output_tokens == 30
    assert tap.status("anthropic/sonnet").limits[0]["used"] == 42


def test_a_refusal_of_the_provider_raises_the_sdk_s_error_and_pauses_everyone(provider):
    claude = provider("--shape", "anthropic", "--requests", "1/min")
    http = standpipe.httpx_client(agent="blog", wait=0)
    client = anthropic.Anthropic(
        base_url=claude.url, api_key="k", max_retries=0, http_client=http)
    httpx.post(f"{claude.url}/v1/messages", json=CLAUDE, headers={"x-api-key": "k"})
    with pytest.raises(anthropic.RateLimitError) as refused:
        client.messages.create(**CLAUDE)
    assert "x-standpipe-origin" not in refused.value.response.headers
    calls = len(claude.log())
    with pytest.raises(anthropic.RateLimitError) as refused:
        client.messages.create(**CLAUDE)
    headers = refused.value.response.headers
    assert headers["x-standpipe-origin"] == "ledger" and headers["x-standpipe-reason"] == "pause"
    assert len(claude.log()) == calls, "the paused call was not sent"
    assert standpipe.default_tap().status("anthropic/sonnet").pause


def test_a_stream_that_fails_midway_raises_the_sdk_s_own_error(claude):
    client = anthropic.Anthropic(
        base_url=claude.url, api_key="k", max_retries=0,
        http_client=standpipe.httpx_client(agent="blog"))
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        with client.messages.stream(**CLAUDE, extra_headers={"x-error-after": "3"}) as stream:
            list(stream)
    assert standpipe.default_tap().status("anthropic/sonnet").in_flight == 0


def test_a_stream_that_is_left_early_is_settled(claude):
    client = anthropic.Anthropic(
        base_url=claude.url, api_key="k", max_retries=0,
        http_client=standpipe.httpx_client(agent="blog"))
    with client.messages.stream(**CLAUDE) as stream:
        next(iter(stream))
        assert standpipe.default_tap().status("anthropic/sonnet").in_flight == 1
    assert standpipe.default_tap().status("anthropic/sonnet").in_flight == 0


def test_a_call_that_was_never_sent_is_given_back():
    tap = standpipe.open("memory", limits={"web/never-sent": {"requests": "10/min"}})
    with standpipe.httpx_client(tap=tap, pool="web/never-sent", library=httpx) as client:
        with pytest.raises(httpx.ConnectError):
            client.get("http://127.0.0.1:1/")
    assert tap.status("web/never-sent").limits[0]["used"] == 0


def test_a_call_that_uses_no_quota_passes(provider, tmp_path):
    server = provider("--shape", "anthropic")
    config = tmp_path / "standpipe.toml"
    config.write_text(f'open_pools = true\n[provider.anthropic]\nupstream = "{server.url}"\n')
    tap = standpipe.open(config=config)
    with standpipe.httpx_client(tap=tap, library="httpx") as client:
        assert client.get(f"{server.url}/v1/models").status_code != 429
    assert list(tap.status()) == []


def test_the_caller_s_own_arguments_and_httpx_itself_work(claude):
    with standpipe.httpx_client(library="httpx", agent="poller", provider="anthropic") as client:
        assert isinstance(client, httpx.Client)
        answer = client.post(f"{claude.url}/v1/messages", json=CLAUDE, headers={"x-api-key": "k"})
        assert answer.status_code == 200 and answer.json()["type"] == "message"
    with pytest.raises(standpipe.ConfigError, match="pool='provider/scope'"):
        with standpipe.httpx_client(library="httpx") as client:
            client.get("http://127.0.0.1:1/index.html")
