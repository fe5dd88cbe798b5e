"""Processes: fork, spawn, pre-fork servers, and Python beside the command line and the daemon."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys

import pytest

import standpipe
from conftest import STANDPIPE, run


def forked(function):
    """Runs a function in a forked child and returns what it returned."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(function()).encode())
        except BaseException as error:  # noqa: BLE001
            os.write(write, json.dumps(f"{type(error).__name__}: {error}").encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        answer = json.load(answers)
    os.waitpid(child, 0)
    return answer


def test_a_lease_carried_over_a_fork_is_the_parent_s(tap):
    lease = tap.reserve("my/slots")

    def child():
        try:
            lease.commit()
        except standpipe.Error as error:
            return str(error)

    assert "belongs to the parent process" in forked(child)
    assert tap.status("my/slots").in_flight == 1, "the child changed nothing"
    lease.commit()
    assert tap.status("my/slots").in_flight == 0


def test_a_child_opens_the_store_again(tap):
    with tap.reserve("my/pair"):

        def child():
            with tap.reserve("my/pair", timeout=60):
                return tap.status("my/pair").in_flight

        assert forked(child) == 2
        assert tap.status("my/pair").in_flight == 1


def test_a_child_may_use_asyncio_although_the_parent_did(tap):
    import asyncio

    async def waits():
        async with tap.areserve("my/slots"):
            other = asyncio.ensure_future(tap.areserve("my/slots"))
            while tap.status("my/slots").waiting == 0:
                await asyncio.sleep(0)
        (await other).commit()
        return True

    assert asyncio.run(waits())
    assert forked(lambda: asyncio.run(waits())) is True
    assert asyncio.run(waits())


def work(calls):
    """What a worker of a pool does: hold the slot and look who else does."""
    tap = standpipe.open(limits={"my/pair": {"parallel": 2}})
    most = 0
    for _ in range(calls):
        with tap.reserve("my/pair", timeout=120):
            most = max(most, tap.status("my/pair").in_flight)
    return most


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(method, tap):
    tap.reserve("my/pair").commit()
    with multiprocessing.get_context(method).Pool(3) as pool:
        assert max(pool.map(work, [5, 5, 5])) <= 2
    assert tap.status("my/pair").in_flight == 0


PREFORK = """
import os, sys, standpipe
tap = standpipe.open(limits={"my/slots": {"parallel": 1}})
with tap.reserve("my/slots"):
    pass
workers = []
for number in range(4):
    child = os.fork()
    if child == 0:
        for _ in range(10):
            with tap.reserve("my/slots", agent=f"worker{number}", timeout=120):
                try:
                    os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    os._exit(1)
                os.unlink(sys.argv[1])
        os._exit(0)
    workers.append(child)
print(sum(os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in workers))
"""


def test_workers_of_a_pre_fork_server_share_the_tap_of_their_parent(home, tmp_path):
    assert run(PREFORK, tmp_path / "slot") == "0\n"


BY_LIBRARY = """
import sys, urllib.request, standpipe
tap = standpipe.open()
while True:
    with tap.reserve("my/calls", agent="python", timeout=600):
        urllib.request.urlopen(sys.argv[1] + "/call", b"{}").read()
    print(flush=True)
"""

BY_DAEMON = """
import json, sys, urllib.request
def post(path, **body):
    request = urllib.request.Request(sys.argv[2] + "/v1" + path, json.dumps(body).encode(),
        headers={"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))
while True:
    lease = post("/leases", pool="my/calls", agent="http", timeout_ms=600000, ttl_ms=60000)["lease"]
    urllib.request.urlopen(sys.argv[1] + "/call", b"{}").read()
    post(f"/leases/{lease}/commit")
    print(flush=True)
"""

BY_SHELL = """
while :; do
    "$0" --quiet hold my/calls --as shell --timeout 600s -- "$1" -c \
        'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], b"{}").read()' "$2/call"
    echo
done
"""


def test_library_command_line_and_daemon_are_never_over_although_killed(provider, home):
    """Real processes of three faces on one pool, killed at random by seed; the provider enforces
    the limit and logs every call, so its log is the referee."""
    referee, rng = provider("--requests", "20/s"), random.Random(21)
    # The tap keeps the calls of 4 s apart and the provider counts those of 1 s, so a call may be
    # on its way for 3 s on a slow machine before this means anything else than it should.
    standpipe.open(limits={"my/calls": {"requests": "20/4s"}}).reserve("my/calls").commit()
    daemon = subprocess.Popen(
        [STANDPIPE, "--json", "--quiet", "up", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE, text=True)
    url = json.loads(daemon.stdout.readline())["url"]

    def start(face):
        words = {
            "library": [sys.executable, "-c", BY_LIBRARY, referee.url],
            "daemon": [sys.executable, "-c", BY_DAEMON, referee.url, url],
            "shell": ["bash", "-c", BY_SHELL, STANDPIPE, sys.executable, referee.url],
        }[face]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)

    faces = ["library", "library", "daemon", "shell"]
    callers = [start(face) for face in faces]
    try:
        for _ in range(5):
            # Every caller makes a call, then one is killed wherever it is.
            for caller in callers:
                assert caller.stdout.readline()
            at = rng.randrange(len(callers))
            os.killpg(callers[at].pid, signal.SIGKILL)
            callers[at].communicate()
            callers[at] = start(faces[at])
        for caller in callers:
            assert caller.stdout.readline()
    finally:
        for caller in callers:
            os.killpg(caller.pid, signal.SIGKILL)
            caller.communicate()
        daemon.terminate()
        daemon.wait()
    log = referee.log()
    assert len(log) >= 24
    assert [call for call in log if not call["admitted"]] == []
