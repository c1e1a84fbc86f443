"""The gate: model check, suites, replay, interleaving, exploration, record, audit, a canary."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.audit.result import AuditResult
from conformance.bugs.canary import run_canary
from conformance.config import Tier
from conformance.deviations.declared import deviating
from conformance.errors import UserError
from conformance.modelcheck.form import Tier as TierName
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.result import CheckResult
from conformance.registry import BUILT_IN, factory_path
from conformance.replay.parallel import Crew
from conformance.replay.profile import Profile
from conformance.stages.audit import audit
from conformance.stages.budget import tier_within, within_budget
from conformance.stages.check import check
from conformance.stages.context import (
    Context,
    Workbench,
    announce_benches,
    check_overridden,
    stage,
    workbench,
)
from conformance.stages.coverage import coverage
from conformance.stages.deviations import deviations
from conformance.stages.drive import RunningDrives, driving, replaying
from conformance.stages.explore import Search, search_of
from conformance.stages.fetch import fetched_meanwhile
from conformance.stages.mutation import mutation
from conformance.stages.record import PendingStore, plan_of, record
from conformance.stages.referee import referee
from conformance.stages.replay import replay
from conformance.stages.selection import ExcludedModel, reasons_told, select
from conformance.stages.subject import AuditedStore
from conformance.stages.suite import cover
from conformance.suites.walks import walks_that_take_all
from conformance.traces.store import TraceStore
from conformance.workers import Here, Workers, is_small, workers_for

REFEREED = 100
"""Traces of each store on which TLC has to agree with the audit; nightly, for it is slow."""


@dataclass(frozen=True, slots=True)
class GatePlan:
    """What a gate runs. `output` gets the stores; reports are the caller's."""

    tier: Tier
    models: tuple[Model, ...]
    output: Path
    system: str = ""
    """Drives this one in the place of those that the models name."""
    left_out: tuple[ExcludedModel, ...] = ()
    """What `system` cannot take."""
    canary: bool = True
    master: str | None = None
    named: bool = False
    """Whether the models were named, so that they need not have all of their protocol's actions."""
    minutes: float | None = None
    """So long the suites may take; None: as long as they take."""

    @property
    def chosen(self) -> bool:
        """Whether the models are a choice: by name, by what a system can take or by time."""
        return self.named or bool(self.system) or self.minutes is not None

    @property
    def feeding(self) -> tuple[Model, ...]:
        """The models whose state graphs drive a system."""
        return tuple(m for m in self.models if m.feeds_suite and (self.system or m.system))


def plan(
    context: Context, tier: Tier, names: Sequence[str], output: Path, system: str = ""
) -> GatePlan:
    """Choose the models: those named, those of the settings, or all of the tier.

    With a `system` only those of them whose suites it can take; the canary is then left to the
    gates of the systems that it is a fault of.
    """
    named = tuple(names) or tier.models
    if named:
        models = find_models(named)
    else:
        known: TierName = "nightly" if tier.name == "nightly" else "ci"
        models = find_models((), known)
        if known == "nightly":
            models = [*find_models((), "ci"), *models]
    if not models:
        raise UserError("The gate has no model to check. Name one, or add models to the tier.")
    models = [model.driving() for model in models]
    canary = context.settings.canary
    if not system:
        for name in dict.fromkeys(model.system for model in models if model.system):
            factory_path(name, context.settings.systems)
        return GatePlan(tier, tuple(models), output, canary=canary, named=bool(named))
    chosen = select(context, models, system)
    own = system in BUILT_IN and canary
    return GatePlan(tier, chosen.models, output, system, chosen.left_out, canary=own)


def run(context: Context, gate: GatePlan) -> None:
    """Run every stage; a stage that fails does not keep the later ones from being run.

    Its verdicts are the events'. UserError, and only that, ends it early.
    """
    jobs = context.check.jobs
    # They load what they need while the graphs are read: little else goes on then.
    with Crew(jobs, _LOADED) if jobs > 1 and gate.feeding else nullcontext() as crew:
        _run(context, gate, crew)


_LOADED = ("conformance.replay.record", "conformance.stages.explore", "hypothesis.stateful")
"""What jobs of the gate need, beside their adapters."""


def _run(context: Context, gate: GatePlan, crew: Crew | None) -> None:
    system = gate.system or None
    with fetched_meanwhile(context.settings, context.emit, system) if system else nullcontext():
        results = check(_keeping(context, gate.output), gate.models)
        models: Sequence[Model] = _that_hold(gate, results)
        if gate.minutes is not None and models:
            models = within_budget(context, models, system, gate.minutes)
        announce_benches(context, models, system)
        check_overridden(context, models, system)
    # What a cold run would not take from the cache is of this run now.
    context = replace(context, check=replace(context.check, cold=False))
    benches = [workbench(context, model, system) for model in models]
    if not benches:
        with stage(context, "replay") as outcome:
            outcome.summary = _undriven(gate)
        return
    if gate.minutes is not None:
        gate = replace(gate, tier=tier_within(gate.tier, benches, gate.minutes))
    distant = [bench for bench in benches if bench.distant]
    near = [bench for bench in benches if not bench.distant]
    if distant:
        _at_a_distance(context, distant, crew)
        _known_deviations(context, system, distant)
    if near:
        _nearby(context, gate, near, crew)


def _nearby(
    context: Context, gate: GatePlan, benches: Sequence[Workbench], crew: Crew | None
) -> None:
    """All stages, of systems that take whatever step they are told to."""
    system = gate.system or None
    suites = [cover(context, bench.model.name, bench.graph) for bench in benches]
    searches = [
        (bench, _search(context, gate.tier, bench)) for bench in _largest_of_each_variant(benches)
    ]
    samples = gate.tier.interruptions
    # These need nothing of the suites, and each leaves a core idle at times.
    with (
        _stores(context, gate, benches) as stores,
        driving(
            context,
            benches,
            suites,
            samples=samples,
            searches=searches,
            stores=stores,
            crew=crew,
        ) as drive,
    ):
        audited = (
            _audited_here(context, gate, drive)
            if stores
            else _audited_on_spark(context, gate, benches, drive.report_ended)
        )
        covered = _covered_by_traces(audited)
        _known_deviations(context, system, benches)
        drive.report_ended()
        if gate.canary:
            run_canary(context, benches)
        driven = drive.finish()
    replayed = [result.actions for result in driven]
    stopped = [bool(result.not_run) for result in driven]
    coverage(context, benches, replayed, covered, chosen=gate.chosen, stopped=stopped)
    if gate.tier.name == "nightly" and not system:
        mutation(context, gate.output)


def _keeping(context: Context, output: Path) -> Context:
    """The same context, which keeps every counterexample, the expected ones too."""
    return replace(context, check=replace(context.check, keep=output / "counterexamples"))


def _search(context: Context, tier: Tier, bench: Workbench) -> Search:
    profile = Profile.NIGHTLY if tier.name == "nightly" else Profile.CI
    return search_of(context, bench, profile=profile, examples=tier.examples)


def _known_deviations(context: Context, system: str | None, benches: Sequence[Workbench]) -> None:
    """Are the chosen system's deviations still where its table says?"""
    if system and not context.strict and deviating(benches[0].factory):
        deviations(context, system, {bench.model.spec for bench in benches})


def _at_a_distance(context: Context, benches: Sequence[Workbench], crew: Crew | None) -> None:
    """Replay what of the suites such a system can be driven along, in as many processes as there
    are jobs; then, one after the other, those whose steps all of its clients feel.

    Whatever else the gate does takes steps that nobody foresees, or asks for states that a port
    does not show.
    """
    benches = sorted(benches, key=lambda bench: not bench.shared_name)
    suites = [
        cover(context, bench.model.name, bench.graph, limits=bench.limits) for bench in benches
    ]
    shared = sum(bool(bench.shared_name) for bench in benches)
    with replaying(context, benches[:shared], suites[:shared], crew=crew) as replays:
        driven = replays.finish()
    for bench, suite in zip(benches[shared:], suites[shared:], strict=True):
        driven.append(replay(context, bench, suite))
    replayed = [result.actions for result in driven]
    stopped = [bool(result.not_run) for result in driven]
    coverage(context, benches, replayed, {}, chosen=True, distant=True, stopped=stopped)


def _that_hold(gate: GatePlan, results: Sequence[CheckResult]) -> list[Model]:
    """The models to drive a system along: only what TLC has searched to its end has a graph."""
    holding = [result.model for result in results if result.outcome.result == "holds"]
    return [model for model in gate.feeding if model in holding]


def _undriven(gate: GatePlan) -> str:
    """Why no system was driven."""
    if gate.feeding:
        return "no model that feeds a suite holds: no implementation was tested"
    why = reasons_told([ExcludedModel(model.name, _idle(model)) for model in gate.models])
    return f"no implementation was tested: {why}"


def _idle(model: Model) -> str:
    return model.feeds_no_suite or (
        "it names no system: give one with --system, or set `system` in its manifest"
    )


def _largest_of_each_variant(benches: Sequence[Workbench]) -> list[Workbench]:
    """The largest model of each system and variant: exploration is not bounded by its graph."""
    workbenches: dict[tuple[str, str], Workbench] = {}
    for bench in benches:
        key = (bench.factory, bench.model.variant)
        known = workbenches.get(key)
        if known is None or len(bench.graph.states) > len(known.graph.states):
            workbenches[key] = bench
    return list(workbenches.values())


@contextmanager
def _stores(
    context: Context, gate: GatePlan, benches: Sequence[Workbench]
) -> Iterator[Sequence[PendingStore]]:
    """The stores that the driving processes are to record: none if Spark is to do it."""
    if not is_small(gate.tier.traces, gate.master):
        yield ()
        return
    length = gate.tier.trace_length
    with ExitStack() as stack:
        yield [
            PendingStore(
                context,
                bench,
                _store(gate, bench),
                plan_of(context, bench, traces=traces, length=length),
                stack,
                overwrite=True,
            )
            for bench, traces in _shares(gate, _largest_of_each_variant(benches))
        ]


_MOST_NEEDED = 1_500
"""Traces of a model, however rare its rarest action is."""


def _shares(gate: GatePlan, chosen: Sequence[Workbench]) -> Iterator[tuple[Workbench, int]]:
    """The tier's traces are shared out among the models; one with a rare action gets more."""
    most = min(gate.tier.traces, _MOST_NEEDED)
    for bench in chosen:
        needed = walks_that_take_all(bench.graph, gate.tier.trace_length)
        yield bench, max(min(needed, most), gate.tier.traces // len(chosen))


def _store(gate: GatePlan, bench: Workbench) -> Path:
    return gate.output / "stores" / bench.model.name.replace("/", "-")


def _audited_here(
    context: Context, gate: GatePlan, drive: RunningDrives
) -> Iterator[tuple[Workbench, AuditResult]]:
    """Audit each store in this process as soon as it is recorded."""
    for store in drive.recorded():
        yield store.bench, _audit(context, gate, store.bench, Here())


def _audited_on_spark(
    context: Context,
    gate: GatePlan,
    benches: Sequence[Workbench],
    between: Callable[[], None],
) -> Iterator[tuple[Workbench, AuditResult]]:
    """Record and audit each store, in one Spark session; `between` is called after each."""
    length = gate.tier.trace_length
    steps = gate.tier.traces * length
    with workers_for(gate.tier.traces, steps, master=gate.master, processes=1) as workers:
        for bench, share in _shares(gate, _largest_of_each_variant(benches)):
            store = _store(gate, bench)
            record(context, bench, workers, store, traces=share, length=length, overwrite=True)
            yield bench, _audit(context, gate, bench, workers)
            between()


def _audit(context: Context, gate: GatePlan, bench: Workbench, workers: Workers) -> AuditResult:
    store = _store(gate, bench)
    subject = AuditedStore(TraceStore.open(store), bench.prepared, bench.graph)
    listing = _fresh(store.with_suffix(".failing"))
    # Where models were chosen, their suites take every action; few random walks of one need not.
    audited = audit(context, subject, workers, listing=listing, every_action=not gate.chosen)
    if gate.tier.name == "nightly":
        referee(context, subject, listing, traces=REFEREED)
    return audited


def _covered_by_traces(
    audited: Iterable[tuple[Workbench, AuditResult]],
) -> dict[str, dict[str, tuple[int, int]]]:
    """By system what its traces covered, and all that there is, of states and transitions."""
    results: dict[str, list[AuditResult]] = {}
    for bench, result in audited:
        results.setdefault(bench.factory, []).append(result)
    return {system: _covered(of_system) for system, of_system in results.items()}


def _covered(results: Iterable[AuditResult]) -> dict[str, tuple[int, int]]:
    coverages = [result.coverage for result in results]
    return {
        "states": _sum(
            (trace_coverage.covered_states, trace_coverage.model_states)
            for trace_coverage in coverages
        ),
        "transitions": _sum(
            (trace_coverage.covered_transitions, trace_coverage.model_transitions)
            for trace_coverage in coverages
        ),
    }


def _sum(parts: Iterable[tuple[int | None, int | None]]) -> tuple[int, int]:
    pairs = [(part or 0, whole or 0) for part, whole in parts]
    return sum(part for part, _ in pairs), sum(whole for _, whole in pairs)


def _fresh(path: Path) -> Path:
    """A path at which nothing of an earlier run is left."""
    if path.exists():
        shutil.rmtree(path)
    return path
