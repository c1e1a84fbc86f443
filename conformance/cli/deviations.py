"""kconform deviations: where a system is known to depart from the specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import ColdOption, JsonOption
from conformance.cli.session import session
from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.events import JsonValue
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.manifest import Model, find_models
from conformance.registry import factory_path
from conformance.stages.context import Context
from conformance.stages.deviations import deviations as deviations_stage
from conformance.stages.selection import select
from conformance.stages.weakened import weakened


def deviations(
    system: Annotated[str, typer.Argument(help="A system with a table: kafka-VERSION.")],
    table: Annotated[
        bool, typer.Option("--table", help="Print the table; replay nothing.")
    ] = False,
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas",
            help="Check which formulas still hold under all overrides of this version together.",
        ),
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Of --formulas: models, or folders; all it can take else.",
            autocompletion=model_names,
        ),
    ] = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Replay the path of every known deviation, and compare the results with the table.

    Exit code 1 for a deviation that is gone, or is back, or shows itself otherwise, and for a
    formula that breaks although the table does not say so.
    """
    with session("deviations", as_json=as_json) as work:
        known = deviating(factory_path(system, work.settings.systems))
        if known is None:
            raise UserError(f"{system} has no table of deviations: none is known of it.")
        rows = [_row(deviation, whole=table) for deviation in known.deviations()]
        if table and not formulas:
            work.listing("deviations", rows)
        for line, _ in rows:
            work.say(line)
        context = Context(work.settings, work.emit, CheckOptions(cold=cold))
        if formulas:
            weakened(context, _chosen(context, model or [], system), system)
        else:
            deviations_stage(context, system)


def _row(known: Deviation, *, whole: bool) -> tuple[str, JsonValue]:
    """A deviation of the table, as lines and as an object."""
    seen, gone = (", ".join(where) or "none" for where in (known.seen, known.gone))
    lines = [f"{known.id} ({known.report}; {known.severity})", f"  {known.title}"]
    lines += [f"  seen in {seen}; gone in {gone}"]
    lines += [f"  {known.description.strip()}"] if whole else []
    return "\n".join(lines), {
        "id": known.id,
        "report": known.report,
        "severity": str(known.severity),
        "title": known.title,
        "seen": [*known.seen],
        "gone": [*known.gone],
        "description": known.description.strip(),
    }


def _chosen(context: Context, names: Sequence[str], system: str) -> tuple[Model, ...]:
    """Those that are named; else all of the ci tier whose suites the system can take."""
    if names:
        return tuple(find_models(names))
    return select(context, find_models((), "ci"), system).models
