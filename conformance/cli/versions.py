"""kconform versions: models against several systems, as a matrix."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.options import ColdOption, JsonOption
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context, one_model
from conformance.stages.versions import Cell
from conformance.stages.versions import versions as versions_stage


def versions(
    models: Annotated[list[str], typer.Argument(help="Models that feed suites.")],
    system: Annotated[
        str,
        typer.Option(
            "--system", help="Systems, with commas: kafka-3.8.1,kafka-4.4.0 or 3.8.1,4.4.0."
        ),
    ],
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Replay each model's suite on each system: it agrees, or deviates as its table knows."""
    with session("versions", as_json=as_json) as work:
        names = systems_of(system)
        if not names:
            raise UserError("--system names no system.")
        context = Context(work.settings, work.emit, CheckOptions(cold=cold))
        cells = versions_stage(context, [one_model(name) for name in models], names)
        for line in matrix(cells, names):
            work.say(line)
        work.header["matrix"] = {
            f"{cell.model} on {cell.system}": list(cell.deviations or ()) for cell in cells
        }


def systems_of(text: str) -> list[str]:
    """`kafka-3.8.1,3.9.0`: a bare version is one of the system before it."""
    found: list[str] = []
    for name in filter(None, text.split(",")):
        word = found[-1].partition("-")[0] if found and name[0].isdigit() else ""
        found.append(f"{word}-{name}" if word else name)
    return found


def matrix(cells: list[Cell], systems: list[str]) -> list[str]:
    """A line for each system under a head with the models."""
    models = list(dict.fromkeys(cell.model for cell in cells))
    told = {(cell.system, cell.model): cell.told for cell in cells}
    rows = [["", *models], *[[name, *[told[name, model] for model in models]] for name in systems]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(models) + 1)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
