"""The real SDKs through the proxy, against the provider that enforces its limits.

Environment: STANDPIPE and PROVIDER are the programs under test.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import textwrap
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pytest

STANDPIPE = os.environ["STANDPIPE"]
PROVIDER = os.environ["PROVIDER"]
PROMPT = [{"role": "user", "content": "Say that it is done."}]


class Provider:
    """The enforcing provider in a process of its own."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [PROVIDER, "--stdin", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()

    def log(self):
        with urllib.request.urlopen(f"{self.url}/log") as answer:
            return [json.loads(line) for line in answer.read().splitlines()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Tap:
    """A daemon whose providers are the given ones."""

    def __init__(self, home, config=None, **providers):
        lines = ["open_pools = true"]
        for name, provider in providers.items():
            lines += [f"[provider.{name}]", f'upstream = "{provider.url}"']
        self.config = home / "standpipe.toml"
        self.config.write_text("\n".join(lines) + "\n" + (config or ""))
        self.home = home / "state"
        self.command = [STANDPIPE, "--config", str(self.config)]
        self.process = subprocess.Popen(
            [*self.command, "--json", "--quiet", "up", "--listen", "127.0.0.1:0"],
            env=self.environment(), stdout=subprocess.PIPE, text=True,
        )
        self.url = json.loads(self.process.stdout.readline())["url"]

    def environment(self):
        return {**os.environ, "STANDPIPE_HOME": str(self.home)}

    def close(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def opened(tmp_path):
    """Starts providers and taps that end with the test."""
    things = []

    def open_(kind, *args, **kwargs):
        thing = kind(tmp_path, *args, **kwargs) if kind is Tap else kind(*args, **kwargs)
        things.append(thing)
        return thing

    yield open_
    for thing in reversed(things):
        thing.close()


@pytest.fixture
def claude(opened):
    provider = opened(Provider, "--shape", "anthropic", "--requests", "1000/min")
    return provider, opened(Tap, anthropic=provider)


@pytest.fixture
def gpt(opened):
    provider = opened(Provider, "--shape", "openai", "--requests", "1000/min")
    return provider, opened(Tap, openai=provider)


def plain(value):
    """An answer without what differs between two calls."""
    data = value.model_dump()
    for key in ("id", "created", "_request_id"):
        data.pop(key, None)
    return data


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


def test_openai_gets_the_same_objects(gpt):
    provider, tap = gpt
    seen = []
    for base in (f"{provider.url}/v1", f"{tap.url}/as/blog/openai/v1"):
        client = openai.OpenAI(base_url=base, api_key="sk-x", max_retries=0)
        ask = dict(model="gpt-4o", messages=PROMPT, extra_headers={"x-used-output": "12"})
        whole = plain(client.chat.completions.create(**ask))
        chunks = [plain(chunk) for chunk in client.chat.completions.create(stream=True, **ask)]
        counted = list(client.chat.completions.create(
            stream=True, stream_options={"include_usage": True}, **ask))
        # The size of the prompt is estimated from the body, which the proxy makes longer.
        assert counted[-1].usage.completion_tokens == 12
        for chunk in chunks:
            assert chunk.pop("usage") is None
        seen.append((whole["choices"], chunks))
    assert seen[0] == seen[1]


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
    ask = dict(model="claude-sonnet-test", max_tokens=10, messages=PROMPT)
    client.messages.create(**ask)
    subprocess.run([*tap.command, "pause", "anthropic/sonnet", "--for", "1h"],
                   env=tap.environment(), check=True, capture_output=True)
    with pytest.raises(anthropic.RateLimitError) as refused:
        client.messages.create(**ask, extra_headers={"x-standpipe-wait": "0"})
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
    done = subprocess.run(
        [*tap.command, "run", "--as", "nightly", "--priority", "background", "--",
         sys.executable, "-c", program],
        env=tap.environment(), capture_output=True, text=True,
    )
    assert done.returncode == 7, done.stderr
    assert "nightly: 1 call," in done.stderr, done.stderr
    assert len(provider.log()) == 1


STORM = textwrap.dedent("""
    import anthropic, sys
    client = anthropic.Anthropic(base_url=sys.argv[1], api_key="k", max_retries=0)
    refused = 0
    for _ in range(int(sys.argv[2])):
        try:
            client.messages.create(model="claude-sonnet-test", max_tokens=10,
                                   messages=[{"role": "user", "content": "hello"}])
        except anthropic.RateLimitError:
            refused += 1
    print(refused)
""")


def storm(base, processes, calls):
    """Runs clients in processes of their own. Returns how many calls were refused."""
    def one(_):
        words = [sys.executable, "-c", STORM, base, str(calls)]
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

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
