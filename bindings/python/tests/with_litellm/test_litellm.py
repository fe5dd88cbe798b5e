"""The callback for LiteLLM, with the real LiteLLM against the provider that enforces its limits."""

import asyncio
import os
import threading

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import pytest

import standpipe
from conftest import PROMPT
from standpipe.litellm import StandpipeCallback

POOL = "openai/gpt-4o"
ASK = dict(model="openai/gpt-4o", messages=PROMPT, api_key="k", num_retries=0, max_retries=0)


@pytest.fixture
def tap(tmp_path, monkeypatch):
    config = tmp_path / "standpipe.toml"
    config.write_text(
        f'[pool."{POOL}"]\nmodels = ["gpt-4o*"]\nmargin = 0\n'
        'requests = { rate = "1000/min", kind = "window" }\n'
        'output_tokens = { rate = "100k/min", kind = "window" }\n')
    tap = standpipe.open(config=config)
    monkeypatch.setattr(litellm, "callbacks", [StandpipeCallback(tap=tap, agent="blog")])
    yield tap
    # LiteLLM copies its callbacks into other lists, which keep them.
    litellm.logging_callback_manager._reset_all_callbacks()


@pytest.fixture
def ask(provider):
    server = provider("--shape", "openai", "--requests", "1000/min")
    return dict(ASK, api_base=f"{server.url}/v1", extra_headers={"x-used-output": "12"})


def settled(tap):
    """Returns what was used, once LiteLLM has called back: it does so on a thread of its own."""
    while tap.status(POOL).in_flight:
        pass
    return [limit["used"] for limit in tap.status(POOL).limits]


def test_a_call_is_reserved_and_charged_with_its_usage(tap, ask):
    assert litellm.completion(**ask).usage.completion_tokens == 12
    assert settled(tap) == [1, 12]
    assert [agent["name"] for agent in tap.status(POOL).agents] == ["blog"]


def test_calls_of_tasks_are_charged(tap, ask):
    async def main():
        answers = await asyncio.gather(*(litellm.acompletion(**ask) for _ in range(3)))
        # LiteLLM reports from tasks of this loop.
        while tap.status(POOL).in_flight:
            await asyncio.sleep(0)
        return answers

    assert len(asyncio.run(main())) == 3
    assert settled(tap) == [3, 36]


def test_a_stream_is_charged_when_it_ends(tap, ask):
    chunks = litellm.completion(stream=True, stream_options={"include_usage": True}, **ask)
    assert len(list(chunks)) > 2
    assert settled(tap) == [1, 12]


def test_a_429_pauses_everyone(tap, provider):
    server = provider("--shape", "openai", "--requests", "1/min")
    ask = dict(ASK, api_base=f"{server.url}/v1")
    litellm.completion(**ask)
    with pytest.raises(litellm.RateLimitError):
        litellm.completion(**ask)
    settled(tap)
    assert tap.peek(POOL).reason == "pause"


def test_a_call_that_must_wait_is_not_sent(tap, provider):
    server = provider("--shape", "openai")
    tap.pause(POOL, 3600)
    call = threading.Thread(
        target=litellm.completion, kwargs=dict(ASK, api_base=f"{server.url}/v1"))
    call.start()
    while tap.status(POOL).waiting == 0:
        assert call.is_alive()
    assert server.log() == []
    tap.resume(POOL)
    call.join()
    assert len(server.log()) == 1
