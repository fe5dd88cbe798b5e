"""Providers and daemons that end with the test."""

import pytest

from support import Provider, Tap


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


def fixture(shape, name):
    @pytest.fixture
    def pair(opened):
        provider = opened(Provider, "--shape", shape, "--requests", "1000/min")
        return provider, opened(Tap, **{name: provider})

    return pair


claude = fixture("anthropic", "anthropic")
gpt = fixture("openai", "openai")
gemini = fixture("gemini", "gemini")
github = fixture("github", "github")
