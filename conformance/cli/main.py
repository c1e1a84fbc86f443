"""kconform: the command line. Parses options, calls a stage, leaves with its exit code."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from conformance import __version__
from conformance.cli import audit, bugs, check, gate, record, replay, suite
from conformance.cli.session import internal_error

app = typer.Typer(
    name="kconform",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Holds an implementation of Kafka's protocols against their TLA+ specification.",
    epilog="Exit codes: 0 pass, 1 divergence or violation, 2 usage, spec or environment, "
    "3 inconclusive or nothing to check, 4 fault of kconform, 130 interrupted.",
)
app.command("gate")(gate.gate)
app.command("check")(check.check)
app.command("suite")(suite.suite)
app.command("replay")(replay.replay)
app.command("explore")(replay.explore)
app.command("record")(record.record)
app.command("import")(record.import_command)
app.command("audit")(audit.audit)
app.command("bugs")(bugs.bugs)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"kconform {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End as after Ctrl-C: JVMs are stopped, nothing half-written stays."""
    raise KeyboardInterrupt


def run() -> None:
    """The console script: every way out has its documented exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()  # ends in SystemExit: with 2 for a wrong option, with 130 for an interrupt
    except Exception:  # noqa: BLE001  the last resort: a fault of our own, shown in full
        sys.exit(internal_error())
