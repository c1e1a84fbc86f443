"""kconform check: model checks specs by TLC, or by our own evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer

from conformance import toml
from conformance.cli.completion import model_names
from conformance.cli.options import (
    ColdOption,
    CompareOption,
    ConfigOption,
    JsonOption,
    ReportOption,
    all_configured,
)
from conformance.cli.session import CommandSession, session
from conformance.config import settled_tier
from conformance.errors import UserError
from conformance.events import JsonValue
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.form import Tier
from conformance.modelcheck.manifest import Model, find_models, whole_manifest
from conformance.modelcheck.tlc import TlcOptions
from conformance.printable import counted
from conformance.stages.check import check as check_by_tlc
from conformance.stages.context import Context
from conformance.stages.python_engine import check_in_python


def check(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models by name, manifest or folder; or one path/Spec.tla.",
            autocompletion=model_names,
        ),
    ] = None,
    config: ConfigOption = None,
    tier: Annotated[
        str | None, typer.Option(help="All models of this tier: ci or nightly.")
    ] = None,
    engine: Annotated[str, typer.Option(help="tlc, or python: our own evaluator.")] = "tlc",
    cold: ColdOption = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="JVMs side by side.")] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="TLC workers; with more than one, counterexamples may be longer. "
            "With --engine python processes, which find the same as one.",
        ),
    ] = 1,
    stories: Annotated[
        bool, typer.Option("--stories", help="Print the counterexample of every violated model.")
    ] = False,
    all_formulas: Annotated[
        bool,
        typer.Option("--continue", help="Go on after a violation: list every broken formula."),
    ] = False,
    list_models: Annotated[bool, typer.Option("--list", help="List the models, run none.")] = False,
    resolved_only: Annotated[
        bool,
        typer.Option("--resolved", help="Print the whole manifest, with its bases; run none."),
    ] = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check models and compare with what their manifests expect."""
    with session("check", as_json=as_json, report=report, compare=compare) as work:
        chosen = _choose(work, models or [], config, tier)
        if list_models:
            work.listing("models", list(map(_row, chosen)))
        if resolved_only:
            work.listing("manifests", list(map(_manifest, chosen)))
        if engine not in ("tlc", "python"):
            raise UserError(f"There is no engine {engine!r}; the engines are tlc and python.")
        if not models:
            work.say(
                f"{counted(len(chosen), 'model')}; name some to check fewer, --list lists them"
            )
        folder = work.settings.counterexamples
        options = CheckOptions(
            tlc=replace(TlcOptions(), workers=workers),
            jobs=jobs or work.settings.jobs,
            cold=cold,
            all_formulas=all_formulas,
            keep=None if report is None else folder,
        )
        context = Context(work.settings, work.emit, options)
        run = check_in_python if engine == "python" else check_by_tlc
        results = run(context, chosen)
        for check_result in results:
            for entry in check_result.left_out:
                work.say(f"{check_result.model.origin}: {entry}")
        if report is not None and any(result.outcome.steps for result in results):
            work.closing = f"counterexamples: {folder} (kconform story)"
        for result in results:
            # With a problem, the finding has told the story.
            if stories and result.story() and not result.problems:
                work.say(
                    f"\n{result.model.name}: {result.outcome.violated or result.outcome.result}"
                )
                for line in result.story():
                    work.say(f"  {line}")


def _manifest(model: Model) -> tuple[str, JsonValue]:
    """A model's manifest together with its bases, as TOML and as an object."""
    table = cast("dict[str, JsonValue]", whole_manifest(model))
    return f"# {model.name}\n{toml.encode(table)}", {"model": model.name, "manifest": table}


def _choose(
    work: CommandSession, names: Sequence[str], config: Path | None, tier: str | None
) -> list[Model]:
    if chosen := all_configured(names, config):
        return find_models(chosen)
    name = tier or work.settings.tier
    settled = settled_tier(work.settings, name)
    if settled.models:
        return find_models(settled.models)
    known: Tier = "nightly" if name == "nightly" else "ci"
    return find_models((), known)


def _row(model: Model) -> tuple[str, JsonValue]:
    """A model in a listing, as a line and as an object."""
    expected = None if model.expect is None else model.expect.result
    return (
        f"{model.name:<52} {model.tier:<8} {expected or '':<9} {model.description}",
        {
            "model": model.name,
            "spec": model.spec,
            "variant": model.variant,
            "tier": model.tier,
            "expected": expected,
            "description": model.description,
        },
    )
