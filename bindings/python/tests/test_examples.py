"""The programs in `examples/python`, with real processes, against the enforcing provider."""

import subprocess
import sys

import pytest

from conftest import ROOT

EXAMPLES = ROOT / "examples" / "python"


def example(name, *words):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(provider):
    return [call for call in provider.log() if not call["admitted"]]


def test_five_jobs_share_a_quota(provider):
    # The tap keeps the calls of 4 s apart and the provider counts those of 1 s, so a call may be
    # on its way for 3 s on a slow machine before this means anything else than it should.
    api = provider("--requests", "20/s")
    assert "demo/quota" in example("shared_quota.py", api.url, "4", "20/4s")
    assert len(api.log()) == 20 and refused(api) == []


def test_scripts_share_slots_although_one_crashed(provider):
    api = provider("--parallel", "2")
    assert "in flight at the end: 0" in example("slots.py", api.url, "4")
    assert len(api.log()) == 12 and refused(api) == []


def test_the_critical_agent_goes_first(provider):
    printed = example("governor.py", provider().url)
    served = [line.split()[0] for line in printed.splitlines() if line.endswith("was served")]
    assert served == ["picard", "data", "ralph"]


def test_workers_with_an_sdk_are_not_refused(provider):
    api = provider("--shape", "anthropic", "--requests", "600/min", "--parallel", "2")
    example("workers.py", api.url, "3")
    assert len(api.log()) == 6 and refused(api) == []


def test_sub_agents_keep_the_rate(provider):
    api = provider("--requests", "20/s")
    assert "24 calls, 0 refused" in example("sub_agents.py", api.url, "4", "20/4s")
    assert refused(api) == []


def test_every_example_is_run_here():
    named = {path.name for path in EXAMPLES.glob("*.py")}
    assert named == {
        "shared_quota.py", "slots.py", "governor.py", "workers.py", "sub_agents.py"}


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_says_how_to_call_it(program):
    assert f"python {program.name} URL" in program.read_text()
