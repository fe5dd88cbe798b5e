"""Google's SDK for Python through the proxy: the same objects as without it."""

import asyncio

import pytest
from google import genai
from google.genai import errors, types

MODEL = "gemini-2.5-flash"
CITY = types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")})
WEATHER = types.GenerateContentConfig(
    tools=[types.Tool(function_declarations=[types.FunctionDeclaration(
        name="weather", description="the weather", parameters=CITY)])],
    tool_config=types.ToolConfig(
        function_calling_config=types.FunctionCallingConfig(mode="ANY")),
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)


def both(gemini, **headers):
    provider, tap = gemini
    for base in (provider.url, f"{tap.url}/as/blog/gemini"):
        options = types.HttpOptions(base_url=base, headers=headers)
        yield genai.Client(api_key="k", http_options=options)


def plain(answer):
    data = answer.model_dump()
    data.pop("sdk_http_response")
    return data


def test_content_is_the_same(gemini):
    seen = []
    for client in both(gemini, **{"x-used-output": "12"}):
        ask = dict(model=MODEL, contents="Say that it is done.")
        whole = plain(client.models.generate_content(**ask))
        stream = [plain(part) for part in client.models.generate_content_stream(**ask)]
        seen.append((whole, stream))
    assert seen[0] == seen[1]
    assert seen[0][1][-1]["usage_metadata"]["candidates_token_count"] == 12


def test_async_content_is_the_same(gemini):
    async def ask(client):
        stream = await client.aio.models.generate_content_stream(model=MODEL, contents="hello")
        return [plain(part) async for part in stream]

    seen = [asyncio.run(ask(client)) for client in both(gemini)]
    assert seen[0] == seen[1] and len(seen[0]) == 3


def test_tools_are_called_alike(gemini):
    seen = []
    for client in both(gemini):
        answer = client.models.generate_content(model=MODEL, contents="rain?", config=WEATHER)
        assert answer.function_calls[0].args == {"city": "seven"}
        seen.append(plain(answer))
    assert seen[0] == seen[1]


def test_tokens_and_embeddings_are_the_same(gemini):
    seen = []
    for client in both(gemini):
        count = client.models.count_tokens(model=MODEL, contents="hello").total_tokens
        vectors = client.models.embed_content(model="gemini-embedding-001", contents=["a", "b"])
        seen.append((count, [vector.values for vector in vectors.embeddings]))
    assert seen[0] == seen[1] and len(seen[0][1]) == 2


@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
def test_errors_are_the_sdk_s_own(gemini, status):
    seen = []
    for client in both(gemini, **{"x-fail": str(status), "x-standpipe-wait": "0"}):
        with pytest.raises(errors.APIError) as error:
            client.models.generate_content(model=MODEL, contents="hello")
        error = error.value
        seen.append((type(error).__name__, error.code, error.status, error.message))
    assert seen[0] == seen[1] and seen[0][1] == status
