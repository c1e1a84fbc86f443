"""kconform interleave: one thread's action stopped in its middle by another's."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import (
    ColdOption,
    CompareOption,
    ConfigOption,
    JsonOption,
    ReportOption,
    SeedOption,
    SystemOption,
    configured,
)
from conformance.cli.session import session
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.interleave import interleave as interleave_stage


def interleave(
    model: Annotated[
        str,
        typer.Argument(
            help="The model whose states and actions are taken.", autocompletion=model_names
        ),
    ],
    config: ConfigOption = None,
    samples: Annotated[
        int, typer.Option(min=1, help="States in which each pair of actions is tried.")
    ] = 20,
    seed: SeedOption = None,
    system: SystemOption = None,
    cold: ColdOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Interrupt actions between their critical sections by others, and check the results.

    Whatever two threads make of two actions, the spec must allow it for the two in turn.
    """
    with session("interleave", as_json=as_json, report=report, compare=compare) as work:
        work.keep_divergences()
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(cold=cold),
            work.settings.seed if seed is None else seed,
        )
        interleave_stage(
            context,
            workbench(context, one_model(configured(model, config)), system),
            samples=samples,
        )
