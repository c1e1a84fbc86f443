"""kconform turns: the loops of a system's threads, a turn at a time."""

from __future__ import annotations

from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import (
    ColdOption,
    CompareOption,
    JsonOption,
    KafkaLibOption,
    ReportOption,
    SeedOption,
    SystemOption,
    use_kafka_lib,
)
from conformance.cli.session import session
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.turns import turns as turns_stage


def turns(
    model: Annotated[
        str,
        typer.Argument(
            help="A model whose round trips are three steps.", autocompletion=model_names
        ),
    ],
    walks: Annotated[int, typer.Option(min=1, help="Number of random walks.")] = 200,
    length: Annotated[int, typer.Option(min=1, help="Steps of a walk at most.")] = 25,
    seed: SeedOption = None,
    system: SystemOption = None,
    kafka_lib: KafkaLibOption = None,
    cold: ColdOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let fetcher threads run their own loop: order, composition and back-off are compared.

    Each turn of doWork has to come out as the specification's steps in the order of the loop.
    """
    use_kafka_lib(kafka_lib)
    with session("turns", as_json=as_json, report=report, compare=compare) as work:
        work.keep_divergences()
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(cold=cold),
            work.settings.seed if seed is None else seed,
        )
        bench = workbench(context, one_model(model), system)
        turns_stage(context, bench, walks=walks, length=length)
