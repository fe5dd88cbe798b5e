"""The snippets of docs/clients.md, run as they are printed."""

import pathlib
import re
import shutil
import sys

from support import STANDPIPE, Provider, Tap

HERE = pathlib.Path(__file__).parent
PAGE = (HERE.parent.parent / "docs/clients.md").read_text()
PROVIDERS = ["anthropic", "gemini", "github", "openai"]
NAMES = ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GH_TOKEN", "GITHUB_TOKEN", "OPENAI_API_KEY"]
KEYS = dict.fromkeys(NAMES, "k")


def snippet(section):
    """The code of a section."""
    (text,) = re.findall(rf"^## {section}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    (code,) = re.findall(r"^```\w+\n(.*?)^```$", text, re.M | re.S)
    return code


class Guide:
    """A daemon in front of all providers, and what the snippets print."""

    def __init__(self, opened, home):
        self.providers = {name: opened(Provider, "--shape", name, "--requests", "1000/min")
                          for name in PROVIDERS}
        self.tap = opened(Tap, **self.providers)
        self.home = home

    def run(self, *words):
        done = self.tap.run(*words, HOME=str(self.home), **KEYS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def calls(self):
        """How many calls reached the providers."""
        return sum(len(provider.log()) for provider in self.providers.values())

    def python(self, section):
        return self.run(sys.executable, "-c", snippet(section))

    def node(self, section):
        self.home.joinpath("snippet.mjs").write_text(snippet(section))
        link = self.home / "node_modules"
        link.symlink_to(HERE / "node/node_modules")
        return self.run("node", str(self.home / "snippet.mjs"))

    def shell(self, section, programs=None):
        """Runs a line of a shell in which `standpipe` is the one under test."""
        tools = self.home / "bin"
        tools.mkdir()
        flags = f"--config {self.tap.config}"
        tools.joinpath("standpipe").write_text(f'#!/bin/sh\nexec {STANDPIPE} {flags} "$@"\n')
        tools.joinpath("standpipe").chmod(0o755)
        path = f"{tools}:{programs or ''}:{pathlib.Path(shutil.which('sh')).parent}"
        return self.run("sh", "-c", f"PATH={path}:$PATH\n{snippet(section)}")
