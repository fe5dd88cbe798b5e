"""Peers that are called from Python, each as its documentation says.

    pairs.py KIND DIRECTORY

Says `ready`, then for each line with a number of milliseconds on its input runs pairs for so long
and says `pairs elapsed-ns p50-ns p99-ns failed`. The same as the workers that are written in Rust.
"""

import fcntl
import json
import os
import sys
import tempfile
import time


def json_recipe(directory, records):
    """The recipe people write: lock, read, prune, count, append, write beside, rename, unlock.

    One acquire only; it has no second half that settles. `records` is how many the window holds:
    the oldest goes when there are more, so that its size stays the same however fast it is called.
    """
    path = os.path.join(directory, f"state-{records}.json")
    guard = open(path + ".lock", "w")
    window = 60.0

    def write(state):
        handle, draft = tempfile.mkstemp(dir=directory, suffix=".tmp")
        with os.fdopen(handle, "w") as out:
            json.dump(state, out)
        os.replace(draft, path)

    def acquire():
        fcntl.flock(guard, fcntl.LOCK_EX)
        try:
            with open(path) as source:
                state = json.load(source)
            now = time.time()
            kept = [each for each in state["requests"] if each["ts"] > now - window]
            kept = kept[-(records - 1) :]
            if len(kept) < records:
                kept.append({"ts": now, "model": "claude-sonnet", "caller": "bench"})
            state["requests"] = kept
            write(state)
        finally:
            fcntl.flock(guard, fcntl.LOCK_UN)

    fcntl.flock(guard, fcntl.LOCK_EX)
    if not os.path.exists(path):
        now = time.time()
        full = [{"ts": now, "model": "claude-sonnet", "caller": "bench"}] * records
        write({"requests": full, "window_seconds": 60, "max_requests": records})
    fcntl.flock(guard, fcntl.LOCK_UN)
    return acquire


def filelock_json(directory, records):
    """The same recipe with `filelock` as the lock; only the lock and a small state."""
    from filelock import FileLock

    path = os.path.join(directory, "slots.json")
    lock = FileLock(path + ".lock")

    def pair():
        for change in (1, -1):
            with lock:
                try:
                    with open(path) as source:
                        state = json.load(source)
                except FileNotFoundError:
                    state = {"active": 0}
                state["active"] += change
                with open(path + ".tmp", "w") as out:
                    json.dump(state, out)
                os.replace(path + ".tmp", path)

    return pair


def pyrate(directory, _):
    """One acquire; it has no second half."""
    from pyrate_limiter import Duration, Limiter, Rate, SQLiteBucket

    bucket = SQLiteBucket.init_from_file(
        [Rate(1_000_000_000, Duration.MINUTE)],
        db_path=os.path.join(directory, "pyrate.sqlite"),
        use_file_lock=True,
    )
    limiter = Limiter(bucket)
    return lambda: limiter.try_acquire("bench")


def token_throttle(directory, _):
    """Reserve and refund of what was not used."""
    from token_throttle import (
        PerModelConfig,
        Quota,
        SyncRateLimiter,
        SyncSqliteBackendBuilder,
        UsageQuotas,
    )

    quotas = UsageQuotas(
        [
            Quota(metric="requests", limit=1_000_000_000, per_seconds=60),
            Quota(metric="tokens", limit=1_000_000_000_000, per_seconds=60),
        ]
    )
    path = os.path.join(directory, "throttle.sqlite3")
    backend = SyncSqliteBackendBuilder(path, key_prefix="bench")
    limiter = SyncRateLimiter(PerModelConfig(quotas=quotas), backend=backend)

    def pair():
        with limiter.reserve({"requests": 1, "tokens": 1_200}, model="bench") as handle:
            handle.set_actual_usage({"requests": 1, "tokens": 800})

    return pair


def portalocker_slots(directory, _):
    """A place among four, taken and given back; it counts nothing."""
    import portalocker

    def pair():
        slots = portalocker.NamedBoundedSemaphore(4, name="bench", directory=directory)
        slots.acquire()
        slots.release()

    return pair


KINDS = {
    "py-json-1000": (json_recipe, 1_000),
    "py-json-80": (json_recipe, 80),
    "py-filelock": (filelock_json, 0),
    "py-pyrate": (pyrate, 0),
    "py-token-throttle": (token_throttle, 0),
    "py-portalocker": (portalocker_slots, 0),
}


def main():
    make, argument = KINDS[sys.argv[1]]
    pair = make(sys.argv[2], argument)
    for _ in range(3):
        pair()
    print("ready", flush=True)
    for line in sys.stdin:
        until = time.monotonic_ns() + int(line) * 1_000_000
        began = before = time.monotonic_ns()
        took = []
        while before < until:
            pair()
            after = time.monotonic_ns()
            took.append(after - before)
            before = after
        took.sort()
        middle, late = took[len(took) // 2], took[len(took) * 99 // 100]
        print(len(took), before - began, middle, late, 0, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
