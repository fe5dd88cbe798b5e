"""The Temporal interceptor of `docs/recipes/temporal.md`, in the SDK's own chain of interceptors.

A worker puts its interceptors before `_ActivityInboundImpl`, which calls the activity. The tests
build the same chain and run it with the SDK's `ActivityEnvironment`, so no server is needed.
"""

import asyncio
from datetime import timedelta

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ExecuteActivityInput
from temporalio.worker._activity import _ActivityInboundImpl

import standpipe
from standpipe.testing import VirtualTap
from test_docs import blocks


@pytest.fixture(scope="module")
def recipe():
    """The names that the page defines."""
    ((_, code),) = blocks("docs/recipes/temporal.md")
    names = {"__name__": "recipe"}
    exec(compile(code, "docs/recipes/temporal.md", "exec"), names)
    return names


class Chain:
    """An activity behind the interceptor, in an environment that records heartbeats."""

    def __init__(self, recipe, tap):
        recipe["tap"] = tap
        self.interceptor, self.environment = recipe["StandpipeInterceptor"](), ActivityEnvironment()
        self.heartbeats = []
        self.environment.on_heartbeat = lambda *details: self.heartbeats.append(details)

    def run(self, function, *args):
        first = self.interceptor.intercept_activity(_ActivityInboundImpl(None, None))
        call = ExecuteActivityInput(fn=function, args=args, executor=None, headers={})
        return self.environment.run(first.execute_activity, call)


@pytest.fixture
def tap(home):
    return standpipe.open(limits={"my/api": {"parallel": 1}})


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


def test_an_activity_runs_inside_a_lease(recipe, tap):
    @activity.defn
    async def summarise(document: str) -> str:
        status = tap.status("my/api")
        activity.heartbeat("at work")
        return f"{document}: {status.in_flight} in flight, by {status.leases[0]['agent']}"

    chain = Chain(recipe, tap)
    done = asyncio.run(chain.run(summarise, "a.txt"))
    assert done == "a.txt: 1 in flight, by temporal"
    assert chain.heartbeats == [("waiting for quota",), ("at work",)]
    assert tap.status("my/api").in_flight == 0


def test_an_activity_that_raises_gives_its_slot_back(recipe, tap):
    @activity.defn
    async def fails() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        asyncio.run(Chain(recipe, tap).run(fails))
    assert tap.status("my/api").in_flight == 0


def test_an_activity_that_waits_sends_heartbeats_and_starts_when_a_slot_is_free(recipe, tap):
    @activity.defn
    async def work() -> str:
        return "done"

    async def main():
        chain = Chain(recipe, tap)
        async with tap.areserve("my/api"):
            waiting = asyncio.ensure_future(chain.run(work))
            await until(lambda: tap.status("my/api").waiting == 1)
            assert chain.heartbeats == [("waiting for quota",)] and not waiting.done()
        return await waiting

    assert asyncio.run(main()) == "done"


def test_a_cancelled_activity_leaves_no_ticket(recipe, tap):
    @activity.defn
    async def never() -> None:
        raise AssertionError("it was not admitted")

    async def main():
        chain = Chain(recipe, tap)
        async with tap.areserve("my/api"):
            waiting = asyncio.ensure_future(chain.run(never))
            await until(lambda: tap.status("my/api").waiting == 1)
            chain.environment.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await until(lambda: tap.status("my/api").waiting == 0)
        assert tap.status("my/api").in_flight == 0

    asyncio.run(main())


def test_a_refusal_becomes_temporal_s_own_error_with_the_instant_of_the_ledger(recipe):
    @activity.defn
    async def work() -> str:
        return "done"

    chain = Chain(recipe, VirtualTap(limits={"my/api": {"requests": "2/h"}}))
    assert asyncio.run(chain.run(work)) == "done"
    with pytest.raises(ApplicationError) as refused:
        asyncio.run(chain.run(work))
    cause = refused.value.__cause__
    assert isinstance(cause, standpipe.Timeout) and cause.retry_after >= 3600
    assert refused.value.next_retry_delay == timedelta(seconds=cause.retry_after)
