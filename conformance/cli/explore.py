"""kconform explore: Hypothesis against an implementation."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.options import JsonOption, SeedOption, SystemOption
from conformance.cli.session import session
from conformance.modelcheck.check import CheckOptions
from conformance.replay.profile import Profile
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.explore import explore as explore_stage


def explore(
    model: Annotated[str, typer.Argument(help="The model whose constants bound the system.")],
    profile: Annotated[
        Profile, typer.Option(help="dev: seconds; ci: a minute, derandomised; nightly: long.")
    ] = Profile.DEV,
    examples: Annotated[int | None, typer.Option(min=1, help="Hypothesis examples.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of an example at most.")] = None,
    seed: SeedOption = None,
    system: SystemOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search with Hypothesis, the spec's evaluator being the oracle: no state graph bounds it."""
    with session("explore", as_json=as_json) as work:
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(),
            work.settings.seed if seed is None else seed,
        )
        bench = workbench(context, one_model(model), system, with_graph=False)
        explore_stage(context, bench, profile=profile, examples=examples, steps=steps)
