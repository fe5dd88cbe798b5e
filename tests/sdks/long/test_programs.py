"""The command lines of Anthropic and OpenAI, as the guides start them."""

import pathlib

import pytest

from guides import Guide

PROGRAMS = pathlib.Path(__file__).parent / "node_modules/.bin"


@pytest.fixture
def guide(opened, tmp_path):
    return Guide(opened, tmp_path)


def messages(guide, name):
    log = guide.providers[name].log()
    return [call for call in log if call["path"] in ("/v1/messages", "/v1/responses")]


def test_claude_code(guide):
    assert guide.shell("Claude Code", PROGRAMS) == "Done and done.\n"
    (call,) = messages(guide, "anthropic")
    assert call["admitted"] and call["input"] > 1_000


def test_codex(guide):
    assert guide.shell("Codex CLI", PROGRAMS) == "Done and done.\n"
    (call,) = messages(guide, "openai")
    assert call["admitted"] and call["input"] > 1_000
    assert call["key"] == "k", "its own key passes"
