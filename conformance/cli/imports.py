"""kconform import: traces of a foreign implementation, into a store."""

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
from conformance.stages.context import Context, one_model
from conformance.stages.imports import import_traces


def import_command(
    files: Annotated[list[Path], typer.Argument(help="Traces: .ndjson or .itf.json files.")],
    output: StoreOption,
    model: Annotated[
        str,
        typer.Option(
            help="The model whose spec the traces are to follow.", autocompletion=model_names
        ),
    ],
    force: ForceOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring traces of a foreign implementation into a store."""
    with session("import", as_json=as_json, report=report, compare=compare) as work:
        context = Context(work.settings, work.emit)
        import_traces(context, one_model(model), files, output, replace=force)
        work.closing = f"store: {output}\naudit it: kconform audit {output}"
