"""kconform suite: tests from a model's state graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import (
    ColdOption,
    ConfigOption,
    JsonOption,
    SeedOption,
    configured,
)
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.files import check_file
from conformance.modelcheck.check import CheckOptions, graph_and_spec
from conformance.stages.context import Context, one_model
from conformance.stages.suite import cover, make_suite, measured
from conformance.suites.suite import save_suite


def suite(
    model: Annotated[
        str, typer.Argument(help="The model, by name or manifest.", autocompletion=model_names)
    ],
    config: ConfigOption = None,
    kind: Annotated[
        str, typer.Option("--kind", help="cover (minimal), walks, or situations.")
    ] = "cover",
    walks: Annotated[int, typer.Option(min=1, help="Number of random walks.")] = 1000,
    length: Annotated[int, typer.Option(min=1, help="Steps of a random walk at most.")] = 20,
    seed: SeedOption = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the suite to this .npz file.")
    ] = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print a suite's size and coverage, for the minimal cover and for a greedy walk."""
    with session("suite", as_json=as_json) as work:
        if output is not None:
            check_file(output)
        chosen = one_model(configured(model, config))
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(cold=cold),
            work.settings.seed if seed is None else seed,
        )
        graph, prepared = graph_and_spec(chosen, context.check, context.emit)
        if kind == "cover":
            made = cover(context, chosen.name, graph, compare=True)
        elif kind in ("walks", "situations"):
            made = make_suite(context, kind, graph, prepared, walks=walks, length=length)
            measured(context, chosen.name, graph, made)
        else:
            raise UserError(f"There is no kind {kind!r}; the kinds are cover, walks, situations.")
        if output is not None:
            save_suite(made, output)
            work.closing = f"suite: {output}"
