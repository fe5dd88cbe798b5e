"""The programs under test: the provider that enforces its limits, and a daemon in front of it.

Environment: STANDPIPE and PROVIDER are the programs.
"""

import json
import os
import subprocess
import urllib.request

STANDPIPE = os.environ["STANDPIPE"]
PROVIDER = os.environ["PROVIDER"]


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


class Tap:
    """A daemon whose providers are the given ones."""

    def __init__(self, home, config=None, **providers):
        lines = ["open_pools = true"]
        for name, provider in providers.items():
            lines += [f"[provider.{name}]", f'upstream = "{provider.url}"']
        self.config = home / "standpipe.toml"
        self.config.write_text("\n".join(lines) + "\n" + (config or ""))
        self.home = home / "state"
        self.command = [STANDPIPE, "--config", str(self.config)]
        self.process = subprocess.Popen(
            [*self.command, "--json", "--quiet", "up", "--listen", "127.0.0.1:0"],
            env=self.environment(), stdout=subprocess.PIPE, text=True,
        )
        self.url = json.loads(self.process.stdout.readline())["url"]

    def environment(self, **more):
        return {**os.environ, "STANDPIPE_HOME": str(self.home), **more}

    def run(self, *words, **more):
        """Runs a program through the tap with `standpipe run`."""
        return subprocess.run(
            [*self.command, "run", "--as", "nightly", "--priority", "background", "--", *words],
            env=self.environment(**more), capture_output=True, text=True, timeout=240,
            stdin=subprocess.DEVNULL,
        )

    def close(self):
        self.process.terminate()
        self.process.wait()


def plain(value):
    """An answer without what differs between two calls."""
    data = value.model_dump()
    for key in ("id", "created", "created_at", "_request_id", "sdk_http_response"):
        data.pop(key, None)
    return data


def caught(errors, call, status):
    """The error that a call ends with, as what a program can see of it."""
    try:
        call()
    except errors as error:
        assert error.status_code == status, error
        return type(error).__name__, status, error.body
    raise AssertionError(f"no error {status}")
