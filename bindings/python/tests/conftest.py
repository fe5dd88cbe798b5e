"""What the tests share: the enforcing provider, programs, and taps with a directory of their own.

Environment: STANDPIPE and PROVIDER are the programs under test.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import standpipe

ROOT = Path(__file__).resolve().parents[3]
BUILT = ROOT / "target" / "debug"
STANDPIPE = os.environ.get("STANDPIPE", str(BUILT / "standpipe"))
PROVIDER = os.environ.get("PROVIDER", str(BUILT / "provider"))
PROMPT = [{"role": "user", "content": "Say that it is done."}]


class Provider:
    """The enforcing provider in a process of its own."""

    def __init__(self, *flags):
        self.process = subprocess.Popen(
            [PROVIDER, "--stdin", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.url = self.process.stdout.readline().strip()

    def log(self):
        with urllib.request.urlopen(f"{self.url}/log") as answer:
            return [json.loads(line) for line in answer.read().splitlines()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture
def provider():
    """Starts providers that end with the test."""
    started = []

    def start(*flags):
        started.append(Provider(*flags))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A state directory of the test's own, and nothing of the user's configuration."""
    path = tmp_path / "state"
    monkeypatch.setenv("STANDPIPE_HOME", str(path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("STANDPIPE_CONFIG", "STANDPIPE_AGENT", "STANDPIPE_PRIORITY"):
        monkeypatch.delenv(name, raising=False)
    return path


@pytest.fixture
def tap(home):
    """A tap on the file store with some pools."""
    return standpipe.open(
        limits={
            "my/slots": {"parallel": 1},
            "my/pair": {"parallel": 2},
            "my/api": {"requests": "1000/min", "tokens": "100k/min"},
        }
    )


def run(program, *words, **options):
    """Runs Python code in a process of its own and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def threads():
    """Returns how many threads this process has."""
    return len(os.listdir("/proc/self/task"))
