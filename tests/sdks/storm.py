"""Fifty real client processes on one quota: without the tap, and with it. Run by hand:

    STANDPIPE=target/release/standpipe PROVIDER=target/release/provider python3 tests/sdks/storm.py

Each process is Node with Anthropic's SDK, as its own agent; they start over RAMP seconds. The
provider enforces requests and input tokens as buckets, as Anthropic documents it. Its log is what
is counted, from the end of the ramp on.

    --only-tap   leaves out the run without the tap
    --unknown    gives the daemon no limits: it learns them from the provider's headers
    --all        runs all three: without the tap, with limits, with no limits
    --window     the provider counts rolling minutes instead of buckets
    --json FILE  also writes the rows to a file: storm.json beside this is one with --all
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

from support import Provider, Tap

PARSER = argparse.ArgumentParser(description="Fifty real client processes on one quota.")
for flag in ("--only-tap", "--unknown", "--all", "--window"):
    PARSER.add_argument(flag, action="store_true")
PARSER.add_argument("--json", type=pathlib.Path)
OPTIONS = PARSER.parse_args()
RAMP, STEADY = 60, 120
REQUESTS, TOKENS = 600, 480_000  # per minute
SERVICE_MS = 200
KIND = "window" if OPTIONS.window else "bucket"
TIERS = {"critical": 5, "standard": 35, "background": 10}
# A critical agent asks every five seconds; the others always want more.
PAUSE_MS = {"critical": 5_000, "standard": 0, "background": 0}
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


def tier_row(tier, served, seen):
    """What the agents of a tier got, and how long their calls took."""
    names = [name for name in seen if name.startswith(tier)]
    tokens = {name: 0 for name in names}
    for call in served:
        if call["agent"] in tokens:
            tokens[call["agent"]] += call["input"]
    ended = sum(seen[name]["ok"] + seen[name]["refused"] for name in names)
    return {
        "agents": len(names),
        "served": sum(call["agent"] in tokens for call in served),
        "tokens": sum(tokens.values()),
        "mean_s": sum(seen[name]["waited"] for name in names) / max(1, ended) / 1e3,
        "slowest_s": max(seen[name]["slowest"] for name in names) / 1e3,
        "fairness": jain(list(tokens.values())) if any(tokens.values()) else None,
    }


def report(row, title, log, seen, steady):
    """Prints what was counted. Returns it as a row of the file."""
    start = min(call["arrived_us"] for call in log)
    inside = [call for call in log
              if RAMP * 1e6 <= call["arrived_us"] - start < (RAMP + steady) * 1e6]
    served = [call for call in inside if call["admitted"]]
    used = {"requests": len(served) / (REQUESTS * steady / 60),
            "tokens": sum(call["input"] for call in served) / (TOKENS * steady / 60)}
    refused = sum(not call["admitted"] for call in log)
    errors = sum(each["refused"] for each in seen.values())
    print(f"## {title}\n")
    print(f"{len(log)} calls reached the provider, {refused} of them were refused (429)"
          f"; clients saw {errors} errors")
    print("used after the ramp: " + ", ".join(f"{key} {share:.1%}" for key, share in used.items()))
    print("\n| tier | agents | served | tokens | mean time of a call | slowest | fairness |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    tiers = {tier: tier_row(tier, served, seen) for tier in TIERS}
    for tier, its in tiers.items():
        fair = "–" if its["fairness"] is None else f"{its['fairness']:.3f}"
        print(f"| {tier} | {its['agents']} | {its['served']} | {its['tokens']} "
              f"| {its['mean_s']:.2f} s | {its['slowest_s']:.1f} s | {fair} |")
    print(flush=True)
    return {
        "row": row, "title": title, "calls": len(log), "refused": refused, "errors": errors,
        # Of the tokens, which are scarcer than the requests.
        "quota_used_percent": used["tokens"] * 100,
        "critical_s": tiers["critical"]["mean_s"],
        "fairness": tiers["standard"]["fairness"],
        "tiers": tiers,
    }


def without_the_tap():
    alone = provider()
    seen = storm(lambda name, tier: alone.url, 2, 60)
    row = report("without", "Without the tap (the SDK's own two retries)", alone.log(), seen, 60)
    alone.close()
    return row


def with_the_tap(row, title, pool):
    behind = provider()
    with tempfile.TemporaryDirectory() as home:
        tap = Tap(pathlib.Path(home), pool, anthropic=behind)
        seen = storm(lambda name, tier: f"{tap.url}/as/{name}:{tier}/anthropic", 0, STEADY)
        found = report(row, title, behind.log(), seen, STEADY)
        tap.close()
    behind.close()
    return found


def main():
    pool = ('[pool."anthropic/sonnet"]\nmodels = ["claude-sonnet-*"]\nmargin = 0\norder = "fair"\n'
            f"requests = {limit(REQUESTS)}\ninput_tokens = {limit(TOKENS)}\n")
    rows = []
    if OPTIONS.all or not OPTIONS.only_tap:
        rows.append(without_the_tap())
    if OPTIONS.all or not OPTIONS.unknown:
        rows.append(with_the_tap("configured", "With the tap, limits configured", pool))
    if OPTIONS.all or OPTIONS.unknown:
        rows.append(with_the_tap("unknown", "With the tap, no configuration", None))
    if OPTIONS.json:
        limits = {"kind": KIND, "requests_per_min": REQUESTS, "input_tokens_per_min": TOKENS}
        found = {"cores": os.cpu_count(), "processes": sum(TIERS.values()), "limits": limits,
                 "rows": rows}
        OPTIONS.json.write_text(json.dumps(found, indent=2) + "\n")


main()
