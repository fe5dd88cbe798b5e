"""The SDKs of Google and Mistral through the transports, against the provider that enforces its
limits: the same objects as without the tap, and every token counted."""

import asyncio

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from mistralai.client import Mistral
from mistralai.client.errors import SDKError

import standpipe
from conftest import PROMPT

FLASH, SMALL = "gemini-2.5-flash", "mistral-small-latest"
POOLS = {"gemini/flash": "gemini-*", "mistral/small": "mistral-small*"}
USED = {"x-used-output": "12"}
WEATHER = {"name": "weather", "description": "the weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.fixture
def tap(tmp_path):
    """A tap whose pools count output in windows, which tests can read."""
    config = tmp_path / "standpipe.toml"
    config.write_text("\n".join(
        f'[pool."{name}"]\nmodels = ["{models}"]\nmargin = 0\n'
        'output_tokens = { rate = "100k/min", kind = "window" }\n'
        for name, models in POOLS.items()))
    return standpipe.open(config=config)


def output(tap, pool):
    status = tap.status(pool)
    assert (status.in_flight, status.waiting) == (0, 0)
    return status.limits[0]["used"]


def plain(value):
    """An answer without what differs between two calls."""
    data = value.model_dump()
    for key in ("id", "created", "sdk_http_response"):
        data.pop(key, None)
    return data


def google(url, headers=USED, **clients):
    options = types.HttpOptions(
        base_url=url, headers=headers, retry_options=types.HttpRetryOptions(attempts=1), **clients)
    return genai.Client(api_key="k", http_options=options)


def test_google_genai_gets_the_same_objects_and_is_charged(provider, tap):
    server = provider("--shape", "gemini", "--requests", "1000/min")
    tools = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[WEATHER])],
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(mode="ANY")),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))
    seen = []
    tapped = standpipe.httpx_client(tap=tap, agent="blog", provider="gemini")
    for http in (httpx2.Client(), tapped):
        models = google(server.url, httpx_client=http).models
        whole = plain(models.generate_content(model=FLASH, contents="hello"))
        called = models.generate_content(model=FLASH, contents="rain?", config=tools)
        assert called.function_calls[0].args == {"city": "seven"}
        parts = models.generate_content_stream(model=FLASH, contents="hello")
        seen.append((whole, plain(called), [plain(part) for part in parts]))
        models.count_tokens(model=FLASH, contents="hello")
    assert seen[0] == seen[1] and len(seen[0][2]) == 3
    assert output(tap, "gemini/flash") == 3 * 12, "counting tokens uses no quota"
    assert [agent["name"] for agent in tap.status("gemini/flash").agents] == ["blog"]


def test_google_genai_async_gets_the_same_objects_and_is_charged(provider, tap):
    server = provider("--shape", "gemini", "--requests", "1000/min")

    async def ask(http):
        async with http:
            models = google(server.url, httpx_async_client=http).aio.models
            whole = plain(await models.generate_content(model=FLASH, contents="hello"))
            parts = await models.generate_content_stream(model=FLASH, contents="hello")
            return whole, [plain(part) async for part in parts]

    clients = httpx2.AsyncClient(), standpipe.httpx_async_client(tap=tap)
    seen = [asyncio.run(ask(http)) for http in clients]
    assert seen[0] == seen[1] and len(seen[0][1]) == 3
    assert output(tap, "gemini/flash") == 2 * 12


@pytest.mark.parametrize("status", [400, 403, 503])
def test_google_genai_raises_its_own_errors(provider, tap, status):
    server = provider("--shape", "gemini", "--requests", "1000/min")
    seen = []
    for http in (httpx2.Client(), standpipe.httpx_client(tap=tap)):
        with pytest.raises(errors.APIError) as error:
            client = google(server.url, {"x-fail": str(status)}, httpx_client=http)
            client.models.generate_content(model=FLASH, contents="hello")
        seen.append((type(error.value), error.value.code, error.value.message))
    assert seen[0] == seen[1] and seen[0][1] == status


def mistral(url, **clients):
    return Mistral(api_key="k", server_url=url, **clients)


def test_mistral_gets_the_same_objects_and_is_charged(provider, tap):
    server = provider("--shape", "mistral", "--requests", "1000/min")
    ask = dict(model=SMALL, messages=PROMPT, http_headers=USED)
    tools = [{"type": "function", "function": WEATHER}]
    seen = []
    tapped = standpipe.httpx_client(tap=tap, agent="blog", provider="mistral")
    for http in (httpx2.Client(), tapped):
        chat = mistral(server.url, client=http).chat
        whole = plain(chat.complete(**ask))
        called = plain(chat.complete(**ask, tools=tools, tool_choice="required"))
        with chat.stream(**ask) as events:
            chunks = [plain(event.data) for event in events]
        seen.append((whole, called, chunks))
    assert seen[0] == seen[1]
    assert seen[0][1]["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"
    assert seen[0][2][-1]["usage"]["completion_tokens"] == 12
    assert output(tap, "mistral/small") == 3 * 12


def test_mistral_async_gets_the_same_objects_and_is_charged(provider, tap):
    server = provider("--shape", "mistral", "--requests", "1000/min")
    ask = dict(model=SMALL, messages=PROMPT, http_headers=USED)

    async def both(http):
        async with http:
            chat = mistral(server.url, async_client=http).chat
            whole = plain(await chat.complete_async(**ask))
            events = await chat.stream_async(**ask)
            return whole, [plain(event.data) async for event in events]

    clients = httpx2.AsyncClient(), standpipe.httpx_async_client(tap=tap, provider="mistral")
    seen = [asyncio.run(both(http)) for http in clients]
    assert seen[0] == seen[1]
    assert output(tap, "mistral/small") == 2 * 12


@pytest.mark.parametrize("status", [400, 401, 500])
def test_mistral_raises_its_own_errors(provider, tap, status):
    server = provider("--shape", "mistral", "--requests", "1000/min")
    seen = []
    for http in (httpx2.Client(), standpipe.httpx_client(tap=tap, provider="mistral")):
        with pytest.raises(SDKError) as error:
            mistral(server.url, client=http).chat.complete(
                model=SMALL, messages=PROMPT, http_headers={"x-fail": str(status)})
        seen.append((error.value.status_code, error.value.body))
    assert seen[0] == seen[1] and seen[0][0] == status


def test_a_429_of_mistral_pauses_everyone(provider, tap):
    server = provider("--shape", "mistral", "--requests", "1/min")
    http = standpipe.httpx_client(tap=tap, provider="mistral", wait=0)
    ask = dict(model=SMALL, messages=PROMPT)
    # This call does not go through the tap and takes the only one of this minute.
    mistral(server.url).chat.complete(**ask)
    refused = []
    for _ in range(2):
        with pytest.raises(SDKError) as error:
            mistral(server.url, client=http).chat.complete(**ask)
        assert error.value.status_code == 429
        refused.append(error.value.headers.get("x-standpipe-reason"))
    assert refused == [None, "pause"] and len(server.log()) == 2
