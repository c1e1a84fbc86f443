"""kconform deviations: where a system is known to depart from the specification."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.options import JsonOption
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.stages.context import Context
from conformance.stages.deviations import deviations as deviations_stage
from conformance.stages.overridden import deviating
from conformance.systems.registry import factory_path


def deviations(
    system: Annotated[str, typer.Argument(help="A system with a table: kafka-VERSION.")],
    table: Annotated[
        bool, typer.Option("--table", help="Print the table; replay nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Replay the path of every known deviation, and compare with what the table says.

    Exit code 1 for a deviation that is gone, or is back, or shows itself otherwise.
    """
    with session("deviations", as_json=as_json) as work:
        known = deviating(factory_path(system, work.settings.systems))
        if known is None:
            raise UserError(f"{system} has no table of deviations: none is known of it.")
        for one in known.deviations():
            work.say(f"{one.id} ({one.report}; {one.severity})")
            work.say(f"  {one.title}")
            seen, gone = (", ".join(where) or "none" for where in (one.seen, one.gone))
            work.say(f"  seen in {seen}; gone in {gone}")
            if table:
                work.say(f"  {one.description.strip()}")
        if not table:
            deviations_stage(Context(work.settings, work.emit), system)
