"""kconform import and judge: what a foreign implementation or a real system left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import (
    CompareOption,
    ForceOption,
    JsonOption,
    ReportOption,
    StoreOption,
    model_names,
)
from conformance.cli.session import session
from conformance.judge.mapping import Mapping, load_mapping
from conformance.stages.context import Context, one_model
from conformance.stages.judging import Request, judge_files, unclear_lines

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
    typer.Option("--mapping", help="What is declared about the traces (docs/mapping.md)."),
]


def import_command(
    files: FilesArgument,
    output: StoreOption,
    model: ModelOption,
    mapping: MappingOption = None,
    force: ForceOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge traces of a foreign implementation, and keep what explains them in a store."""
    with session("import", as_json=as_json, report=report, compare=compare) as work:
        context = Context(work.settings, work.emit)
        request = _request(files, model, mapping)
        tally = judge_files(context, request, output, name="import", replace_store=force)
        for line in unclear_lines(tally):
            work.say(line)
        work.closing = f"store: {output}\naudit it: kconform audit {output}"


def judge_command(
    files: FilesArgument,
    model: ModelOption,
    mapping: MappingOption = None,
    trace: Annotated[str | None, typer.Option(help="Judge this trace only, by its name.")] = None,
    invariants_only: Annotated[
        bool,
        typer.Option("--invariants-only", help="Judge states, not the steps between them."),
    ] = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look for a behaviour of the spec that explains what was seen of a system."""
    with session("judge", as_json=as_json, report=report, compare=compare) as work:
        context = Context(work.settings, work.emit)
        request = _request(files, model, mapping, only=trace, invariants_only=invariants_only)
        for line in unclear_lines(judge_files(context, request)):
            work.say(line)


def _request(
    files: list[Path],
    model: str,
    mapping: Path | None,
    *,
    only: str | None = None,
    invariants_only: bool = False,
) -> Request:
    declared = Mapping() if mapping is None else load_mapping(mapping)
    return Request(tuple(files), one_model(model), declared, mapping, only, invariants_only)
