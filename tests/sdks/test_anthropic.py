"""Anthropic's SDK for Python through the proxy: the same objects as without it."""

import asyncio
import http.client
import json
import pathlib
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import anthropic
import pytest

from support import Provider, Tap, caught, plain

NODE = pathlib.Path(__file__).parent / "node"
PROMPT = [{"role": "user", "content": "Say that it is done."}]
ASK = dict(model="claude-sonnet-test", max_tokens=10, messages=PROMPT)
WEATHER = dict(
    tools=[{"name": "weather", "description": "the weather", "input_schema": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}],
    tool_choice={"type": "any"},
)


def both(claude):
    provider, tap = claude
    return provider.url, f"{tap.url}/as/blog/anthropic"


def test_anthropic_gets_the_same_objects(claude):
    ask = dict(model="claude-sonnet-test", max_tokens=100, messages=PROMPT,
               extra_headers={"x-used-output": "12"})
    seen = []
    for base in both(claude):
        client = anthropic.Anthropic(base_url=base, api_key="sk-ant-x", max_retries=0)
        whole = client.messages.create(**ask)
        with client.messages.stream(**ask) as stream:
            text = "".join(stream.text_stream)
            final = plain(stream.get_final_message())
        seen.append((plain(whole), text, final))
    assert seen[0] == seen[1]
    assert seen[1][2]["usage"]["output_tokens"] == 12


def test_anthropic_async_gets_the_same_objects(claude):
    async def ask(base):
        async with anthropic.AsyncAnthropic(base_url=base, api_key="k", max_retries=0) as client:
            async with client.messages.stream(
                model="claude-sonnet-test", max_tokens=100, messages=PROMPT
            ) as stream:
                return [type(event).__name__ async for event in stream]

    seen = [asyncio.run(ask(base)) for base in both(claude)]
    assert seen[0] == seen[1] and len(seen[0]) > 3


def test_tools_are_called_alike(claude):
    seen = []
    for base in both(claude):
        client = anthropic.Anthropic(base_url=base, api_key="k", max_retries=0)
        whole = client.messages.create(**ASK, **WEATHER)
        with client.messages.stream(**ASK, **WEATHER) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_message()
        for message in (whole, final):
            assert message.content[0].input == {"city": "seven"}
            message.content[0].id = ""
        result = [{"type": "tool_result", "tool_use_id": "t", "content": "rain"}]
        turn = [*PROMPT, {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "seven"}}]},
            {"role": "user", "content": result}]
        told = client.messages.create(**{**ASK, "messages": turn}, tools=WEATHER["tools"])
        seen.append((plain(whole), kinds, plain(final), plain(told)))
    assert seen[0] == seen[1]
    assert seen[0][3]["stop_reason"] == "end_turn"


@pytest.mark.parametrize("status, error", [
    (400, "BadRequestError"), (401, "AuthenticationError"), (403, "PermissionDeniedError"),
    (404, "NotFoundError"), (413, "ContentTooLargeError"), (500, "InternalServerError"),
    (529, "OverloadedError"),
])
def test_errors_are_the_sdk_s_own(claude, status, error):
    seen = []
    headers = {"x-fail": str(status), "x-standpipe-wait": "0"}
    for base in both(claude):
        client = anthropic.Anthropic(base_url=base, api_key="k", max_retries=0)
        found = caught(anthropic.APIStatusError,
                       lambda: client.messages.create(**ASK, extra_headers=headers), status)
        found[2].pop("request_id")
        seen.append(found)
    assert seen[0] == seen[1]
    assert seen[0][0] == error


def test_a_spent_budget_is_told_once(opened):
    provider = opened(Provider, "--shape", "anthropic", "--spent")
    tap = opened(Tap, anthropic=provider)
    client = anthropic.Anthropic(base_url=f"{tap.url}/anthropic", api_key="k")
    with pytest.raises(anthropic.RateLimitError, match="usage limits") as error:
        client.messages.create(**ASK)
    assert error.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(anthropic.RateLimitError, match="the provider stopped") as error:
        client.messages.create(**ASK)
    assert error.value.response.headers["x-standpipe-origin"] == "ledger"
    # The SDK's retries are on, but neither it nor the tap tries again; the second call is not
    # sent at all.
    assert len(provider.log()) == 1


def test_a_large_body_passes(claude):
    _, tap = claude
    client = anthropic.Anthropic(base_url=f"{tap.url}/anthropic", api_key="k", max_retries=0)
    prompt = [{"role": "user", "content": "a long prompt, " * 50_000}]
    answer = client.messages.create(model="claude-haiku-test", max_tokens=10, messages=prompt)
    assert answer.usage.input_tokens > 100_000


def test_a_stream_that_fails_midway_raises_the_sdk_s_own_error(claude):
    _, tap = claude
    client = anthropic.Anthropic(base_url=f"{tap.url}/anthropic", api_key="k", max_retries=0)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        with client.messages.stream(
            model="claude-sonnet-test", max_tokens=10, messages=PROMPT,
            extra_headers={"x-error-after": "3"},
        ) as stream:
            list(stream)


def test_a_refusal_of_the_tap_raises_the_sdk_s_rate_limit_error(claude):
    provider, tap = claude
    client = anthropic.Anthropic(base_url=f"{tap.url}/anthropic", api_key="k")
    client.messages.create(**ASK)
    subprocess.run([*tap.command, "pause", "anthropic/sonnet", "--for", "1h"],
                   env=tap.environment(), check=True, capture_output=True)
    with pytest.raises(anthropic.RateLimitError) as refused:
        client.messages.create(**ASK, extra_headers={"x-standpipe-wait": "0"})
    headers = refused.value.response.headers
    assert headers["x-standpipe-origin"] == "ledger"
    # The SDK's own retries were left on, but it obeys `x-should-retry`.
    assert len(provider.log()) == 1


def test_run_sends_a_program_through_the_tap(claude):
    provider, tap = claude
    program = textwrap.dedent("""
        import anthropic, sys
        client = anthropic.Anthropic(api_key="k", max_retries=0)
        client.messages.create(model="claude-sonnet-test", max_tokens=10,
                               messages=[{"role": "user", "content": "hello"}])
        sys.exit(7)
    """)
    done = tap.run(sys.executable, "-c", program)
    assert done.returncode == 7, done.stderr
    assert "nightly: 1 call," in done.stderr, done.stderr
    assert len(provider.log()) == 1


# In Node, which is ready sooner than Python.
STORM = """
    import Anthropic, { RateLimitError } from "@anthropic-ai/sdk";
    const [, baseURL, calls] = process.argv;
    const client = new Anthropic({ baseURL, apiKey: "k", maxRetries: 0 });
    const messages = [{ role: "user", content: "hello" }];
    let refused = 0;
    for (let call = 0; call < calls; call++) {
      try {
        await client.messages.create({ model: "claude-sonnet-test", max_tokens: 10, messages });
      } catch (error) {
        if (!(error instanceof RateLimitError)) throw error;
        refused++;
      }
    }
    console.log(refused);
"""


def storm(base, processes, calls):
    """Runs clients in processes of their own. Returns how many calls were refused."""
    def one(_):
        words = ["node", "--input-type=module", "-e", STORM, base, str(calls)]
        done = subprocess.run(words, check=True, capture_output=True, text=True, cwd=NODE)
        return int(done.stdout)

    with ThreadPoolExecutor(processes) as pool:
        return sum(pool.map(one, range(processes)))


def occupy(provider, calls):
    """Takes slots of the provider with calls that last longer than any test."""
    headers = {"x-api-key": "k", "x-service-ms": "600000", "content-type": "application/json"}
    body = json.dumps({"model": "claude-sonnet-test", "max_tokens": 10, "messages": PROMPT})
    connections = []
    for _ in range(calls):
        connection = http.client.HTTPConnection(provider.url.removeprefix("http://"))
        connection.request("POST", "/v1/messages", body, headers)
        connections.append(connection)
    while len(provider.log()) < calls:
        pass
    return connections


def test_processes_that_share_a_key_are_not_refused(opened):
    flags = ["--shape", "anthropic", "--parallel", "2", "--service-ms", "50"]
    alone = opened(Provider, *flags)
    slots = occupy(alone, 2)
    assert storm(alone.url, 4, 2) == 8, "without the tap"
    for slot in slots:
        slot.close()
    provider = opened(Provider, *flags)
    pool = '[pool."anthropic/sonnet"]\nmodels = ["claude-sonnet-*"]\nparallel = 2\n'
    tap = opened(Tap, pool, anthropic=provider)
    assert storm(f"{tap.url}/anthropic", 4, 8) == 0
    log = provider.log()
    assert len(log) == 32 and all(call["admitted"] for call in log)
