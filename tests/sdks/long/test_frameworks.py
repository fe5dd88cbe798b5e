"""LangChain and LiteLLM through the proxy: the same objects as without it."""

import asyncio
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import anthropic
import litellm
import openai
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from guides import Guide

PROMPT = "Say that it is done."


def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def plain(message):
    data = message.model_dump()
    data.pop("id")
    data["response_metadata"].pop("id", None)
    for call in data.get("tool_calls", []):
        call.pop("id")
    data.pop("content") if isinstance(data["content"], list) else None
    return data


def chat_anthropic(base, **headers):
    return ChatAnthropic(model="claude-sonnet-test", api_key="k", base_url=base, max_retries=0,
                         default_headers=headers)


def chat_openai(base, **headers):
    return ChatOpenAI(model="gpt-4o", api_key="k", base_url=f"{base}/v1", max_retries=0,
                      default_headers=headers)


def bases(pair, name):
    provider, tap = pair
    return provider.url, f"{tap.url}/as/blog/{name}"


@pytest.mark.parametrize("fixture, name, chat, error", [
    ("claude", "anthropic", chat_anthropic, anthropic.AuthenticationError),
    ("gpt", "openai", chat_openai, openai.AuthenticationError),
])
def test_langchain(request, fixture, name, chat, error):
    async def later(model):
        return "".join([part.text async for part in model.astream(PROMPT)])

    seen = []
    for base in bases(request.getfixturevalue(fixture), name):
        model = chat(base)
        tools = model.bind_tools([weather], tool_choice="any")
        with pytest.raises(error):
            chat(base, **{"x-fail": "401"}).invoke(PROMPT)
        seen.append((plain(model.invoke(PROMPT)), "".join(p.text for p in model.stream(PROMPT)),
                     asyncio.run(later(model)), plain(tools.invoke(PROMPT))))
    assert seen[0] == seen[1]
    assert seen[0][1] == "Done and done."
    assert seen[0][3]["tool_calls"][0]["args"] == {"city": "seven"}


@pytest.mark.parametrize("fixture, name, model", [
    ("claude", "anthropic", "anthropic/claude-sonnet-test"), ("gpt", "openai", "openai/gpt-4o"),
])
def test_litellm(request, fixture, name, model):
    seen = []
    for base in bases(request.getfixturevalue(fixture), name):
        ask = dict(model=model, api_key="k", num_retries=0, max_retries=0, max_tokens=10,
                   api_base=base if name == "anthropic" else f"{base}/v1",
                   messages=[{"role": "user", "content": PROMPT}])
        function = {"name": "weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string"}}}}
        tools = dict(tools=[{"type": "function", "function": function}], tool_choice="required")
        whole = litellm.completion(**ask).choices[0].message.content
        stream = [part.choices[0].delta.content for part in litellm.completion(stream=True, **ask)]
        later = asyncio.run(litellm.acompletion(**ask)).choices[0].message.content
        called = litellm.completion(**ask, **tools).choices[0].message.tool_calls[0].function
        errors = []
        for status in (401, 404):
            with pytest.raises(openai.APIStatusError) as error:
                litellm.completion(**ask, extra_headers={"x-fail": str(status)})
            errors.append((type(error.value), error.value.status_code))
        seen.append((whole, stream, later, called.arguments, errors))
    assert seen[0] == seen[1]
    assert seen[0][4][0] == (litellm.AuthenticationError, 401)


@pytest.mark.parametrize("section", ["LangChain", "LiteLLM"])
def test_guide(opened, tmp_path, section):
    guide = Guide(opened, tmp_path)
    assert guide.python(section) == "Done.\nDone.\n"
    assert guide.calls() == 2
