"""The snippets of docs/clients.md whose clients are quick to install."""

import json

import pytest

from guides import Guide


@pytest.fixture
def guide(opened, tmp_path):
    return Guide(opened, tmp_path)


def test_openai(guide):
    assert guide.python("Aider and other programs for OpenAI's API") == "Done.\n"


def test_gemini(guide):
    assert guide.python("Google's SDK") == "Done.\n"


def test_vercel(guide):
    assert guide.node("Vercel AI SDK").splitlines() == ["Done.", "Done and done."]
    assert guide.calls() == 2


def test_octokit(guide):
    assert guide.node("Octokit") == "3\n"
    assert guide.calls() == 3


def test_gh(guide):
    assert guide.shell("gh").splitlines() == ["a leak"] * 3
    assert guide.calls() == 3


def test_curl(guide):
    assert json.loads(guide.shell("curl"))["role"] == "assistant"
