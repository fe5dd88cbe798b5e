"""The command line that is in the wheel, and a process that calls for long."""

import json
import os
import subprocess
import sys

import standpipe

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


def test_a_process_that_calls_for_long_keeps_its_size(home):
    program = os.path.join(os.path.dirname(__file__), "churn.py")
    done = subprocess.run([sys.executable, program, "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    # The first rounds fill caches and start the threads that stay.
    before, after = lines[1], lines[-1]
    assert after[0] <= before[0] and after[1] <= before[1]
    # 2,100 calls that leaked two kilobytes each would show.
    assert after[2] - before[2] < 4096
    assert standpipe.open().status("my/churn").in_flight == 0
