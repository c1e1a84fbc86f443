"""Judges mutants of the implementation that no other day has: `kconform bugs` with a seed per day.

    tox run -e impl-mutants                       150 of today's
    tox run -e impl-mutants -- --mutants 40       fewer; any option of `kconform bugs --mutants`

The seed is the date as a number (20260131) and stands in the report: the same number draws the
same mutants of the same text.
"""

from __future__ import annotations

import datetime
import subprocess
import sys

NUMBER = 150


def main() -> int:
    """The exit code of `kconform bugs`."""
    seed = f"{datetime.date.today():%Y%m%d}"
    asked = [] if "--mutants" in sys.argv else ["--mutants", str(NUMBER)]
    return subprocess.run(["kconform", "bugs", *asked, "--seed", seed, *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
