"""Python's reserve and commit on the file store, beside what people write or install instead.

    cargo build --release -p standpipe-python --example pair
    python bench/python/speed.py [SECONDS [PAIR]]

All in one run and in turns, on a directory of its own, with the release build of the package
(`maturin build --release`) and the peers of `bench/peers/requirements.txt`. PAIR is the program
that cargo built, `target/release/examples/pair`: the Rust library's own pair, on the file store and
in memory. It prints a table in Markdown with the mean and the median of each, and then how long a
block holds the GIL and the time of an import.

A block in memory does the library's work with the GIL released, and that work is the library's own
pair in memory. So the difference of both is how long a block holds the GIL, with the time that it
takes to release it.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers"))

import pairs  # noqa: E402

import standpipe  # noqa: E402

ROUNDS = 5
LIMITS = {"bench/pair": {"requests": "100M/min", "parallel": 100}}


def tap_pairs(directory):
    tap = standpipe.open(f"file:{directory}/standpipe", limits=LIMITS)

    def pair():
        tap.reserve("bench/pair", agent="bench").commit()

    return pair


def block_pairs(directory):
    tap = standpipe.open(f"file:{directory}/standpipe", limits=LIMITS)

    def pair():
        with tap.reserve("bench/pair", agent="bench"):
            pass

    return pair


def measure(pair, seconds):
    """Returns the microseconds of each call."""
    pair()
    taken, ends = [], time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter_ns()
        pair()
        taken.append((time.perf_counter_ns() - began) / 1000)
    return taken


def in_memory():
    """A block on the store in memory: its ledger's work, and all that holds the GIL."""
    tap = standpipe.open("memory", limits=LIMITS)

    def pair():
        with tap.reserve("bench/pair", agent="bench"):
            pass

    return pair


class Library:
    """The Rust library in a process of its own."""

    def __init__(self, program, store):
        self.process = subprocess.Popen(
            [program, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def measure(self, seconds):
        self.process.stdin.write(f"{round(seconds * 1000)}\n")
        self.process.stdin.flush()
        return [int(taken) / 1000 for taken in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def import_milliseconds():
    program = (
        "import time as t; at = t.perf_counter(); import standpipe; print(t.perf_counter() - at)"
    )
    words = [sys.executable, "-c", program]
    runs = [float(subprocess.run(words, capture_output=True, text=True).stdout) for _ in range(15)]
    return statistics.median(runs) * 1000


FILE, BLOCK, MEMORY = "standpipe, reserve + commit", "a block", "a block in memory"
LIBRARY, LIBRARY_MEMORY = "the Rust library, reserve + commit", "the Rust library in memory"


def main(seconds=5.0, program=ROOT / "target" / "release" / "examples" / "pair"):
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(f"{directory}/standpipe")
        os.makedirs(f"{directory}/library")
        kinds = {
            FILE: tap_pairs(directory),
            BLOCK: block_pairs(directory),
            MEMORY: in_memory(),
            "`fcntl` + JSON, 80 records, acquire only": pairs.json_recipe(directory, 80),
            "`fcntl` + JSON, 1,000 records, acquire only": pairs.json_recipe(directory, 1000),
        }
        try:
            kinds["PyrateLimiter, file-locked SQLite"] = pairs.pyrate(directory, 0)
        except (ImportError, AttributeError) as missing:
            print(f"without PyrateLimiter: {missing}", file=sys.stderr)
        stores = {LIBRARY: f"file:{directory}/library", LIBRARY_MEMORY: "memory"}
        libraries = {name: Library(program, store) for name, store in stores.items()}
        taken = {name: [] for name in [*kinds, *libraries]}
        for _ in range(ROUNDS):
            for name, pair in kinds.items():
                taken[name] += measure(pair, seconds / ROUNDS)
            for name, library in libraries.items():
                taken[name] += library.measure(seconds / ROUNDS)
        for library in libraries.values():
            library.close()
    medians = {name: statistics.median(all_) for name, all_ in taken.items()}
    print("| what | fastest tenth, µs | p50, µs | mean, µs | × standpipe by p50 |")
    print("|---|---|---|---|---|")
    for name, all_ in taken.items():
        fast, mean = statistics.quantiles(all_, n=10)[0], statistics.fmean(all_)
        print(f"| {name} | {fast:.2f} | {medians[name]:.2f} | {mean:.2f} "
              f"| {medians[name] / medians[FILE]:.1f} |")
    fast = {name: statistics.quantiles(all_, n=10)[0] for name, all_ in taken.items()}
    for what, of in (("p50", medians), ("the fastest tenth", fast)):
        print(f"\nBy {what}: {of[FILE] / of[LIBRARY]:.2f} times the library's own pair; a block "
              f"holds the GIL for {of[MEMORY] - of[LIBRARY_MEMORY]:.1f} µs.")
    print(f"\nImport: {import_milliseconds():.1f} ms.")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]), *sys.argv[2:3])
