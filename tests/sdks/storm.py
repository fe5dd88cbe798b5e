"""Fifty real client processes on one quota: without the tap, and with it. Run by hand:

    STANDPIPE=target/release/standpipe PROVIDER=target/release/provider python3 tests/sdks/storm.py

Each process is Node with Anthropic's SDK, as its own agent; they start over RAMP seconds. The
provider enforces requests and input tokens as buckets, as Anthropic documents it. Its log is what
is counted, from the end of the ramp on. A run with the standard provider is recorded in storm.json,
from which `cargo xtask reference` makes the tables in README.md and docs/proxy.md.

    --only-tap   leaves out the run without the tap
    --unknown    gives the daemon no limits: it learns them from the provider's headers
    --window     the provider counts rolling minutes instead of buckets
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

from support import Provider, Tap

RAMP, STEADY = 60, 120
REQUESTS, TOKENS = 600, 480_000  # per minute
SERVICE_MS = 200
KIND = "window" if "--window" in sys.argv else "bucket"
TIERS = {"critical": 5, "standard": 35, "background": 10}
# A critical agent asks every five seconds; the others always want more.
PAUSE_MS = {"critical": 5_000, "standard": 0, "background": 0}
RESULTS = pathlib.Path(__file__).parent / "storm.json"
CLIENT = pathlib.Path(__file__).parent / "node/storm-client.mjs"


def provider():
    return Provider("--shape", "anthropic", "--kind", KIND, "--requests", f"{REQUESTS}/min",
                    "--input", f"{TOKENS}/min", "--service-ms", str(SERVICE_MS))


def limit(amount):
    """A limit as the provider counts it, in the configuration."""
    rate = f'"{amount}/min"'
    # A bucket for two seconds, so that a critical call never waits for a whole minute.
    return rate if KIND == "window" else f"{{ rate = {rate}, burst = {amount // 30} }}"


def storm(url, retries, steady):
    """Starts the clients over the ramp and waits for all of them. Returns what each saw."""
    agents = [(f"{tier}{number}", tier) for tier, count in TIERS.items() for number in range(count)]
    # All tiers take part from the beginning.
    agents.sort(key=lambda agent: int("".join(filter(str.isdigit, agent[0]))))
    began, seen, threads = time.monotonic(), {}, []
    for at, (name, tier) in enumerate(agents):
        time.sleep(max(0, began + at * RAMP / len(agents) - time.monotonic()))
        left = began + RAMP + steady - time.monotonic()
        words = ["node", CLIENT, url(name, tier), name, left, PAUSE_MS[tier], retries]

        def run(name=name, words=words):
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            seen[name] = json.loads(done.stdout)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert len(seen) == len(agents), "a client failed"
    return seen


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def summary(log, seen, steady):
    """What README.md and docs/proxy.md show of a run."""
    start = min(call["arrived_us"] for call in log)
    inside = [call for call in log
              if RAMP * 1e6 <= call["arrived_us"] - start < (RAMP + steady) * 1e6]
    served = [call for call in inside if call["admitted"]]
    standard = {name: 0 for name in seen if name.startswith("standard")}
    for call in served:
        if call["agent"] in standard:
            standard[call["agent"]] += call["input"]
    critical = [each for name, each in seen.items() if name.startswith("critical")]
    calls = sum(each["ok"] + each["refused"] for each in critical)
    return {
        "calls": len(log),
        "refused": sum(not call["admitted"] for call in log),
        "client_errors": sum(each["refused"] for each in seen.values()),
        "tokens_used_percent": round(
            sum(call["input"] for call in served) / (TOKENS * steady / 60) * 100, 1),
        "critical_call_seconds": round(
            sum(each["waited"] for each in critical) / max(1, calls) / 1e3, 2),
        "fairness_standard": round(jain(list(standard.values())), 3),
    }


def report(name, title, log, seen, steady):
    run = summary(log, seen, steady)
    print(title, json.dumps(run, indent=2), flush=True)
    if KIND == "bucket":
        runs = json.loads(RESULTS.read_text())
        setup = {"processes": len(seen), "requests_per_minute": REQUESTS,
                 "tokens_per_minute": TOKENS}
        RESULTS.write_text(json.dumps({**runs, "setup": setup, name: run}, indent=2) + "\n")


def main():
    if "--only-tap" not in sys.argv:
        alone = provider()
        seen = storm(lambda name, tier: alone.url, 2, 60)
        report("alone", "Without the tap (the SDK's own two retries)", alone.log(), seen, 60)
        alone.close()
    pool = ('[pool."anthropic/sonnet"]\nmodels = ["claude-sonnet-*"]\nmargin = 0\norder = "fair"\n'
            f"requests = {limit(REQUESTS)}\ninput_tokens = {limit(TOKENS)}\n")
    home = pathlib.Path(tempfile.mkdtemp())
    behind = provider()
    unknown = "--unknown" in sys.argv
    tap = Tap(home, None if unknown else pool, anthropic=behind)
    seen = storm(lambda name, tier: f"{tap.url}/as/{name}:{tier}/anthropic", 0, STEADY)
    report("unknown" if unknown else "tap", "With the tap", behind.log(), seen, STEADY)
    tap.close()
    behind.close()


main()
