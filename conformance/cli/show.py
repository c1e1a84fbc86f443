"""kconform show: what a formula or action becomes, beside its TLA+ text."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.options import ConfigOption, JsonOption
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.modelcheck.cache import module_files
from conformance.modelcheck.manifest import Model, find_models, model_from_config
from conformance.modelcheck.prepare import prepare
from conformance.tla import find_tools
from conformance.tla.show import STAGES
from conformance.tla.show import show as stages_of

PYTHON = ("text", "python")
SPARK = ("text", "types", "formula", "sql")


def show(
    name: Annotated[str, typer.Argument(help="An invariant, property, action or operator.")],
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model that binds it: a name, manifest or path/Spec.tla."),
    ] = None,
    config: ConfigOption = None,
    python: Annotated[bool, typer.Option("--python", help="The Python function.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="The columns of Spark SQL.")] = False,
    stages: Annotated[
        bool, typer.Option("--stages", help="Every stage of both compilers, in order.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what a formula or action becomes in Python and in Spark SQL, beside its TLA+ text."""
    with session("show", as_json=as_json) as work:
        chosen = _model(name, model, config)
        wanted = _stages(python=python, spark=spark, every=stages)
        shown = stages_of(prepare(chosen, find_tools()).spec, name, wanted)
        work.listing(
            "stages",
            [
                (
                    f"--- {one.title}\n{one.text}\n",
                    {"stage": one.stage, "title": one.title, "text": one.text},
                )
                for one in shown
            ],
        )


def _stages(*, python: bool, spark: bool, every: bool) -> tuple[str, ...]:
    """The names of the stages, in the pipeline's order."""
    if every or not (python or spark):
        return tuple(STAGES)
    wanted = {*(PYTHON if python else ()), *(SPARK if spark else ())}
    return tuple(stage for stage in STAGES if stage in wanted)


def _model(name: str, model: str | None, config: Path | None) -> Model:
    if model is None:
        if config is not None:
            raise UserError("--config goes with --model path/Spec.tla. Name the module.")
        return _smallest_with(name)
    if model.endswith(".tla"):
        spec = Path(model)
        return model_from_config(spec, config or spec.with_suffix(".cfg"))
    if config is not None:
        raise UserError("--config goes with --model path/Spec.tla; a model has its own.")
    found = find_models([model])
    if len(found) > 1:
        raise UserError(
            f"{model} names {len(found)} models; name one: {found[0].name}, for example."
        )
    return found[0]


def _smallest_with(name: str) -> Model:
    """Of kconform's own models the one with the fewest states whose modules define the name."""
    defines = re.compile(rf"^\s*(LOCAL\s+)?{re.escape(name)}\s*(\(.*\))?\s*==", re.MULTILINE)
    for model in sorted(find_models(), key=_states):
        files = module_files(model.spec_path, list(model.search))
        if any(defines.search(path.read_text(encoding="utf-8")) for path in files):
            return model
    raise UserError(
        f"None of kconform's own specifications defines {name}. Name the model that does with "
        "--model: a model, a manifest, or path/Spec.tla with --config."
    )


def _states(model: Model) -> tuple[int, str]:
    states = model.expect.distinct_states if model.expect else None
    return states or sys.maxsize, model.name
