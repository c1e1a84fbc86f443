"""kconform record and import: traces into a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.audit.session import spark_session
from conformance.cli.options import ColdOption, JsonOption, MasterOption, SeedOption, SystemOption
from conformance.cli.session import session
from conformance.config import settled_tier
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.imports import import_traces
from conformance.stages.record import record as record_stage

OutputOption = Annotated[Path, typer.Option("-o", "--output", help="The store to write.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a store that is there.")]


def record(
    model: Annotated[str, typer.Argument(help="The model, by name or manifest.")],
    output: OutputOption,
    traces: Annotated[int | None, typer.Option(min=1, help="Number of random walks.")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Steps of a walk at most.")] = None,
    seed: SeedOption = None,
    system: SystemOption = None,
    master: MasterOption = None,
    force: ForceOption = False,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the implementation along random walks and store what it did."""
    with session("record", as_json=as_json) as work:
        tier = settled_tier(work.settings, work.settings.tier)
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(cold=cold),
            work.settings.seed if seed is None else seed,
        )
        bench = workbench(context, one_model(model), system)
        with spark_session(master) as spark:
            record_stage(
                context,
                bench,
                spark,
                output,
                traces=traces or tier.traces,
                length=length or tier.trace_length,
                replace=force,
            )
        work.closing = f"store: {output}\naudit it: kconform audit {output}"


def import_command(
    files: Annotated[list[Path], typer.Argument(help="Traces: .ndjson or .itf.json files.")],
    output: OutputOption,
    model: Annotated[str, typer.Option(help="The model whose spec the traces are to follow.")],
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Bring traces of a foreign implementation into a store."""
    with session("import", as_json=as_json) as work:
        context = Context(work.settings, work.emit)
        import_traces(context, one_model(model), files, output, replace=force)
        work.closing = f"store: {output}\naudit it: kconform audit {output}"
