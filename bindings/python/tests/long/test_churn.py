"""Ten minutes of calls with flat memory, descriptors and threads."""

import os
import statistics
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
    quarter = len(rounds) // 4
    # The first quarter fills caches; then the second is compared with the last.
    early, late = rounds[quarter:2 * quarter], rounds[-quarter:]
    for at, name in enumerate(["descriptors", "threads"]):
        assert max(one[at] for one in late) <= max(one[at] for one in early), name
    kilobytes = [statistics.median(one[2] for one in part) for part in (early, late)]
    record_property("calls", rounds[-1][3])
    record_property("kilobytes", kilobytes)
    assert kilobytes[1] - kilobytes[0] < 2048
    status = standpipe.open().status("my/churn")
    assert (status.in_flight, status.waiting) == (0, 0)
