"""Ten minutes of calls with flat memory, descriptors and threads."""

import os
import subprocess
import sys

import standpipe

SECONDS, FIRST = 600, 30_000


def test_ten_minutes_of_calls_leave_memory_and_descriptors_flat(home, record_property):
    program = os.path.join(os.path.dirname(os.path.dirname(__file__)), "churn.py")
    done = subprocess.run(
        [sys.executable, program, "8", str(SECONDS), str(FIRST)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rounds = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    # The library's bounded records of a process's own calls grow at first.
    late = rounds[-len(rounds) // 4:]
    early = rounds[: len(rounds) // 4]
    for at, name in enumerate(["descriptors", "threads"]):
        assert max(one[at] for one in late) <= max(one[at] for one in early), name
    grown = late[-1][2] - late[0][2]
    record_property("calls", rounds[-1][3])
    record_property("kilobytes", [rounds[0][2], late[0][2], late[-1][2]])
    assert grown < 1024
    status = standpipe.open().status("my/churn")
    assert (status.in_flight, status.waiting) == (0, 0)
