"""Agents of three priorities share one slot. The critical one is served first.

Ralph polls in the background, Data works, and Picard decides. All three wait for the same
slot, which they get by priority, not by arrival.

    python governor.py URL
"""

import subprocess
import sys
import urllib.request
from typing import Literal

import standpipe

Priority = Literal["critical", "standard", "background"]
AGENTS: "dict[str, Priority]" = {
    "ralph": "background",
    "data": "standard",
    "picard": "critical",
}


def agent(name: str, url: str) -> None:
    tap = standpipe.open(limits={"demo/governed": {"parallel": 1}})
    with standpipe.agent(name, priority=AGENTS[name]):
        with tap.reserve("demo/governed", timeout=60) as lease:
            urllib.request.urlopen(f"{url}/call", b"{}").read()
            print(f"{name} was served", flush=True)
    assert lease.is_settled


def main(url: str) -> None:
    tap = standpipe.open(limits={"demo/governed": {"parallel": 1}})
    with tap.reserve("demo/governed", agent="setup"):
        agents: "list[subprocess.Popen[bytes]]" = []
        for place, name in enumerate(AGENTS, start=1):
            agents.append(subprocess.Popen([sys.executable, __file__, url, name]))
            while tap.status("demo/governed").waiting < place:
                pass
        print(tap.status("demo/governed"), flush=True)
    failed = sum(one.wait() != 0 for one in agents)
    sys.exit(f"{failed} agents failed" if failed else 0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        agent(sys.argv[2], sys.argv[1])
    else:
        main(sys.argv[1])
