"""kconform gate: the main job, from TLA+ to audited traces."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from conformance import __version__
from conformance.cli.completion import model_names
from conformance.cli.options import (
    ApiVersionOption,
    ColdOption,
    CompareOption,
    ConfigOption,
    DeviationsOption,
    FailOverOption,
    JsonOption,
    KafkaLibOption,
    MasterOption,
    SeedOption,
    StrictOption,
    SystemOption,
    SystemOptions,
    TlsCaOption,
    WireConfigOption,
    all_configured,
    use_kafka_lib,
)
from conformance.cli.session import session
from conformance.config import settled_tier
from conformance.events import JsonValue
from conformance.gate import GatePlan, plan, run
from conformance.modelcheck.check import CheckOptions
from conformance.printable import counted
from conformance.stages.context import Context
from conformance.stages.selection import by_reason
from conformance.tla import Tools, find_tools


def gate(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models or folders of models; default: the tier's.", autocompletion=model_names
        ),
    ] = None,
    config: ConfigOption = None,
    tier: Annotated[str | None, typer.Option(help="ci or nightly.")] = None,
    traces: Annotated[int | None, typer.Option(min=1, help="Traces to record in all.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for reports and stores.")
    ] = None,
    system: SystemOption = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Only suites that take so long in all, those that add most first."
        ),
    ] = None,
    seed: SeedOption = None,
    master: MasterOption = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="JVMs side by side.")] = None,
    canary: Annotated[
        bool | None, typer.Option(help="Put one known fault in and demand that it is found.")
    ] = None,
    compare: CompareOption = None,
    strict: StrictOption = False,
    kafka_lib: KafkaLibOption = None,
    api_version: ApiVersionOption = None,
    tls_ca: TlsCaOption = None,
    wire_config: WireConfigOption = None,
    fail_over: FailOverOption = None,
    deviations: DeviationsOption = None,
    cold: ColdOption = False,
    as_json: JsonOption = False,
) -> None:
    """Model check, generate, replay, explore, record, audit; then one canary bug.

    With --system every suite of the tier that this system can take; the others are listed.
    """
    with session("gate", as_json=as_json) as work:
        tools = find_tools()
        settings = work.settings
        chosen = settled_tier(settings, tier or settings.tier)
        folder = output or Path(settings.output)
        work.report_to(folder, compare)
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(jobs=jobs or settings.jobs, cold=cold, tools=tools),
            settings.seed if seed is None else seed,
            strict,
        )
        use_kafka_lib(kafka_lib)
        named = SystemOptions(api_version, tls_ca, wire_config, fail_over, deviations).name(system)
        planned = plan(context, chosen, all_configured(models or (), config), folder, named or "")
        for reason, names in by_reason(planned.left_out).items():
            work.say(f"left out: {', '.join(names)}: {reason}")
        planned = _with_options(planned, traces, canary, master)
        planned = replace(planned, minutes=minutes)
        if not models:
            work.say(
                f"{counted(len(planned.models), 'model')}, {len(planned.feeding)} of them with "
                "a suite to drive; name some to run fewer, `kconform check --list` lists them"
            )
        work.header.update(_header(planned, context, tools))
        run(context, planned)


def _with_options(
    planned: GatePlan, traces: int | None, canary: bool | None, master: str | None
) -> GatePlan:
    tier = planned.tier if traces is None else replace(planned.tier, traces=traces)
    wanted = planned.canary if canary is None else canary
    return replace(planned, tier=tier, canary=wanted, master=master)


def _header(planned: GatePlan, context: Context, tools: Tools) -> dict[str, JsonValue]:
    chosen: dict[str, JsonValue] = {}
    if planned.system:
        left_out: dict[str, JsonValue] = {model.model: model.reason for model in planned.left_out}
        chosen = {"system": planned.system, "left_out": left_out}
    return {
        "tier": planned.tier.name,
        **chosen,
        "seed": context.seed,
        "version": __version__,
        "python": platform.python_version(),
        "java": tools.java_version,
        "tla2tools": tools.jar_sha256[:12],
    }
