"""kconform import and judge: traces of a foreign implementation, recordings of a real system."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import (
    CompareOption,
    ConfigOption,
    ForceOption,
    JsonOption,
    MasterOption,
    ReportOption,
    StoreOption,
    configured,
)
from conformance.cli.session import session
from conformance.judge.mapping import Mapping, load_mapping
from conformance.judge.reading import bytes_of
from conformance.stages.context import Context, one_model
from conformance.stages.judging import JudgeRequest, judge_files, unclear_lines
from conformance.traces.writer import check_target
from conformance.workers import Workers, workers_for

FilesArgument = Annotated[
    list[Path], typer.Argument(help="Traces: .ndjson or .itf.json files.", show_default=False)
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        help="The model whose spec the traces are to follow.",
        autocompletion=model_names,
    ),
]
MappingOption = Annotated[
    Path | None,
    typer.Option(
        "--mapping", help="The mapping with the declarations about the traces (docs/mapping.md)."
    ),
]

KnownDeviationsOption = Annotated[
    str | None,
    typer.Option(
        "--deviations",
        help="Known departures of what was recorded: a table FILE.toml, or a system that has one.",
    ),
]


def import_command(
    files: FilesArgument,
    output: StoreOption,
    model: ModelOption,
    config: ConfigOption = None,
    mapping: MappingOption = None,
    deviations: KnownDeviationsOption = None,
    force: ForceOption = False,
    master: MasterOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge traces of a foreign implementation, and keep what explains them in a store."""
    with session("import", as_json=as_json, report=report, compare=compare) as work:
        check_target(output, replace=force)
        work.keep_divergences()
        context = Context(work.settings, work.emit)
        request = _request(files, configured(model, config), mapping, deviations)
        with _workers(request, master) as workers:
            tally = judge_files(
                context, request, output, name="import", replace_store=force, workers=workers
            )
        for line in unclear_lines(tally):
            work.say(line)
        work.closing = f"store: {output}\naudit it: kconform audit {output}"


def judge_command(
    files: FilesArgument,
    model: ModelOption,
    config: ConfigOption = None,
    mapping: MappingOption = None,
    deviations: KnownDeviationsOption = None,
    trace: Annotated[str | None, typer.Option(help="Judge this trace only, by its name.")] = None,
    invariants_only: Annotated[
        bool,
        typer.Option("--invariants-only", help="Judge states, not the steps between them."),
    ] = False,
    master: MasterOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for a behaviour of the spec that explains the recorded events of a system."""
    with session("judge", as_json=as_json, report=report, compare=compare) as work:
        work.keep_divergences()
        context = Context(work.settings, work.emit)
        request = _request(
            files,
            configured(model, config),
            mapping,
            deviations,
            only=trace,
            invariants_only=invariants_only,
        )
        with _workers(request, master) as workers:
            tally = judge_files(context, request, workers=workers)
        for line in unclear_lines(tally):
            work.say(line)


MOST_BYTES = 64 * 2**20
"""Files up to this length are judged in this process: Spark would still be starting."""


@contextmanager
def _workers(request: JudgeRequest, master: str | None) -> Iterator[Workers | None]:
    """Spark's for many traces, or if a master is named; None for few, or for a single one."""
    few = request.only is not None or bytes_of(request.files) <= MOST_BYTES
    if few and master is None:
        yield None
        return
    with workers_for(0, 0, master=master, processes=1, spark=True) as workers:
        yield workers


def _request(
    files: list[Path],
    model: str,
    mapping: Path | None,
    deviations: str | None,
    *,
    only: str | None = None,
    invariants_only: bool = False,
) -> JudgeRequest:
    declared = Mapping() if mapping is None else load_mapping(mapping)
    return JudgeRequest(
        tuple(files),
        one_model(model),
        declared,
        mapping,
        only,
        deviations=deviations,
        invariants_only=invariants_only,
    )
