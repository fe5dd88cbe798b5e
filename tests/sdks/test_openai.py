"""OpenAI's SDK for Python through the proxy: the same objects as without it."""

import asyncio

import openai
import pytest

from support import Provider, Tap, caught, plain

PROMPT = [{"role": "user", "content": "Say that it is done."}]
ASK = dict(model="gpt-4o", messages=PROMPT)
WEATHER = {"name": "weather", "description": "the weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


def both(gpt):
    provider, tap = gpt
    for base in (f"{provider.url}/v1", f"{tap.url}/as/blog/openai/v1"):
        yield openai.OpenAI(base_url=base, api_key="sk-x", max_retries=0)


def events(stream):
    """The events of a stream, without the names of calls and moments."""
    found = []
    for event in stream:
        data = event.model_dump()
        if data.get("response"):
            data["response"] = plain(event.response)
        found.append(data)
    return found


def test_chat_gets_the_same_objects(gpt):
    seen = []
    for client in both(gpt):
        ask = dict(ASK, extra_headers={"x-used-output": "12"})
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


def test_responses_get_the_same_objects(gpt):
    seen = []
    for client in both(gpt):
        ask = dict(model="gpt-4o", input="Say that it is done.")
        whole = client.responses.create(**ask)
        stream = events(client.responses.create(stream=True, **ask))
        seen.append((whole.output_text, plain(whole), stream))
    assert seen[0] == seen[1]
    assert seen[0][0] == "Done and done." and seen[0][2][-1]["type"] == "response.completed"


def test_tools_are_called_alike(gpt):
    seen = []
    for client in both(gpt):
        tools = dict(tools=[{"type": "function", "function": WEATHER}], tool_choice="required")
        whole = plain(client.chat.completions.create(**ASK, **tools))
        parts = [plain(part) for part in client.chat.completions.create(
            stream=True, **ASK, **tools)]
        for part in parts:
            part.pop("usage")
        tools = dict(tools=[{"type": "function", **WEATHER}], tool_choice="required")
        response = client.responses.create(model="gpt-4o", input="the weather?", **tools)
        stream = events(client.responses.create(
            model="gpt-4o", input="the weather?", stream=True, **tools))
        seen.append((whole["choices"], parts, plain(response), stream))
    assert seen[0] == seen[1]
    assert seen[0][2]["output"][0]["arguments"] == '{"city":"seven"}'


def test_embeddings_get_the_same_objects(gpt):
    seen = [client.embeddings.create(model="text-embedding-3-small", input=["a", "b"])
            for client in both(gpt)]
    assert plain(seen[0]) == plain(seen[1])
    assert [each.embedding for each in seen[1].data] == [[1.0, 0.5, 0.25]] * 2


def test_async_gets_the_same_objects(gpt):
    provider, tap = gpt

    async def ask(base):
        async with openai.AsyncOpenAI(base_url=base, api_key="k", max_retries=0) as client:
            stream = await client.chat.completions.create(stream=True, **ASK)
            calls = [client.chat.completions.create(**ASK) for _ in range(8)]
            text = "".join([part.choices[0].delta.content or "" async for part in stream])
            return text, [plain(each)["choices"] for each in await asyncio.gather(*calls)]

    bases = (f"{provider.url}/v1", f"{tap.url}/openai/v1")
    seen = [asyncio.run(ask(base)) for base in bases]
    assert seen[0] == seen[1] and seen[0][0] == "Done and done."


def test_a_large_body_passes(gpt):
    _, through = both(gpt)
    prompt = [{"role": "user", "content": "a long prompt, " * 50_000}]
    answer = through.chat.completions.create(model="gpt-4o", messages=prompt)
    assert answer.usage.prompt_tokens > 100_000


def test_lists_of_models_pass_through(gpt):
    seen = [[model.id for model in client.models.list()] for client in both(gpt)]
    assert seen[0] == seen[1] and seen[0]


@pytest.mark.parametrize("status, error", [
    (400, "BadRequestError"), (401, "AuthenticationError"), (403, "PermissionDeniedError"),
    (404, "NotFoundError"), (500, "InternalServerError"), (503, "InternalServerError"),
])
def test_errors_are_the_sdk_s_own(gpt, status, error):
    headers = {"x-fail": str(status), "x-standpipe-wait": "0"}
    seen = [caught(openai.APIStatusError, lambda: client.chat.completions.create(
        **ASK, extra_headers=headers), status) for client in both(gpt)]
    assert seen[0] == seen[1]
    assert seen[0][0] == error


def test_a_spent_budget_is_told_once(opened):
    provider = opened(Provider, "--shape", "openai", "--spent")
    tap = opened(Tap, openai=provider)
    client = openai.OpenAI(base_url=f"{tap.url}/openai/v1", api_key="k")
    with pytest.raises(openai.RateLimitError) as error:
        client.chat.completions.create(**ASK)
    assert error.value.code == "insufficient_quota"
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(**ASK)
    assert len(provider.log()) == 1


def test_a_stream_that_fails_midway_raises_the_sdk_s_own_error(gpt):
    seen = []
    for client in both(gpt):
        with pytest.raises(openai.APIError) as error:
            list(client.chat.completions.create(
                stream=True, **ASK, extra_headers={"x-error-after": "2"}))
        seen.append((type(error.value), error.value.body))
    assert seen[0] == seen[1]
