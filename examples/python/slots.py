"""Independent scripts make at most two calls at a time: a semaphore across processes.

The slot of a script that crashes is free at once; no stale entry has to time out.

    python slots.py URL [SCRIPTS]
"""

import subprocess
import sys
import urllib.request

import standpipe


def script(url: str) -> None:
    tap = standpipe.open(limits={"demo/slots": {"parallel": 2}})
    for _ in range(3):
        with tap.reserve("demo/slots", timeout=60):
            urllib.request.urlopen(f"{url}/call", b"{}").read()


def crash() -> None:
    """Takes a slot and dies with it."""
    lease = standpipe.open(limits={"demo/slots": {"parallel": 2}}).reserve("demo/slots")
    print("took", lease.id, flush=True)
    import os

    os._exit(9)


def main(url: str, scripts: int) -> None:
    crashed = subprocess.run([sys.executable, __file__, url, "0", "crash"], stdout=subprocess.PIPE)
    assert crashed.returncode == 9
    running = [
        subprocess.Popen([sys.executable, __file__, url, "0", "script"]) for _ in range(scripts)
    ]
    failed = sum(one.wait() != 0 for one in running)
    print("in flight at the end:", standpipe.open().status("demo/slots").in_flight)
    sys.exit(f"{failed} scripts failed" if failed else 0)


if __name__ == "__main__":
    target = sys.argv[1]
    role = sys.argv[3] if len(sys.argv) > 3 else "main"
    if role == "crash":
        crash()
    elif role == "script":
        script(target)
    else:
        main(target, int(sys.argv[2]) if len(sys.argv) > 2 else 5)
