"""kconform gate: the main job, from TLA+ to audited traces."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from conformance import __version__
from conformance.cli.options import ColdOption, JsonOption, MasterOption, SeedOption
from conformance.cli.session import Session, session
from conformance.config import settled_tier
from conformance.events import JsonValue
from conformance.gate import GatePlan, plan, run
from conformance.modelcheck.check import CheckOptions
from conformance.report import html, json_report, junit
from conformance.stages.context import Context
from conformance.tla import Tools, find_tools
from conformance.verdict import Verdict


def gate(
    models: Annotated[
        list[str] | None, typer.Argument(help="Models or folders of models; default: the tier's.")
    ] = None,
    tier: Annotated[str | None, typer.Option(help="ci or nightly.")] = None,
    traces: Annotated[int | None, typer.Option(min=1, help="Traces to record in all.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for reports and stores.")
    ] = None,
    seed: SeedOption = None,
    master: MasterOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="JVMs side by side.")] = None,
    canary: Annotated[
        bool | None, typer.Option(help="Put one known fault in and demand that it is found.")
    ] = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Model check, generate, replay, explore, record, audit; then one canary bug."""
    with session("gate", as_json=as_json) as work:
        tools = find_tools()
        settings = work.settings
        chosen = settled_tier(settings, tier or settings.tier)
        folder = output or Path(settings.output)
        context = Context(
            settings,
            work.emit,
            CheckOptions(jobs=jobs or settings.jobs, cold=cold, tools=tools),
            settings.seed if seed is None else seed,
        )
        planned = plan(context, chosen, models or (), folder)
        planned = _with_options(planned, traces, canary, master)
        work.header.update(_header(planned, context, tools))
        try:
            run(context, planned)
        except BaseException:
            work.header["incomplete"] = True  # a report of half a gate must not look whole
            work.extra.append(Verdict.INCONCLUSIVE)
            raise
        finally:
            _write_reports(work, folder)


def _with_options(
    planned: GatePlan, traces: int | None, canary: bool | None, master: str | None
) -> GatePlan:
    tier = planned.tier if traces is None else replace(planned.tier, traces=traces)
    wanted = planned.canary if canary is None else canary
    return replace(planned, tier=tier, canary=wanted, master=master)


def _header(planned: GatePlan, context: Context, tools: Tools) -> dict[str, JsonValue]:
    return {
        "tier": planned.tier.name,
        "seed": context.seed,
        "version": __version__,
        "python": platform.python_version(),
        "java": tools.java_version,
        "tla2tools": tools.jar_sha256[:12],
    }


def _write_reports(work: Session, folder: Path) -> None:
    """Also after a failure: whoever looks for the report of a failed gate must find it."""
    if work.finish is None:
        return
    report = work.finish()
    work.report = report
    texts = {
        "report.json": json_report.dumps(report),
        "report.html": html.dumps(report),
        "junit.xml": junit.dumps(report),
    }
    for name, text in texts.items():
        json_report.write_aside(folder / name, text)
    work.closing = "\n".join(f"{name:<12} {folder / name}" for name in texts)
