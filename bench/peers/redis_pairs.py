"""Peers on Redis that are called from Python, each as its documentation says.

    redis_pairs.py KIND URL

Says `ready`, then for each line with a number of milliseconds on its input runs for so long and
says `pairs elapsed-ns p50-ns p99-ns failed`. The same as the workers that are written in Rust.
"""

import asyncio
import os
import sys
import time

TASKS = 100


def pyrate(url):
    """One acquire; it has no second half."""
    from pyrate_limiter import Duration, Limiter, Rate, RedisBucket
    from redis import Redis

    rates = [Rate(1_000_000_000, Duration.MINUTE)]
    limiter = Limiter(RedisBucket.init(rates, Redis.from_url(url), "bench-pyrate"))
    return lambda: limiter.try_acquire("bench")


def moving_window(url):
    """One hit; it has no second half."""
    from limits import parse, storage, strategies

    limiter = strategies.MovingWindowRateLimiter(storage.storage_from_string(url))
    rate = parse("1000000000/minute")
    return lambda: limiter.hit(rate, "bench")


def quotas():
    from token_throttle import PerModelConfig, Quota, UsageQuotas

    wanted = [
        Quota(metric="requests", limit=1_000_000_000, per_seconds=60),
        Quota(metric="tokens", limit=1_000_000_000_000, per_seconds=60),
    ]
    return PerModelConfig(quotas=UsageQuotas(wanted))


def token_throttle(url):
    """Reserve and refund of what was not used."""
    from redis import Redis
    from token_throttle import SyncRateLimiter, SyncRedisBackendBuilder

    backend = SyncRedisBackendBuilder(Redis.from_url(url), key_prefix="bench-one")
    limiter = SyncRateLimiter(quotas(), backend=backend)

    def pair():
        with limiter.reserve({"requests": 1, "tokens": 1_200}, model="bench") as handle:
            handle.set_actual_usage({"requests": 1, "tokens": 800})

    return pair


KINDS = {
    "pyrate": pyrate,
    "limits": moving_window,
    "token-throttle": token_throttle,
}


def say(took, elapsed, failed):
    took.sort()
    middle, late = (took[len(took) * part // 100] if took else 0 for part in (50, 99))
    print(len(took), elapsed, middle, late, failed, flush=True)


def one_after_the_other(pair):
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
        say(took, before - began, 0)


async def tasks(url):
    """Many tasks of one process on one limiter of token-throttle."""
    from redis.asyncio import Redis
    from token_throttle import BackendLockContentionError, RateLimiter, RedisBackendBuilder

    backend = RedisBackendBuilder(Redis.from_url(url), key_prefix="bench-many")
    limiter = RateLimiter(quotas(), backend=backend)

    async def pair():
        async with limiter.reserve({"requests": 1, "tokens": 1_200}, model="bench") as handle:
            handle.set_actual_usage({"requests": 1, "tokens": 800})

    async def worker(until, took, failed):
        before = time.monotonic_ns()
        while before < until:
            try:
                await pair()
                took.append(time.monotonic_ns() - before)
            except BackendLockContentionError:
                failed.append(before)
            before = time.monotonic_ns()

    await pair()
    print("ready", flush=True)
    # One round only: what is under way at its end goes on for long, and to cancel it takes longer.
    millis = int(sys.stdin.readline())
    began = time.monotonic_ns()
    took, failed = [], []
    until = began + millis * 1_000_000
    under_way = [asyncio.create_task(worker(until, took, failed)) for _ in range(TASKS)]
    ended, _ = await asyncio.wait(under_way, timeout=millis / 1_000)
    for task in ended:
        # Whatever else went wrong ends this process: a worker less would go unnoticed.
        task.result()
    say(list(took), time.monotonic_ns() - began, len(failed))
    sys.stdin.readline()
    os._exit(0)


def main():
    kind, url = sys.argv[1:]
    if kind == "token-throttle-tasks":
        asyncio.run(tasks(url))
    else:
        one_after_the_other(KINDS[kind](url))
    os._exit(0)


main()
