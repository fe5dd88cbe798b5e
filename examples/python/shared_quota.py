"""Five jobs on one machine share the quota of one API key.

Each job runs in its own process. Together they stay under the limit, because each reserves in the
same ledger before it calls.

    python shared_quota.py URL [CALLS] [RATE]
"""

import subprocess
import sys
import urllib.request

import standpipe

JOBS = ["blog-autopilot", "smart-engage", "digest", "triage", "reports"]


def job(name: str, url: str, calls: int, rate: str) -> None:
    tap = standpipe.open(limits={"demo/quota": {"requests": rate}})
    for _ in range(calls):
        with tap.reserve("demo/quota", agent=name, timeout=60):
            urllib.request.urlopen(f"{url}/call", b"{}").read()


def main(url: str, calls: int, rate: str) -> None:
    jobs = [
        subprocess.Popen([sys.executable, __file__, url, str(calls), rate, name]) for name in JOBS
    ]
    failed = sum(job.wait() != 0 for job in jobs)
    print(standpipe.open().status("demo/quota"))
    sys.exit(f"{failed} jobs failed" if failed else 0)


if __name__ == "__main__":
    target = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    stated = sys.argv[3] if len(sys.argv) > 3 else "100/min"
    if len(sys.argv) > 4:
        job(sys.argv[4], target, count, stated)
    else:
        main(target, count, stated)
