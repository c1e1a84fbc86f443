"""kconform show: the translation of a formula or action."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.completion import formula_names, model_names
from conformance.cli.options import ConfigOption, JsonOption, configured
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.stages.showing import smallest_with
from conformance.tla import find_tools
from conformance.tla.show import STAGES
from conformance.tla.show import show as stages_of

PYTHON = ("text", "python")
SPARK = ("text", "types", "formula", "sql")


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="An invariant, property, action or operator.", autocompletion=formula_names
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="The model that binds it: a name, manifest or path/Spec.tla.",
            autocompletion=model_names,
        ),
    ] = None,
    config: ConfigOption = None,
    python: Annotated[bool, typer.Option("--python", help="The Python function.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="The columns of Spark SQL.")] = False,
    stages: Annotated[
        bool, typer.Option("--stages", help="Every stage of both compilers, in order.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print a formula or action in TLA+, and its translation into Python and Spark SQL."""
    with session("show", as_json=as_json) as work:
        wanted = _stages(python=python, spark=spark, every=stages)
        prepared = _prepared(name, model, config, typed=wanted is None or "formula" in wanted)
        shown = stages_of(prepared.spec, name, wanted)
        if model is None:
            work.say(f"--- model {prepared.model.name}, the smallest that has it\n")
        work.listing(
            "stages",
            [
                (
                    f"--- {stage_text.title}\n{stage_text.text}\n",
                    {"stage": stage_text.stage, "title": stage_text.title, "text": stage_text.text},
                )
                for stage_text in shown
            ],
        )


def _stages(*, python: bool, spark: bool, every: bool) -> tuple[str, ...] | None:
    """The names of the stages, in the pipeline's order; None: all that there are."""
    if every or not (python or spark):
        return None
    wanted = {*(PYTHON if python else ()), *(SPARK if spark else ())}
    return tuple(stage for stage in STAGES if stage in wanted)


def _prepared(name: str, model: str | None, config: Path | None, *, typed: bool) -> PreparedModel:
    """The model that the user names, or the smallest that has the name."""
    tools = find_tools()
    if model is not None:
        return prepare(_model(model, config), tools)
    if config is not None:
        raise UserError("--config goes with --model path/Spec.tla. Name the module.")
    return smallest_with(name, tools, typed=typed)


def _model(model: str, config: Path | None) -> Model:
    models = find_models([configured(model, config)])
    if len(models) > 1:
        raise UserError(
            f"{model} names {len(models)} models; name one: {models[0].name}, for example."
        )
    return models[0]
