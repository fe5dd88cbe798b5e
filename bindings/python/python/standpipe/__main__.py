"""The command line: `standpipe …`, or `python -m standpipe …`."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> int:
    # The command line handles signals itself; Python would only note them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = [sys.executable, "-m", "standpipe"]
    sys.stdout.flush()
    return _native.run_cli(program, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
