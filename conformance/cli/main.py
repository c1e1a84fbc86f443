"""kconform: the command line. Parses options, calls a stage, leaves with its exit code."""

from __future__ import annotations

import copy
import functools
import importlib
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

from conformance import __version__
from conformance.cli.streams import configure_encodings, drop_output, open_standard_streams
from conformance.errors import INTERRUPTED, CommandEnded, ExitCode, UserError
from conformance.files import tells_of_no_space
from conformance.modelcheck.cache import cache_dir

COMMANDS = {
    "gate": (
        "gate:gate",
        "Model check, generate, replay, explore, record, audit; then one canary bug.",
    ),
    "check": ("check:check", "Check models and compare with what their manifests expect."),
    "init": (
        "init:init",
        "Write a model and an adapter's skeleton for a module of your own; overwrite nothing.",
    ),
    "suite": (
        "suite:suite",
        "Print a suite's size and coverage, for the minimal cover and for a greedy walk.",
    ),
    "replay": (
        "replay:replay",
        "Drive an implementation along a suite, a saved divergence or a recorded trace.",
    ),
    "interleave": (
        "interleave:interleave",
        "Interrupt actions between their critical sections by others, and check the results.",
    ),
    "turns": (
        "turns:turns",
        "Let fetcher threads run their own loop: order, composition and back-off are compared.",
    ),
    "explore": (
        "explore:explore",
        "Search with Hypothesis, the spec's evaluator being the oracle: no state graph bounds it.",
    ),
    "record": ("record:record", "Run the implementation along random walks and store its traces."),
    "judge": (
        "imports:judge_command",
        "Look for a behaviour of the spec that explains the recorded events of a system.",
    ),
    "import": (
        "imports:import_command",
        "Judge traces of a foreign implementation, and keep what explains them in a store.",
    ),
    "export": ("exports:export_command", "Write traces of a store as NDJSON or ITF."),
    "audit": (
        "audit:audit",
        "Refinement, invariants and action properties of every recorded trace.",
    ),
    "cluster": (
        "cluster:app",
        "Run real Kafka brokers on this machine; disturb and record them.",
    ),
    "inspect": (
        "inspect:inspect_command",
        "Check copies of brokers' data directories and server logs for faults.",
    ),
    "load": (
        "load:load",
        "Say whether releases of Kafka load copies of partitions, as they are and compacted.",
    ),
    "history": (
        "history:history_command",
        "Judge what clients sent, polled and committed by the specification's rules.",
    ),
    "workload": (
        "workload:workload",
        "Make a history: real clients send, poll, commit, abort and die by a seeded plan.",
    ),
    "tap": (
        "tap:tap",
        "Proxy clients' connections to a broker: record messages, and disturb them by rules.",
    ),
    "client": (
        "client:client",
        "Let a real client join a coordinator that gives every answer the specification allows.",
    ),
    "adapter-check": (
        "adapter_check:adapter_check",
        "Hold an adapter in any language against the adapter protocol, point by point.",
    ),
    "deviations": (
        "deviations:deviations",
        "Replay the path of every known deviation, and compare the results with the table.",
    ),
    "versions": (
        "versions:versions",
        "Drive several systems along the same models and print a matrix of their deviations.",
    ),
    "changelog": (
        "changelog:changelog",
        "Compare two systems: rules that changed, and for each the path that tells the two apart.",
    ),
    "diff": (
        "diff:diff",
        "Compare two specifications: the behaviours that only one of them has.",
    ),
    "score": (
        "score:score",
        "Drive a system along every suite that it can take, and make a score card of the result.",
    ),
    "story": (
        "story:story",
        "Tell or draw the behaviour of an ITF file: a divergence, a counterexample.",
    ),
    "show": (
        "show:show",
        "Print a formula or action in TLA+, and its translation into Python and Spark SQL.",
    ),
    "bugs": (
        "bugs:bugs",
        "Put each fault into a copy of the implementation and table which oracle kills it.",
    ),
}
"""Where each command is, and the line that `kconform --help` shows; imported when it is called,
because Spark, Hypothesis and the solver take seconds."""


class _Commands(TyperGroup):
    """Commands that are imported when they are called, or when a shell completes options."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; its own options too where a shell asks for them."""
        if ctx.resilient_parsing and cmd_name in COMMANDS:
            return typer.main.get_command(load(cmd_name))
        return super().get_command(ctx, cmd_name)


_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="kconform",
    cls=_Commands,
    context_settings=_HELP,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Holds an implementation of Kafka's protocols against their TLA+ specification.",
    epilog="Exit codes: 0 pass, 1 divergence or violation, 2 usage, spec or environment, "
    "3 inconclusive or nothing to check, 4 fault of kconform, 130 interrupted, "
    "141 nobody reads the output.",
)


def load(name: str) -> typer.Typer:
    """The command's own app, with its options."""
    module, _, function = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(f"conformance.cli.{module}"), function)
    if isinstance(command, typer.Typer):
        family = copy.copy(command)
        family.info.context_settings = _HELP
        family.registered_commands = [
            _with_local_paths(name, info) for info in command.registered_commands
        ]
        return family
    own = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    own.command(context_settings=_HELP)(command)
    own.registered_commands = [_with_local_paths(name, info) for info in own.registered_commands]
    return own


_FILE_URI = re.compile(r"((?:--)?[\w.-]+=)?(file:/.*)", re.DOTALL)


class _LocalPaths(TyperCommand):
    """A command that takes `file:` URIs for paths: alone, and in `--option=URI` and `NAME=URI`."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """As Typer does it, with paths in the place of URIs."""
        return super().parse_args(ctx, [_without_uri(arg) for arg in args])


def _without_uri(arg: str) -> str:
    from conformance.inputs import local_path  # every command loads it; `--help` does without

    match = _FILE_URI.fullmatch(arg)
    if match is None:
        return arg
    try:
        return f"{match[1] or ''}{local_path(match[2])}"
    except UserError:  # another machine's: the command says so
        return arg


def _with_local_paths(name: str, info: CommandInfo) -> CommandInfo:
    """The command; the URI of a storage that is not here ends it before anything runs."""
    function = info.callback
    if function is None:
        return info

    @functools.wraps(function)
    def command(**given: object) -> object:
        # Here: every command loads these two, and nothing else needs them.
        from conformance.cli.session import mistake
        from conformance.inputs import check_local

        started = time.monotonic()
        try:
            for value in given.values():
                for path in value if isinstance(value, list | tuple) else (value,):
                    if isinstance(path, Path):
                        check_local(path)
        except UserError as error:
            mistake(name, error, as_json=given.get("as_json") is True, started=started)
        return function(**given)

    changed = copy.copy(info)
    changed.callback, changed.cls = command, _LocalPaths
    return changed


def _announce(name: str, summary: str) -> None:
    """Let the app know a command by its help alone, its arguments being read by the command."""
    passed_on = {"allow_extra_args": True, "ignore_unknown_options": True}

    @app.command(name, help=summary, add_help_option=False, context_settings=passed_on)
    def call(context: typer.Context) -> None:
        load(name)(context.args, prog_name=f"kconform {name}")


for _name, (_, _summary) in COMMANDS.items():
    _announce(_name, _summary)


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
    """Run a command: every way out has its documented exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    open_standard_streams()
    configure_encodings()
    # Where Hypothesis would keep what it learns of the code that it runs: in the user's folder.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_dir() / "hypothesis"))
    try:
        code = _exit_code()
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = ExitCode.READER_GONE
        drop_output()
    except OSError as error:
        code = ExitCode.USAGE
        print(f"kconform: the output cannot be written: {error.strerror}.", file=sys.stderr)
        drop_output()
    sys.exit(code)


def _exit_code() -> str | int | None:
    """Run the command. Raises OSError if its output cannot be written: the reader is gone (then a
    BrokenPipeError), or the disk is full.
    """
    try:
        app()  # ends in SystemExit: with 2 for a wrong option, with 130 for an interrupt
    except SystemExit as ended:
        # Click and rich end with 1 then, which is a violation's exit code.
        if isinstance(ended.__context__, BrokenPipeError):
            raise ended.__context__ from None
        if ended.code == ExitCode.INTERRUPTED and not isinstance(ended, CommandEnded):
            print(INTERRUPTED, file=sys.stderr)  # amid the imports; a command says so itself
        return ended.code
    except BrokenPipeError:
        raise
    except OSError as error:
        if tells_of_no_space(str(error)):  # of the output: the session has told of files
            raise
        return _internal_error()
    except BaseException:  # noqa: BLE001  the last resort: a fault of our own, shown in full
        return _internal_error()
    return ExitCode.PASS


def _internal_error() -> int:
    """Print the traceback of a fault of our own and where to report it; the exit code."""
    traceback.print_exc()
    print(
        "\nkconform: this is a fault of kconform itself, not of what it checks. "
        "Please report it with the traceback above.",
        file=sys.stderr,
    )
    return ExitCode.INTERNAL
