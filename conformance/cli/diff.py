"""kconform diff: which behaviours a change of a specification adds, and which it takes away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from conformance.cli.completion import model_names
from conformance.cli.options import JsonOption, ReportOption, constants_of
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context, one_model
from conformance.stages.diff import (
    DiffLimits,
    ModelPair,
    pair_of_constants,
    pair_of_modules,
    pair_of_overrides,
    pair_of_texts,
    table,
)
from conformance.stages.diff import diff as diff_stage


def diff(
    models: Annotated[
        list[str],
        typer.Argument(
            help="The old and the new model, or Old.tla New.tla; or one model.",
            autocompletion=model_names,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="The model whose constants and bounds both modules get.",
            autocompletion=model_names,
        ),
    ] = None,
    old: Annotated[
        list[str] | None,
        typer.Option("--old", help="Of one model: NAME=VALUE of a constant in the old one."),
    ] = None,
    new: Annotated[
        list[str] | None,
        typer.Option("--new", help="The same in the new one, such as 'Protocol=\"Kip101\"'."),
    ] = None,
    observe: Annotated[
        list[str] | None,
        typer.Option(
            help="Variables, or operators without arguments, that both have; with commas.",
            show_default="the variables that both have",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Give up after so many states, of both together.")
    ] = 2_000_000,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Give up after so many seconds.")
    ] = None,
    stories: Annotated[
        bool, typer.Option("--stories", help="A story for every action, not for the shortest.")
    ] = False,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two specifications: the behaviours that only one of them has.

    One model alone is compared with itself: without its overrides, or with --old and --new.
    """
    with session("diff", as_json=as_json, report=report) as work:
        folder = None if report is None else work.settings.counterexamples
        context = Context(work.settings, work.emit, CheckOptions(keep=folder))
        pair = _pair(context, models, model, constants_of("--old", old), constants_of("--new", new))
        observed = [name.strip() for given in observe or () for name in given.split(",")]
        limits = DiffLimits(tuple(filter(None, observed)), limit, seconds, stories)
        work.say(f"old: {pair.old_name}")
        work.say(f"new: {pair.new_name}")
        work.closing = "\n".join(table(diff_stage(context, pair, limits)))


def _pair(
    context: Context,
    models: Sequence[str],
    model: str | None,
    old: Mapping[str, str],
    new: Mapping[str, str],
) -> ModelPair:
    """What is compared. UserError for arguments that say too much or too little."""
    if len(models) > 2:
        raise UserError(f"{len(models)} models are given; diff compares two, or one with itself.")
    if len(models) == 2:
        if old or new:
            raise UserError("--old and --new go with one model: name one, or leave them out.")
        if model is None:
            return pair_of_modules(one_model(models[0]), one_model(models[1]))
        return pair_of_texts(models[0], models[1], one_model(model))
    if model is not None:
        raise UserError("--model goes with two modules: kconform diff Old.tla New.tla --model M.")
    if old or new:
        return pair_of_constants(one_model(models[0]), old, new)
    return pair_of_overrides(context, one_model(models[0]))
