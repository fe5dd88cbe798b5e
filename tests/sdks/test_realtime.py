"""OpenAI's SDK for Python over a WebSocket through the proxy: the same events as without it."""

import asyncio
import json
import time
import urllib.request

import openai
import pytest
import websockets

from support import Provider, Tap

POOL = ('[pool."openai/realtime"]\nmodels = ["gpt-realtime*"]\nrequests = "100/h"\n'
        'tokens = "10k/h"\nparallel = 1\n')
ITEM = {"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "Say that it is done."}]}
LAST = "response.done"


@pytest.fixture
def voice(opened):
    provider = opened(Provider, "--shape", "openai", "--requests", "1000/min")
    return provider, opened(Tap, POOL, openai=provider)


def bases(voice):
    provider, tap = voice
    return f"{provider.url}/v1", f"{tap.url}/as/voice/openai/v1"


def talk(connection):
    connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
    connection.conversation.item.create(item=ITEM)
    connection.response.create()
    events = []
    for event in connection:
        events.append(event.model_dump())
        if event.type == LAST:
            return events


def pool(tap):
    """The pool once nothing is in flight."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{tap.url}/v1/pools") as answer:
            found = {each["pool"]: each for each in json.load(answer)["pools"]}["openai/realtime"]
        if found["in_flight"] == 0:
            return found
        time.sleep(0.05)
    raise AssertionError(f"a session is still in flight: {found}")


def used(found):
    return {each["unit"]: each["used"] for each in found["limits"] if "unit" in each}


def test_sessions_get_the_same_events_and_count_their_tokens(voice):
    _, tap = voice
    seen = []
    for base in bases(voice):
        client = openai.OpenAI(base_url=base, api_key="sk-x", max_retries=0)
        with client.realtime.connect(model="gpt-realtime") as connection:
            seen.append([talk(connection), talk(connection)])
    assert seen[0] == seen[1]
    kinds = [event["type"] for event in seen[0][0]]
    assert kinds[0] == "session.created" and kinds[-1] == LAST
    text = "".join(event.get("delta") or "" for event in seen[0][0])
    assert text == "Done and done."
    # One request, two responses of 25 tokens.
    amounts = used(pool(tap))
    assert (amounts["requests"], amounts["tokens"]) == (1, 50)


def test_an_async_session_that_is_dropped_frees_the_slot(voice):
    _, tap = voice

    async def dropped(base):
        client = openai.AsyncOpenAI(base_url=base, api_key="k", max_retries=0)
        async with client.realtime.connect(model="gpt-realtime") as connection:
            await connection.response.create()
            async for event in connection:
                if event.type == LAST:
                    break
            # No closing handshake.
            connection._connection.transport.abort()

    for _ in range(2):
        asyncio.run(dropped(bases(voice)[1]))
        pool(tap)


def test_a_full_pool_is_an_error_of_the_handshake(voice):
    _, tap = voice
    client = openai.OpenAI(base_url=bases(voice)[1], api_key="k", max_retries=0)
    with client.realtime.connect(model="gpt-realtime"):
        with pytest.raises(websockets.exceptions.InvalidStatus) as error:
            client.realtime.connect(
                model="gpt-realtime", extra_headers={"x-standpipe-wait": "0"}).enter()
    assert error.value.response.status_code == 429
    pool(tap)
