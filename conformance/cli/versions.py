"""kconform versions: models against several versions of a system, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from conformance.cli.completion import model_names, system_names
from conformance.cli.options import ColdOption, JsonOption, KafkaLibOption, use_kafka_lib
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.events import JsonValue
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.manifest import find_models
from conformance.stages.context import Context
from conformance.stages.versions import VersionCell
from conformance.stages.versions import versions as versions_stage


def versions(
    models: Annotated[
        list[str], typer.Argument(help="Models, or folders of models.", autocompletion=model_names)
    ],
    system: Annotated[
        list[str],
        typer.Option(
            "--system",
            help="Systems, with commas or repeated: kafka-3.8.1,3.9.1,4.4.0.",
            autocompletion=system_names,
        ),
    ],
    jobs: Annotated[int | None, typer.Option(min=1, help="Suites side by side.")] = None,
    kafka_lib: KafkaLibOption = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Drive several systems along the same models and print a matrix of their deviations."""
    use_kafka_lib(kafka_lib)
    with session("versions", as_json=as_json) as work:
        work.keep_divergences()
        systems = list(dict.fromkeys(name for given in system for name in _names(given)))
        if not systems:
            raise UserError("--system names no system: give kafka-3.8.1,kafka-3.9.1 or the like.")
        named = [model.driving() for model in find_models(models)]
        chosen = [model for model in named if model.feeds_suite]
        if not chosen:
            raise UserError("None of these models feeds a suite: there is nothing to drive along.")
        options = CheckOptions(jobs=jobs or work.settings.jobs, cold=cold)
        cells = versions_stage(Context(work.settings, work.emit, options), chosen, systems)
        work.header["matrix"] = _object(cells)
        work.closing = "\n".join(_table(cells))


def _names(given: str) -> list[str]:
    """`kafka-3.8.1,3.9.0`: a bare version is one of the system before it.

    A command may have commas of its own.
    """
    if given.startswith("exec:"):
        return [given]
    names: list[str] = []
    for name in filter(None, map(str.strip, given.split(","))):
        family = names[-1].partition("-")[0] if names and name[0].isdigit() else ""
        names.append(f"{family}-{name}" if family else name)
    return names


def _object(cells: Sequence[VersionCell]) -> dict[str, JsonValue]:
    """By model, by system."""
    result: dict[str, dict[str, JsonValue]] = {}
    for cell in cells:
        result.setdefault(cell.model, {})[cell.system] = {
            "answer": str(cell.answer),
            "deviations": list(cell.deviations),
            "tests": cell.tests,
            "steps": cell.steps,
        }
    return dict(result)


def _table(cells: Sequence[VersionCell]) -> list[str]:
    """A row for each model, a column for each system; below it what was driven and agreed."""
    systems = list(dict.fromkeys(cell.system for cell in cells))
    rows = [["", *systems]]
    for model in dict.fromkeys(cell.model for cell in cells):
        shown = {cell.system: cell for cell in cells if cell.model == model}
        rows.append([model, *(shown[system].short for system in systems)])
        if any(cell.driven for cell in shown.values()):
            rows.append(["", *(shown[system].driven for system in systems)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(w) for text, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
