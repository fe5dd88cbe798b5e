"""Calls in every way that a process can, and prints after each round what the process holds.

    python churn.py ROUNDS [SECONDS [FIRST]]

It makes at least so many rounds, and goes on until so many seconds have passed. A line has the
number of descriptors, of threads, the kilobytes of resident memory, and the calls so far. FIRST is
how many calls it makes before the first round: the library keeps a bounded record of a process's
own calls, some 3 MB, which grows until about 30,000 calls.
"""

import asyncio
import gc
import os
import sys
import threading
import time

import standpipe

LIMITS = {"my/churn": {"parallel": 3}, "my/other": {"requests": "100M/min"}}
tap = standpipe.open(limits=LIMITS)
calls = 0


def counted(number):
    global calls
    calls += number


def settled(count):
    """Leases that end in every way: by a method, by their block, by being collected."""
    for number in range(count):
        with tap.reserve("my/churn", agent=f"a{number % 5}") as lease:
            if number % 4 == 0:
                lease.cancel()
            elif number % 4 == 1:
                lease.commit()
        if number % 4 == 2:
            tap.reserve("my/churn")
    counted(count)


def refused(count):
    with tap.reserve("my/churn"), tap.reserve("my/churn"), tap.reserve("my/churn"):
        for _ in range(count):
            try:
                tap.reserve("my/churn", timeout=0)
            except standpipe.Timeout:
                pass
            tap.peek("my/churn")
    counted(count)


def in_threads(count):
    def work():
        for _ in range(count):
            with tap.reserve_all(["my/churn", "my/other"]):
                pass

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counted(4 * count)


async def cancelled(count):
    for _ in range(count):
        held = [await tap.areserve("my/churn") for _ in range(3)]
        task = asyncio.ensure_future(tap.areserve("my/churn"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for lease in held:
            await lease.acommit()
    counted(4 * count)


def opened(count):
    """Taps of their own, which end with their last reference."""
    for _ in range(count):
        with standpipe.open(limits=LIMITS).reserve("my/other"):
            tap.status()
    counted(count)


def usage():
    gc.collect()
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    held = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    return (*held, pages * os.sysconf("SC_PAGESIZE") // 1024, calls)


def main(rounds, seconds=0, first=0):
    settled(first)
    ends = time.monotonic() + seconds
    while rounds > 0 or time.monotonic() < ends:
        rounds -= 1
        settled(400)
        refused(50)
        in_threads(25)
        asyncio.run(cancelled(40))
        opened(5)
        print(*usage(), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
