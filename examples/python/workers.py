"""Workers process documents with Anthropic's SDK: reserve, call, commit what was used.

The transport estimates each call, reserves it, and commits the tokens that the answer states. One
429 pauses all workers. The SDK's own retries are off, so that they do not multiply.

    python workers.py URL [DOCUMENTS]
"""

import subprocess
import sys

import anthropic

import standpipe


def worker(url: str, documents: int) -> None:
    client = anthropic.Anthropic(
        base_url=url,
        api_key="not used by the simulator",
        max_retries=0,
        http_client=standpipe.httpx_client(agent="worker", wait=60),
    )
    for number in range(documents):
        reply = client.messages.create(
            model="claude-sonnet-test",
            max_tokens=200,
            messages=[{"role": "user", "content": f"Summarise document {number}."}],
        )
        assert reply.type == "message"


def main(url: str, documents: int) -> None:
    workers = [
        subprocess.Popen([sys.executable, __file__, url, str(documents), "worker"])
        for _ in range(2)
    ]
    failed = sum(one.wait() != 0 for one in workers)
    status = standpipe.open().status("anthropic/sonnet")
    print(status)
    assert status.in_flight == 0
    sys.exit(f"{failed} workers failed" if failed else 0)


if __name__ == "__main__":
    target = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    if len(sys.argv) > 3:
        worker(target, count)
    else:
        main(target, count)
