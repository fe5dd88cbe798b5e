"""Python's reserve and commit on the file store, beside what people write or install instead.

    python bench/python/speed.py [SECONDS]

All in one run and in turns, on a directory of its own, with the release build of the package
(`maturin build --release`) and the peers of `bench/peers/requirements.txt`. It prints a table in
Markdown with the mean and the median of each, an upper bound of how long a pair holds the GIL, and
the time of an import.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

import pairs  # noqa: E402

import standpipe  # noqa: E402

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


def import_milliseconds():
    program = "import time; t = time.perf_counter(); import standpipe; print(time.perf_counter() - t)"
    words = [sys.executable, "-c", program]
    runs = [float(subprocess.run(words, capture_output=True, text=True).stdout) for _ in range(15)]
    return statistics.median(runs) * 1000


def main(seconds):
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(f"{directory}/standpipe")
        kinds = {
            "standpipe, reserve + commit": tap_pairs(directory),
            "standpipe, `with tap.reserve(…)`": block_pairs(directory),
            "`fcntl` + JSON, 80 records, acquire only": pairs.json_recipe(directory, 80),
            "`fcntl` + JSON, 1,000 records, acquire only": pairs.json_recipe(directory, 1000),
        }
        try:
            kinds["PyrateLimiter, file-locked SQLite"] = pairs.pyrate(directory, 0)
        except (ImportError, AttributeError) as missing:
            print(f"without PyrateLimiter: {missing}", file=sys.stderr)
        taken = {name: [] for name in kinds}
        for _ in range(5):
            for name, pair in kinds.items():
                taken[name] += measure(pair, seconds / 5)
        base = statistics.median(taken["standpipe, reserve + commit"])
        print("| what | p50 µs | mean µs | × standpipe by p50 |\n|---|---|---|---|")
        for name, all_ in taken.items():
            p50, mean = statistics.median(all_), statistics.fmean(all_)
            print(f"| {name} | {p50:.2f} | {mean:.2f} | {p50 / base:.1f} |")
        memory = statistics.median(measure(in_memory(), seconds / 5))
        print(
            f"\nA block in memory takes {memory:.1f} µs, so the GIL is held for less. "
            f"Import: {import_milliseconds():.1f} ms."
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
