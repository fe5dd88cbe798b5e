"""asyncio: order, cancellation, threads, loops."""

import asyncio
import gc
import os
import weakref

import pytest

import standpipe
from conftest import run, threads


async def until(condition):
    """Waits for something that other tasks do."""
    while not condition():
        await asyncio.sleep(0)


def test_tasks_wait_in_order(tap):
    served = []

    async def wait(number):
        async with tap.areserve("my/slots"):
            served.append(number)

    async def main():
        first = await tap.areserve("my/slots")
        tasks = []
        for number in range(5):
            tasks.append(asyncio.create_task(wait(number)))
            await until(lambda: tap.status("my/slots").waiting > number)
        await first.acommit()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert served == [0, 1, 2, 3, 4]


def test_a_thousand_waiting_tasks_add_at_most_one_thread(tap):
    done = 0

    async def wait():
        nonlocal done
        async with tap.areserve("my/slots", agent="crowd"):
            done += 1

    async def main():
        first = await tap.areserve("my/slots")
        before = threads()
        tasks = [asyncio.create_task(wait()) for _ in range(1000)]
        await until(lambda: tap.status("my/slots").waiting == 1000)
        most = threads()
        await first.acommit()
        await asyncio.gather(*tasks)
        return most - before

    assert asyncio.run(main()) <= 1
    assert done == 1000
    status = tap.status("my/slots")
    assert (status.in_flight, status.waiting) == (0, 0)


def test_a_cancelled_wait_leaves_neither_a_ticket_nor_a_lease(tap):
    async def main():
        first = await tap.areserve("my/slots")
        task = asyncio.ensure_future(tap.areserve("my/slots"))
        await until(lambda: tap.status("my/slots").waiting == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: tap.status("my/slots").waiting == 0)
        await first.acancel()
        assert tap.status("my/slots").in_flight == 0

    asyncio.run(main())


def test_a_task_that_is_cancelled_in_the_moment_of_its_admission_gives_the_lease_back(tap):
    async def reserve():
        return await tap.areserve("my/slots")

    async def main():
        lost = 0
        for turn in range(20):
            first = await tap.areserve("my/slots")
            task = asyncio.create_task(reserve())
            await until(lambda: tap.status("my/slots").waiting == 1)
            await first.acommit()
            # As many turns of the loop as it takes until the result is there but not received.
            for _ in range(turn):
                await asyncio.sleep(0)
            task.cancel()
            try:
                (await task).commit()
            except asyncio.CancelledError:
                lost += 1
            await until(lambda: tap.status("my/slots").in_flight == 0)
            assert tap.status("my/slots").waiting == 0
        assert lost > 0

    asyncio.run(main())


def test_wait_for_ends_a_wait(tap):
    async def main():
        async with tap.areserve("my/slots"):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(tap.areserve("my/slots"), 0.01)
            with pytest.raises(standpipe.Timeout) as refused:
                await tap.areserve("my/slots", timeout=0.01)
            assert refused.value.reason == "deadline" and refused.value.position == 1
            await until(lambda: tap.status("my/slots").waiting == 0)

    asyncio.run(main())


def test_reserve_all_and_settling_in_a_task(tap):
    async def main():
        async with tap.areserve_all(["my/slots", ("my/api", {"tokens": 10})]) as leases:
            assert [lease.pool for lease in leases] == ["my/slots", "my/api"]
            await leases[1].aprogress(tokens=5)
            await leases[1].acommit(tokens=7)
        assert tap.status("my/slots").in_flight == 0
        assert tap.status("my/api").limits[1]["used"] == 7
        lease = await tap.areserve("my/slots")
        async with lease as same:
            assert same is lease
        with pytest.raises(standpipe.LeaseGone):
            await lease.acommit()

    asyncio.run(main())


def test_without_a_loop_the_exception_says_what_to_do(tap):
    with pytest.raises(RuntimeError, match="asyncio.run"):
        tap.areserve("my/slots")
    with pytest.raises(RuntimeError, match="asyncio.run"):
        tap.reserve_all and tap.areserve_all(["my/slots"])


def test_a_call_that_is_not_awaited_says_so(tap):
    async def main():
        with pytest.raises(TypeError, match="async with"):
            with tap.areserve("my/slots"):
                pass
        with pytest.raises(AttributeError, match="await tap.areserve"):
            tap.areserve("my/slots").commit()
        with pytest.warns(RuntimeWarning, match="never awaited"):
            tap.areserve("my/slots")
            gc.collect()

    asyncio.run(main())
    assert tap.status("my/slots").in_flight == 0


def test_loops_come_and_go_without_a_trace(tap):
    async def once():
        async with tap.areserve("my/slots"):
            waiting = asyncio.ensure_future(tap.areserve("my/slots"))
            await until(lambda: tap.status("my/slots").waiting == 1)
        (await waiting).commit()
        return weakref.ref(asyncio.get_running_loop())

    asyncio.run(once())
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    loops = [asyncio.run(once()) for _ in range(10)]
    gc.collect()
    assert all(loop() is None for loop in loops)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_loop_that_is_closed_with_a_waiting_call_leaves_nothing(tap):
    with tap.reserve("my/slots"):
        loop = asyncio.new_event_loop()

        async def begin():
            task = asyncio.ensure_future(tap.areserve("my/slots"))
            await until(lambda: tap.status("my/slots").waiting == 1)
            return task

        task = loop.run_until_complete(begin())
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
        tap.flush()
        assert tap.status("my/slots").waiting == 0


def test_uvloop(home):
    program = """
import asyncio, uvloop, standpipe
tap = standpipe.open(limits={"my/slots": {"parallel": 2}})
served = []
async def one(number):
    async with tap.areserve("my/slots", agent=f"a{number % 7}"):
        await asyncio.sleep(0)
        served.append(number)
async def main():
    await asyncio.gather(*map(one, range(200)))
uvloop.run(main())
status = tap.status("my/slots")
print(len(served), status.in_flight, status.waiting)
"""
    assert run(program) == "200 0 0\n"


def test_threads_and_tasks_share_one_queue(tap):
    async def one(number):
        if number % 2:
            return await asyncio.to_thread(lambda: tap.reserve("my/pair").commit())
        async with tap.areserve("my/pair"):
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*map(one, range(40)))

    asyncio.run(main())
    assert tap.status("my/pair").in_flight == 0
