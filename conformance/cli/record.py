"""kconform record: stores the traces of an implementation."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import (
    ColdOption,
    CompareOption,
    ConfigOption,
    ForceOption,
    JsonOption,
    MasterOption,
    ReportOption,
    SeedOption,
    StoreOption,
    SystemOption,
    configured,
)
from conformance.cli.session import session
from conformance.config import settled_tier
from conformance.modelcheck.check import CheckOptions
from conformance.stages.audit import report_diverged
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.record import record as record_stage
from conformance.stages.record import record_here
from conformance.traces.writer import check_target
from conformance.workers import is_small, workers_for


def record(
    model: Annotated[
        str, typer.Argument(help="The model, by name or manifest.", autocompletion=model_names)
    ],
    output: StoreOption,
    config: ConfigOption = None,
    traces: Annotated[int | None, typer.Option(min=1, help="Number of random walks.")] = None,
    length: Annotated[int | None, typer.Option(min=1, help="Steps of a walk at most.")] = None,
    seed: SeedOption = None,
    system: SystemOption = None,
    master: MasterOption = None,
    force: ForceOption = False,
    cold: ColdOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the implementation along random walks and store its traces."""
    with session("record", as_json=as_json, report=report, compare=compare) as work:
        check_target(output, replace=force)
        work.keep_divergences()
        tier = settled_tier(work.settings, work.settings.tier)
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(cold=cold),
            work.settings.seed if seed is None else seed,
        )
        bench = workbench(context, one_model(configured(model, config)), system)
        traces, length = traces or tier.traces, length or tier.trace_length
        if is_small(traces, master):
            record_here(context, bench, output, traces=traces, length=length, overwrite=force)
        else:
            with workers_for(traces, traces * length, master=master, processes=1) as workers:
                record_stage(
                    context,
                    bench,
                    workers,
                    output,
                    traces=traces,
                    length=length,
                    overwrite=force,
                )
        report_diverged(context, bench, output)
        work.closing = f"store: {output}\naudit it: kconform audit {output}"
