"""kconform load: whether releases of Kafka load the log that is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import CompareOption, JsonOption, MasterOption, ReportOption
from conformance.cli.session import session
from conformance.stages.context import Context
from conformance.stages.load import load as load_stage
from conformance.stages.load import releases_of


def load(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Copies of partitions' folders: __consumer_offsets-17, __transaction_state-3 "
            "and the like.",
            show_default=False,
        ),
    ],
    kafka: Annotated[
        list[str],
        typer.Option("--kafka", help="Releases, with commas or repeated: 4.1.0,4.4.0."),
    ],
    classes: Annotated[
        bool,
        typer.Option(
            "--classes/--no-classes",
            help="Let the release's own classes load too; without them the specification alone "
            "judges, and needs no JVM.",
        ),
    ] = True,
    master: MasterOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether releases of Kafka load copies of partitions, as they are and compacted."""
    with session("load", as_json=as_json, report=report, compare=compare) as work:
        context = Context(work.settings, work.emit)
        load_stage(context, folders, releases_of(kafka), classes=classes, master=master)
