"""kconform inspect: what yesterday's data directories prove."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.cluster import LibOption, VersionOption
from conformance.cli.options import CompareOption, JsonOption, MasterOption, ReportOption
from conformance.cli.session import CommandSession, session
from conformance.events import Progress, StageFinished, StageStarted
from conformance.files import check_folder, written_aside
from conformance.inspect import outputs, page
from conformance.inspect.inspection import Inspection, inspect
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of, moment
from conformance.inspect.reading.reader import read
from conformance.inspect.workers import OnDemand
from conformance.kafka.jars import chosen_jars
from conformance.printable import counted
from conformance.stages.context import Context
from conformance.stages.load import folders_of, releases_of
from conformance.stages.load import load as load_stage

_SHOWN = 20
_EVERY = 0.3


def inspect_command(
    brokers: Annotated[
        list[str],
        typer.Argument(
            help="b1=DIR b2=DIR ...: copies of brokers' log directories; a name may come twice.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder for evidence, findings and page.")
    ],
    logs: Annotated[
        list[str] | None,
        typer.Option("--logs", help="Server logs: a pattern in quotes, or NAME=PATTERN."),
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only this topic; several times.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option(help="Only partitions of this number; several times.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Server logs and checksums from this time on (UTC).")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="... and up to this one; groups as well.")
    ] = None,
    zone: Annotated[
        str, typer.Option("--zone", help="The time zone that the server logs are written in.")
    ] = "UTC",
    log_layout: Annotated[
        list[str] | None,
        typer.Option(
            "--log-layout",
            help="How their lines are laid out, if that is not recognised: a pattern of log4j, a "
            "regular expression, json:message=KEY,..., or a name.",
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--checksums/--no-checksums", help="Verify every batch's checksum.")
    ] = True,
    version: VersionOption = None,
    kafka_lib: LibOption = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            help="Say whether these releases load the coordinators' partitions: kafka-4.4.0.",
        ),
    ] = None,
    master: MasterOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check copies of brokers' data directories and server logs for faults."""
    with session("inspect", as_json=as_json, report=report, compare=compare) as work:
        check_folder(output)
        started = time.monotonic()
        filters = Filters(
            frozenset(topic or ()),
            frozenset(partition or ()),
            None if since is None else moment(since),
            None if until is None else moment(until),
        )
        layouts = tuple(log_layout or ())
        releases = releases_of(load) if load else []
        inputs = Inputs(brokers_of(brokers), tuple(logs or ()), filters, verify, zone, layouts)
        jars = chosen_jars(version, kafka_lib)
        tell = _Progress(work, "inspect")
        subject = ", ".join(inputs.brokers)
        work.emit(StageStarted("inspect", subject))
        with OnDemand(master) as workers:
            evidence = read(
                inputs,
                output / "evidence",
                jars.classpath,
                workers=workers,
                tell=lambda done, whole: tell(done >> 20, whole >> 20, "MB read"),
            )
            inspection = inspect(
                evidence,
                output,
                workers=workers,
                tell=lambda done, whole: tell(done, whole, "partitions judged"),
            )
        outputs.write(inspection, output)
        with written_aside(output / "index.html") as aside:
            aside.write_text(page.dumps(inspection), encoding="utf-8")
        _report(work, inspection, subject, output, time.monotonic() - started)
        if releases:
            context = Context(work.settings, work.emit)
            load_stage(context, folders_of(inputs.brokers), releases, classes=True)


class _Progress:
    """Progress, at most a few times a second."""

    def __init__(self, work: CommandSession, stage: str) -> None:
        self._work = work
        self._stage = stage
        self._next = 0.0

    def __call__(self, done: int, whole: int, what: str) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY
            self._work.emit(Progress(self._stage, done, whole, what))


def _server_logs(inspection: Inspection) -> Iterator[str]:
    """What became of the lines of each server log."""
    for log in inspection.server_logs[:_SHOWN]:
        layout = f"layout {log.layout}" if log.layout else "no known layout"
        yield f"server log of {log.broker or 'nobody'}: {log.path}: {layout}; {log.counts()}"
    more = len(inspection.server_logs) - _SHOWN
    if more > 0:
        yield f"{counted(more, 'further server log')}: findings.json has the counts of each"


def _report(
    work: CommandSession, inspection: Inspection, subject: str, output: Path, seconds: float
) -> None:
    command = shlex.join(["kconform", *sys.argv[1:]])
    for discovery in inspection.discoveries:
        work.emit(discovery.as_event(command))
    for gap in [gap for gap in inspection.unjudged if gap.matters][:_SHOWN]:
        work.say(f"not judged: {gap.subject}: {gap.what}: {gap.why}")
    for line in _server_logs(inspection):
        work.say(line)
    files = inspection.files
    summary = (
        f"{counted(inspection.partition_count, 'partition')} and "
        f"{counted(inspection.group_count, 'group')} "
        f"of {counted(len(inspection.copies.copies), 'broker')}; {counted(files['read'], 'file')} "
        "read, "
        f"{files['skipped']} skipped, {files['error']} in error; "
        f"copies up to {inspection.copies.apart / 1000:.0f} s apart"
    )
    figures = inspection.figures()
    work.emit(StageFinished("inspect", subject, inspection.verdict, seconds, summary, figures))
    work.closing = f"page: {output / 'index.html'}\nfindings: {output / 'findings.json'}"
