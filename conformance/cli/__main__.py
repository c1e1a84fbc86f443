"""python -m conformance.cli: the command line without an installed console script."""

from conformance.cli.main import run

run()
