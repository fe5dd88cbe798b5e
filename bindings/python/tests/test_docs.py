"""Everything the documentation shows is executed."""

import doctest
import importlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT

MODULES = [
    "standpipe", "standpipe._context", "standpipe._httpx", "standpipe._limited",
    "standpipe._requests", "standpipe._retry", "standpipe._status", "standpipe._tap",
    "standpipe.testing",
]
PAGES = [
    "README.md", "docs/python.md", "docs/recipes/celery.md", "docs/recipes/temporal.md",
    "docs/recipes/own-limiter.md", "bindings/python/README.md",
]


def blocks(page):
    """Yields the Python blocks of a page with the headings above them."""
    heading = ""
    text = (ROOT / page).read_text()
    for part in re.split(r"^(#+ [^\n]*|```python\n.*?^```)$", text, flags=re.M | re.S):
        if part.startswith("#"):
            heading = part.strip("# ")
        elif part.startswith("```python"):
            yield heading, part[len("```python\n"):-len("```")]


EXAMPLES = [
    pytest.param(code, id=f"{page.split('/')[-1]}: {heading} {number}")
    for page in PAGES
    for number, (heading, code) in enumerate(blocks(page))
]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0 and found.attempted > 0


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_block_of_a_page(code, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_pages_have_examples():
    assert len(EXAMPLES) > 12
