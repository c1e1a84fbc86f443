"""python -m conformance.cli: the command line without an installed console script."""

from conformance.cli.entry import run

run()
