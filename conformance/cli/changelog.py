"""kconform changelog: what behaves otherwise in one release, build or broker than in another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.completion import model_names, system_names
from conformance.cli.options import JsonOption, SeedOption
from conformance.cli.session import session
from conformance.config import settled_tier
from conformance.errors import UserError
from conformance.files import check_folder, written_aside
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.form import Tier as TierName
from conformance.modelcheck.manifest import find_models
from conformance.report import changelog as changelogs
from conformance.stages.changelog import SystemPair
from conformance.stages.changelog import changelog as changelog_stage
from conformance.stages.context import Context

_CLASSES, _BROKER = "kafka", "broker"


def changelog(
    old: Annotated[
        str,
        typer.Argument(
            help="kafka-VERSION, kafka-FOLDER of jars, or another system.",
            autocompletion=system_names,
        ),
    ],
    new: Annotated[
        str, typer.Argument(help="The same, to compare with it.", autocompletion=system_names)
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for changelog.md, .json and .html.")
    ] = Path("changelog"),
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model", help="Drive these models' suites only.", autocompletion=model_names
        ),
    ] = None,
    tier: Annotated[str | None, typer.Option(help="ci or nightly.")] = None,
    minutes: Annotated[
        float, typer.Option(min=0.1, help="For the suites of both: those first that add most.")
    ] = 15.0,
    broker: Annotated[
        bool,
        typer.Option(help="Start a broker of each kafka-VERSION too, for what its classes lack."),
    ] = True,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two systems: rules that changed, and for each the path that tells the two apart.

    Exit code 0 if nothing changed, or only what a table of deviations knows; 1 for a change that no
    table knows; 3 if something could not be decided.
    """
    with session("changelog", as_json=as_json) as work:
        check_folder(output)
        if old == new:
            raise UserError(f"OLD and NEW are both {old}. Name two systems to compare.")
        settings = work.settings
        chosen = settled_tier(settings, tier or settings.tier)
        known: TierName = "nightly" if chosen.name == "nightly" else "ci"
        models = find_models(model) if model else find_models((), known)
        feeding = [item.driving() for item in models if item.feeds_suite]
        if not feeding:
            raise UserError("None of these models feeds a suite: there is nothing to drive along.")
        context = Context(
            settings,
            work.emit,
            CheckOptions(jobs=settings.jobs),
            settings.seed if seed is None else seed,
        )
        result = changelog_stage(context, _pairs(old, new, broker=broker), feeding, minutes)
        output.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("changelog.md", changelogs.markdown(result)),
            ("changelog.json", changelogs.dumps(result)),
            ("changelog.html", changelogs.page(result)),
        ):
            with written_aside(output / name) as aside:
                aside.write_text(text, encoding="utf-8", errors="backslashreplace")
        work.extra.append(result.verdict)
        work.header["changelog"] = changelogs.as_object(result)
        work.closing = "\n".join([*_lines(result.changes), result.summary, f"written: {output}"])


def _pairs(old: str, new: str, *, broker: bool) -> list[SystemPair]:
    """The two; of two Kafkas a broker of each as well, which has what their classes do not show."""
    pairs = [SystemPair(old, new)]
    names = [name.partition("-") for name in (old, new)]
    if broker and all(kind == _CLASSES and "+" not in rest for kind, _, rest in names):
        pairs.append(SystemPair(*(f"{_BROKER}{dash}{rest}" for _, dash, rest in names)))
    return pairs


def _lines(changes: Sequence[changelogs.RuleChange]) -> list[str]:
    return [
        f"  {'known' if change.known else 'NEW':<6} {change.title}: {change.departs} departs"
        f"{f' ({change.report})' if change.report else ''}"
        for change in changes
    ]
