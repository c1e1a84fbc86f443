"""kconform history: what the operations of clients prove."""

from __future__ import annotations

import glob
import json
import shlex
import sys
import tempfile
import textwrap
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import CompareOption, JsonOption, MasterOption, ReportOption
from conformance.cli.session import CommandSession, session
from conformance.errors import UserError
from conformance.events import StageFinished, StageStarted
from conformance.files import check_folder, written_aside
from conformance.history import stories
from conformance.history.declaration import DeclaredHistory, declared_histories
from conformance.history.judgement import HistoryJudgement, judge_history
from conformance.history.reading import history_files
from conformance.history.rules import HistoryFormulas
from conformance.printable import counted
from conformance.workers import workers_for

_WIDTH = 76
"""Of notes: what is longer is cut."""
_SHOWN = 20
_MILLISECOND = 1_000_000
_BYTES_OF_A_TRACE, _BYTES_OF_A_STEP = 20_000, 100
"""So many bytes of a history are as much work as a trace, and as a step: from 20 GB on Spark pays,
and from 40 MB other processes do."""


class Acks(StrEnum):
    """What producers wait for."""

    ALL = "all"
    ONE = "1"
    NONE = "0"


class Isolation(StrEnum):
    """What consumers see of transactions."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


def history_command(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Files of operations, or patterns in quotes: NDJSON, or Jepsen's .edn.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for findings.")],
    acks: Annotated[
        Acks | None, typer.Option(help="The producers' acks.", show_default="all")
    ] = None,
    isolation: Annotated[
        Isolation | None,
        typer.Option(help="The consumers' isolation.level.", show_default="read_committed"),
    ] = None,
    idempotence: Annotated[
        bool | None,
        typer.Option(
            "--idempotence/--no-idempotence",
            help="Producers number batches.",
            show_default="idempotence",
        ),
    ] = None,
    unclean_election: Annotated[
        bool,
        typer.Option("--unclean-election", help="unclean.leader.election.enable is true."),
    ] = False,
    deletion: Annotated[
        bool, typer.Option("--deletion", help="Retention, compaction or DeleteRecords took part.")
    ] = False,
    transaction_version: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=2,
            help="transaction.version, rounded up to 1: 2 is KIP-890.",
            show_default="2",
        ),
    ] = None,
    clock_skew: Annotated[
        int, typer.Option(min=0, help="Milliseconds by which clients' clocks may differ.")
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes.", show_default="settings")
    ] = None,
    master: MasterOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge what clients sent, polled and committed by the specification's rules."""
    with session("history", as_json=as_json, report=report, compare=compare) as work:
        check_folder(output)
        options: dict[str, str | bool | int | None] = {
            "acks": None if acks is None else "all" if acks is Acks.ALL else "1",
            "isolation": None if isolation is None else str(isolation),
            "idempotence": idempotence,
            "unclean_election": unclean_election or None,
            "deletion": deletion or None,
            "transaction_version": transaction_version,
        }
        given = {name: value for name, value in options.items() if value is not None}
        judge_files(work, _paths(files), output, given, clock_skew, jobs, master)


def judge_files(
    work: CommandSession,
    paths: Sequence[Path],
    output: Path,
    given: Mapping[str, str | bool | int],
    clock_skew: int = 0,
    jobs: int | None = None,
    master: str | None = None,
) -> None:
    """A stage for each configuration that the files declare; `given` replaces what they declare."""
    histories = declared_histories(paths, given)
    for history in histories:
        own = output if len(histories) == 1 else output / history.name
        _judge(work, history, own, clock_skew, jobs, master)
    if len(histories) > 1:
        work.closing = f"findings: {output}/*/findings.json"


def _judge(
    work: CommandSession,
    declared: DeclaredHistory,
    output: Path,
    clock_skew: int,
    jobs: int | None,
    master: str | None,
) -> None:
    inputs = history_files(declared.files)
    started = time.monotonic()
    size = sum(file.size for file in inputs)
    subject = f"{counted(len(inputs), 'file')}, {declared.name}"
    work.emit(StageStarted("history", subject))
    output.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=".rows-", dir=output) as scratch,
        workers_for(
            size // _BYTES_OF_A_TRACE,
            size // _BYTES_OF_A_STEP,
            master=master,
            processes=jobs or work.settings.jobs or 1,
        ) as workers,
    ):
        judgement = judge_history(
            inputs,
            HistoryFormulas.of(declared.configuration),
            Path(scratch).absolute(),
            workers,
            clock_skew * _MILLISECOND,
        )
    _report(work, judgement, subject, output, time.monotonic() - started)


def _paths(patterns: Sequence[str]) -> list[Path]:
    """The files in the order of their names. UserError for a pattern that no file has."""
    paths: set[Path] = set()
    for pattern in patterns:
        names = [pattern] if Path(pattern).exists() else glob.glob(pattern)  # noqa: PTH207
        if not names:
            raise UserError(f"No file has the name or the pattern {pattern!r}.")
        paths.update(map(Path, names))
    return sorted(paths)


def _report(
    work: CommandSession, judgement: HistoryJudgement, subject: str, output: Path, seconds: float
) -> None:
    command = shlex.join(["kconform", *sys.argv[1:]])
    for finding in stories.findings(judgement, output, command):
        work.emit(finding)
    history = judgement.history
    for name, bad in history.bad[:_SHOWN]:
        work.say(f"not understood: {name}, line {bad.number}: {bad.why}")
    for reason, count in sorted(history.reasons.items(), key=lambda item: -item[1])[:_SHOWN]:
        work.say(f"not judged: {counted(count, 'time')}: {reason}")
    if judgement.resent:
        work.say(f"not judged by value: {counted(judgement.resent, 'value')} sent more than once")
    for line in stories.allowed_lines(judgement):
        work.say(line)
    for doubt in judgement.doubts():
        work.say(f"would decide: {doubt}")
    rules = [tally for tally in judgement.tallies.values() if tally.rule.decides]
    unasked = [tally.rule.name for tally in rules if not tally.exercised]
    if unasked:
        for line in textwrap.wrap(f"never exercised: {', '.join(unasked)}", _WIDTH):
            work.say(line)
    done = history.operations
    summary = (
        f"{sum(done.values()):,} operations ({done['ok']:,} ok, {done['fail']:,} failed, "
        f"{done['unknown']:,} unknown) of {counted(history.processes, 'process')} "
        f"on {counted(judgement.partitions, 'partition')}; {len(rules) - len(unasked)} of "
        f"{len(rules)} rules applied, in {counted(judgement.distinct, 'distinct situation')}"
    )
    figures = stories.as_json(judgement)
    with written_aside(output / "findings.json") as path:
        body = {"schema_version": 1, "verdict": str(judgement.verdict), **figures}
        path.write_text(json.dumps(body, indent=1), encoding="utf-8")
    work.emit(StageFinished("history", subject, judgement.verdict, seconds, summary, figures))
    work.closing = f"findings: {output / 'findings.json'}"
