"""Celery with a real Redis broker: forked workers share the tap that their module opened."""

import os
import subprocess
import sys

import celery
import pytest
import redis

import standpipe

JOBS = '''
import os
import celery, standpipe

app = celery.Celery("jobs", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
tap = standpipe.open(limits={"my/slots": {"parallel": 1}})

@app.task(bind=True, max_retries=None)
def work(self, number):
    try:
        with tap.reserve("my/slots", agent="celery", timeout=120):
            # Nobody else may be here: the file must not exist.
            os.close(os.open(os.environ["SLOT"], os.O_CREAT | os.O_EXCL))
            os.unlink(os.environ["SLOT"])
            return [number, os.getpid()]
    except standpipe.Timeout as refused:
        raise self.retry(countdown=refused.retry_after or 1, exc=refused)
'''


@pytest.fixture
def broker(tmp_path):
    """A Redis server of the test's own, on a socket in its directory."""
    path = tmp_path / "redis.sock"
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", "",
         "--dir", str(tmp_path)], stdout=subprocess.PIPE, text=True)
    for line in server.stdout:
        if "ready to accept connections" in line.lower():
            break
    assert redis.Redis(unix_socket_path=str(path)).ping()
    yield f"redis+socket://{path}"
    server.terminate()
    server.communicate()


def test_workers_take_turns(broker, tmp_path, monkeypatch):
    (tmp_path / "jobs.py").write_text(JOBS)
    monkeypatch.setenv("BROKER", broker)
    monkeypatch.setenv("SLOT", str(tmp_path / "slot"))
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "jobs", "worker", "--pool", "prefork", "-c", "3",
         "--without-gossip", "--without-mingle", "--without-heartbeat"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        app = celery.Celery("client", broker=broker, backend=broker)
        sent = [app.send_task("jobs.work", [number]) for number in range(12)]
        done = [result.get(timeout=240) for result in sent]
    finally:
        worker.terminate()
        worker.wait()
    assert [number for number, _ in done] == list(range(12))
    status = standpipe.open().status("my/slots")
    assert (status.in_flight, status.waiting) == (0, 0)
