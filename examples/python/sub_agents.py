"""Six sub-agents in one process start at the same time and share one API limit.

Each reserves before it sends, so the total rate never exceeds the limit. No thread is blocked.

    python sub_agents.py URL [CALLS] [RATE]
"""

import asyncio
import sys

import httpx

import standpipe


async def sub_agent(tap: standpipe.Tap, client: httpx.AsyncClient, url: str, name: str) -> int:
    async with tap.areserve("demo/commits", agent=name, timeout=60):
        answer = await client.post(f"{url}/call", json={})
        return answer.status_code


async def main(url: str, calls: int, rate: str) -> None:
    tap = standpipe.open(limits={"demo/commits": {"requests": rate}})
    async with httpx.AsyncClient() as client:
        agents = [
            sub_agent(tap, client, url, f"agent-{number % 6}") for number in range(6 * calls)
        ]
        statuses = await asyncio.gather(*agents)
    refused = sum(status == 429 for status in statuses)
    print(f"{len(statuses)} calls, {refused} refused by the provider")
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    asyncio.run(main(sys.argv[1], count, sys.argv[3] if len(sys.argv) > 3 else "60/min"))
