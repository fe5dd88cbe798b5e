"""The command line that is in the wheel, and a process that calls for long."""

import json
import os
import subprocess
import sys

import standpipe
from conftest import run

CLI = [sys.executable, "-m", "standpipe"]


def cli(*words):
    return subprocess.run([*CLI, *words], capture_output=True, text=True)


def test_the_command_line_shares_the_ledger_and_passes_exit_codes_through(tap):
    held = cli("hold", "my/slots", "--limit", "parallel=1", "--", "sh", "-c", "exit 7")
    assert held.returncode == 7, held.stderr
    with tap.reserve("my/slots"):
        late = cli("hold", "my/slots", "--timeout", "0s", "--", "true")
        assert late.returncode == 75 and "error:" in late.stderr
        status = json.loads(cli("--json", "status", "my/slots").stdout)
        assert "my/slots" in json.dumps(status)
    assert cli("no-such-command").returncode == 2
    script = os.path.join(os.path.dirname(sys.executable), "standpipe")
    assert subprocess.run([script, "--version"]).returncode == 0


def test_a_lease_of_the_command_line_is_committed_from_python(tap):
    tap.reserve("my/slots").commit()
    lease = cli("reserve", "my/slots", "--ttl", "10min").stdout.strip()
    assert tap.status("my/slots").in_flight == 1
    tap.commit(lease)
    assert tap.status("my/slots").in_flight == 0


def test_the_daemon_starts_in_the_background_and_ends(home):
    started = cli("--json", "up", "--detach", "--listen", "127.0.0.1:0")
    try:
        assert started.returncode == 0, started.stderr
        assert json.loads(started.stdout)["url"].startswith("http://127.0.0.1:")
    finally:
        assert cli("down").returncode == 0


CHURN = """
import asyncio, gc, os, resource, standpipe
tap = standpipe.open(limits={"my/churn": {"parallel": 3}})

def sync(calls):
    for number in range(calls):
        with tap.reserve("my/churn", agent=f"a{number % 5}") as lease:
            if number % 3 == 0:
                lease.cancel()
            elif number % 3 == 1:
                lease.commit()

async def cancelled(calls):
    for _ in range(calls):
        holds = [await tap.areserve("my/churn") for _ in range(3)]
        task = asyncio.ensure_future(tap.areserve("my/churn"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for lease in holds:
            await lease.acommit()

def usage():
    gc.collect()
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages // 256

def round():
    sync(600)
    asyncio.run(cancelled(50))
    return usage()

round(), round()
before, after = usage(), [round() for _ in range(3)][-1]
print(after[0] - before[0], after[1] - before[1], after[2] - before[2])
"""


def test_a_process_that_calls_for_long_keeps_its_size(home):
    descriptors, threads, megabytes = map(int, run(CHURN).split())
    assert descriptors <= 0 and threads <= 1
    # 1,800 calls that leaked two kilobytes each would show.
    assert megabytes < 4
    assert standpipe.open().status("my/churn").in_flight == 0
