"""kconform replay: an implementation against the spec, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    ReportOption,
    SeedOption,
    StrictOption,
    SystemOption,
    SystemOptions,
    TlsCaOption,
    WireConfigOption,
    configured,
    use_kafka_lib,
)
from conformance.cli.session import CommandSession, session
from conformance.deviations.declared import deviating
from conformance.errors import UserError
from conformance.inputs import local_path
from conformance.modelcheck.check import CheckOptions
from conformance.replay.saved import SavedDivergence, load
from conformance.stages.context import Context, Workbench, one_model, with_constants, workbench
from conformance.stages.deviations import deviations as deviations_stage
from conformance.stages.deviations import judged_with
from conformance.stages.identity import FOREIGN
from conformance.stages.replay import not_driven_lines, replay_recorded, replay_saved
from conformance.stages.replay import replay as replay_stage
from conformance.stages.suite import cover, make_suite, measured
from conformance.suites.suite import load_suite
from conformance.traces.model import complete

if TYPE_CHECKING:
    from conformance.traces.store import TraceStore


def replay(
    what: Annotated[
        str | None,
        typer.Argument(
            help="A model, or a saved divergence (FILE.itf.json).", autocompletion=model_names
        ),
    ] = None,
    config: ConfigOption = None,
    kind: Annotated[
        str, typer.Option("--suite", help="cover, walks, situations, or a saved suite (.npz).")
    ] = "cover",
    walks: Annotated[int, typer.Option(min=1, help="Number of random walks.")] = 1000,
    length: Annotated[int, typer.Option(min=1, help="Steps of a random walk at most.")] = 20,
    stop_after: Annotated[
        int, typer.Option(min=1, help="End after this many diverging tests.")
    ] = 1,
    store: Annotated[Path | None, typer.Option(help="Replay a trace of this store.")] = None,
    trace: Annotated[int | None, typer.Option(help="The trace's number in the store.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model of a file that does not name one.", autocompletion=model_names
        ),
    ] = None,
    seed: SeedOption = None,
    system: SystemOption = None,
    strict: StrictOption = False,
    kafka_lib: KafkaLibOption = None,
    api_version: ApiVersionOption = None,
    tls_ca: TlsCaOption = None,
    wire_config: WireConfigOption = None,
    fail_over: FailOverOption = None,
    deviations: DeviationsOption = None,
    cold: ColdOption = False,
    report: ReportOption = None,
    compare: CompareOption = None,
    as_json: JsonOption = False,
) -> None:
    """Drive an implementation along a suite, a saved divergence or a recorded trace."""
    with session("replay", as_json=as_json, report=report, compare=compare) as work:
        context = Context(
            work.settings,
            work.emit,
            CheckOptions(cold=cold),
            work.settings.seed if seed is None else seed,
            strict,
        )
        use_kafka_lib(kafka_lib)
        system = SystemOptions(api_version, tls_ca, wire_config, fail_over, deviations).name(system)
        saved: SavedDivergence | None = None
        file: Path | None = None
        if store is not None and trace is not None:
            opened = _open(store)
            if system is None and opened.manifest.identity.system == FOREIGN:
                for line in _replay_foreign(context, store, trace, model):
                    work.say(f"  {line}")
                return
            saved = _recorded(opened, trace)
        elif store is not None or trace is not None:
            raise UserError("--store and --trace go together: which trace of which store.")
        elif what is not None and what.endswith(".json"):
            file = local_path(what)
            saved = load(file)
        if store is not None:
            work.keep_divergences()
        if saved is not None:
            name = model or saved.model
            if not name:
                raise UserError(f"{what} does not name its model. Give it with --model.")
            chosen = one_model(name) if model else with_constants(one_model(name), saved.constants)
            factory = system or saved.system or chosen.system
            known = judged_with(context, factory, file) if file and factory and not strict else None
            bench = workbench(
                context,
                chosen,
                factory or None,
                with_graph=False,
                deviations=saved.deviations if known is None else known,
            )
            replay_saved(context, bench, saved, file)
            return
        if what is None:
            raise UserError("Name a model or a saved divergence, or give --store and --trace.")
        work.keep_divergences()
        bench = workbench(context, one_model(configured(what, config)), system)
        _replay_suite(work, context, bench, kind, (walks, length), stop_after)
        if not strict and deviating(bench.factory):
            deviations_stage(context, system or bench.factory, {bench.model.spec})


def _open(path: Path) -> TraceStore:
    from conformance.traces.store import TraceStore  # pyarrow: few replays need it

    return TraceStore.open(path)


def _replay_foreign(
    context: Context, path: Path, number: int, model: str | None
) -> tuple[str, ...]:
    """Nothing is here to drive: the trace is judged as it was seen."""
    from conformance.stages.subject import open_subject  # Spark: few replays need it

    subject = open_subject(context, path, model)
    bench = Workbench(subject.prepared.model, subject.prepared, "", None)
    anywhere = subject.store.manifest.identity.begins_anywhere
    return replay_recorded(context, bench, subject.store.trace(number), anywhere=anywhere)


def _recorded(store: TraceStore, number: int) -> SavedDivergence:
    """A trace of a store as a path to replay; how it failed is known only from the audit."""
    trace = store.trace(number)
    identity = store.manifest.identity
    return SavedDivergence(
        identity.model,
        identity.system,
        "",
        tuple(identity.variables),
        complete(trace.initial),
        tuple(step.action for step in trace.steps),
    )


def _replay_suite(
    work: CommandSession,
    context: Context,
    bench: Workbench,
    kind: str,
    size: tuple[int, int],
    stop_after: int,
) -> None:
    name = bench.model.name
    if kind == "cover":
        suite = cover(context, name, bench.graph, limits=bench.limits)
    elif kind.endswith(".npz"):
        suite = measured(context, name, bench.graph, load_suite(local_path(kind), bench.graph))
    elif kind in ("walks", "situations"):
        walks, length = size
        made = make_suite(context, kind, bench.graph, bench.prepared, walks=walks, length=length)
        suite = measured(context, name, bench.graph, made)
    else:
        raise UserError(
            f"There is no suite {kind!r}: give cover, walks, situations or the path of a .npz file."
        )
    result = replay_stage(context, bench, suite, stop_after=stop_after)
    for note in (*not_driven_lines(result), *result.notes):
        work.say(f"  note: {note}")
