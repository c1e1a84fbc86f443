"""kconform explore: Hypothesis against an implementation."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import (
    CompareOption,
    ConfigOption,
    JsonOption,
    ReportOption,
    SeedOption,
    SystemOption,
    configured,
    constants_of,
)
from conformance.cli.session import session
from conformance.modelcheck.check import CheckOptions
from conformance.replay.profile import Profile
from conformance.stages.context import Context, one_model, with_constants, workbench
from conformance.stages.explore import explore as explore_stage
from conformance.stages.explore import search_of


def explore(
    model: Annotated[
        str,
        typer.Argument(
            help="The model whose constants make the system.", autocompletion=model_names
        ),
    ],
    config: ConfigOption = None,
    profile: Annotated[
        Profile, typer.Option(help="dev: seconds; ci: a minute, derandomised; nightly: long.")
    ] = Profile.DEV,
    examples: Annotated[int | None, typer.Option(min=1, help="Hypothesis examples.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of an example at most.")] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(help="NAME=EXPRESSION in place of the model's, such as 'Epochs=1..9'."),
    ] = None,
    seed: SeedOption = None,
    system: SystemOption = None,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search with Hypothesis, the spec's evaluator being the oracle: no state graph bounds it.

    With --constant also beyond the model: more processes or longer runs than TLC can exhaust.
    """
    with session("explore", as_json=as_json, report=report, compare=compare) as work:
        work.keep_divergences()
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(),
            work.settings.seed if seed is None else seed,
        )
        chosen = with_constants(
            one_model(configured(model, config)), constants_of("--constant", constant)
        )
        bench = workbench(context, chosen, system, with_graph=False)
        search = search_of(context, bench, profile=profile, examples=examples, steps=steps)
        explore_stage(context, bench, search)
