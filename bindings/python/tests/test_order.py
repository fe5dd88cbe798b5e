"""First come, first served, across languages: Python, the command line and the daemon's HTTP."""

import json
import subprocess
import sys

import pytest

import standpipe
from conftest import STANDPIPE

# Each waiter writes its name while it holds the only slot, so the lines are in order of admission.
BY_THREAD = """
import sys, standpipe
with standpipe.open().reserve("my/slots", agent=sys.argv[1], timeout=600):
    open(sys.argv[2], "a").write(sys.argv[1] + "\\n")
"""

BY_TASK = """
import asyncio, sys, standpipe
async def main():
    async with standpipe.open().areserve("my/slots", agent=sys.argv[1], timeout=600):
        open(sys.argv[2], "a").write(sys.argv[1] + "\\n")
asyncio.run(main())
"""

BY_HTTP = """
import json, sys, urllib.request
def post(path, **body):
    request = urllib.request.Request(sys.argv[3] + "/v1" + path, json.dumps(body).encode(),
        headers={"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))
lease = post("/leases", pool="my/slots", agent=sys.argv[1], timeout_ms=600000, ttl_ms=60000)["lease"]
open(sys.argv[2], "a").write(sys.argv[1] + "\\n")
post(f"/leases/{lease}/commit")
"""

FACES = ["thread", "shell", "http", "task", "http", "shell", "thread", "shell", "task"]


@pytest.fixture
def daemon(home):
    """The address of a daemon on the same store."""
    started = subprocess.Popen(
        [STANDPIPE, "--json", "--quiet", "up", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True)
    yield json.loads(started.stdout.readline())["url"]
    started.terminate()
    started.communicate()


def waiter(face, name, file, url):
    python = [sys.executable, "-c"]
    words = {
        "thread": [*python, BY_THREAD, name, file],
        "task": [*python, BY_TASK, name, file],
        "http": [*python, BY_HTTP, name, file, url],
        "shell": [STANDPIPE, "--quiet", "hold", "my/slots", "--as", name, "--timeout", "600s", "--",
                  "sh", "-c", 'echo "$0" >> "$1"', name, file],
    }[face]
    return subprocess.Popen(words)


def test_waiters_of_three_faces_are_served_in_the_order_of_their_arrival(tap, daemon, tmp_path):
    served = tmp_path / "served"
    expected = [f"{face}{number}" for number, face in enumerate(FACES)]
    waiters = []
    with tap.reserve("my/slots"):
        for face, name in zip(FACES, expected):
            waiters.append(waiter(face, name, str(served), daemon))
            # The next one starts when this one is in the queue.
            while [ticket["agent"] for ticket in tap.status("my/slots").tickets][-1:] != [name]:
                assert waiters[-1].poll() is None, f"{name} ended before it was queued"
        assert not served.exists()
    assert [one.wait() for one in waiters] == [0] * len(waiters)
    assert served.read_text().split() == expected
    status = tap.status("my/slots")
    assert (status.in_flight, status.waiting) == (0, 0)


def test_a_later_critical_call_of_another_face_goes_first(tap, daemon, tmp_path):
    served = tmp_path / "served"
    with tap.reserve("my/slots"):
        waiters = []
        for number, face in enumerate(["thread", "http", "shell"]):
            waiters.append(waiter(face, f"{face}0", str(served), daemon))
            while tap.status("my/slots").waiting <= number:
                assert waiters[-1].poll() is None
        urgent = [STANDPIPE, "--quiet", "hold", "my/slots", "--as", "urgent", "--priority",
                  "critical", "--timeout", "600s", "--", "sh", "-c", 'echo urgent >> "$0"', served]
        waiters.append(subprocess.Popen(urgent))
        while tap.status("my/slots").waiting <= 3:
            assert waiters[-1].poll() is None
    assert [one.wait() for one in waiters] == [0] * len(waiters)
    assert served.read_text().split() == ["urgent", "thread0", "http0", "shell0"]
