"""kconform export: traces of a store as text, for people and other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import ForceOption, JsonOption
from conformance.cli.session import session
from conformance.files import check_file
from conformance.stages.context import Context
from conformance.stages.exports import export_traces


def export_command(
    store: Annotated[Path, typer.Argument(help="The store.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="FILE.ndjson, or FILE.itf.json of one trace.")
    ],
    trace: Annotated[
        list[int] | None, typer.Option(help="A trace's number (several times); default: all.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write traces of a store as NDJSON or ITF."""
    with session("export", as_json=as_json) as work:
        check_file(output)
        export_traces(Context(work.settings, work.emit), store, output, trace or (), replace=force)
