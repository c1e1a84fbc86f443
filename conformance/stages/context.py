"""What every stage is given: settings, where events go, how TLC is run."""

from __future__ import annotations

import reprlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conformance.compared import ComparedStates
from conformance.config import Settings
from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviating, Deviation, overriding
from conformance.errors import UserError
from conformance.events import Emit, JsonValue, StageFinished, StageStarted, Work, ignore
from conformance.modelcheck.check import CheckOptions, check_models, graph_and_spec
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.prepare import PreparedModel, bound, prepare
from conformance.registry import (
    BUILT_IN,
    SPECIFICATIONS,
    factory_path,
    load_factory,
    make_system,
)
from conformance.replay.boundary import Boundary
from conformance.replay.engine import PathResult, close
from conformance.replay.saved import SavedDivergence, load
from conformance.resources import spec_dir
from conformance.stages.fetch import fetch
from conformance.stages.held import compared_model
from conformance.stages.overridden import with_deviations
from conformance.stages.presence import BenchMaker, PresenceRecord, follow
from conformance.systems.capabilities import Capabilities, FactoryCapabilities
from conformance.systems.protocol import SystemUnderTest, raised_by_systems
from conformance.tla import State, Value, find_tools
from conformance.verdict import Verdict

if TYPE_CHECKING:
    from conformance.suites.restricted import SuiteLimits


@dataclass(frozen=True, slots=True)
class Context:
    """One run's surroundings."""

    settings: Settings = field(default_factory=Settings)
    emit: Emit = ignore
    check: CheckOptions = field(default_factory=CheckOptions)
    seed: int = 1
    strict: bool = False
    """Judge by the specification alone, whatever deviations of a system are known."""
    presences: PresenceRecord = field(default_factory=PresenceRecord, repr=False, compare=False)
    """What this run has seen of deviations that the table does not tell of a release."""


@dataclass(slots=True)
class Outcome:
    """What a stage fills in while it runs."""

    verdict: Verdict = Verdict.INCONCLUSIVE
    summary: str = ""
    figures: dict[str, JsonValue] = field(default_factory=dict)
    fault: bool = False
    consequence: bool = False

    def add_compared(self, compared: ComparedStates) -> None:
        """Say what was compared; a pass for which that is too little is none."""
        self.figures["compared"] = compared.figures()
        self.summary += f"; {compared.summary()}"
        if compared.gap and self.verdict is not Verdict.FAIL:
            self.verdict = Verdict.INCONCLUSIVE
            self.summary += f": {compared.gap}"


@contextmanager
def stage(
    context: Context, name: str, subject: str = "", total: int | None = None
) -> Iterator[Outcome]:
    """Emit the stage's beginning and, if it ends without an exception, its end."""
    outcome = Outcome()
    started = time.monotonic()
    context.emit(StageStarted(name, subject, total))
    yield outcome
    emit_finished(context, name, subject, outcome, time.monotonic() - started)


def emit_finished(
    context: Context,
    name: str,
    subject: str,
    outcome: Outcome,
    seconds: float,
    *,
    work: tuple[Work, ...] = (),
) -> None:
    """Tell of a stage's end; `work` says who was at it, if it was not this process until now."""
    context.emit(
        StageFinished(
            name,
            subject,
            outcome.verdict,
            seconds,
            outcome.summary,
            outcome.figures,
            outcome.fault,
            outcome.consequence,
            work=work,
        )
    )


@dataclass(frozen=True, slots=True)
class Workbench:
    """A model made ready to drive a system: its graph, its spec, the system's factory."""

    model: Model
    prepared: PreparedModel
    factory: str
    """`module:function`, importable in every worker."""
    known_graph: StateGraph | None
    """None on a bench that needs none: the spec's evaluator knows no bounds."""
    deviations: tuple[str, ...] = ()
    """Those known of the system, by which the model was overridden."""
    choices: tuple[str, ...] = ()
    """What the system does where the specification leaves it open: the model says so, too."""

    @property
    def graph(self) -> StateGraph:
        """The model's complete state graph."""
        if self.known_graph is None:
            raise LookupError(f"the bench of {self.model.name} was made without a state graph")
        return self.known_graph

    @property
    def constants(self) -> Mapping[str, Value]:
        """The model's constants, as values; operators are left out."""
        return constants_of(self.prepared)

    @property
    def _able(self) -> FactoryCapabilities:
        return FactoryCapabilities(load_factory(self.factory))

    @property
    def distant(self) -> bool:
        """Whether its system is driven in real time."""
        return self._able.distant is not None

    @property
    def beyond_reach(self) -> Mapping[str, str]:
        """The actions that cannot be brought about at all, and why."""
        return self._able.beyond_reach

    @property
    def taken_elsewhere(self) -> Mapping[str, str]:
        """The actions that another specification's suites take, and which one."""
        return self._able.taken_elsewhere

    @property
    def shared_name(self) -> str:
        """The system's name for another process, which drives it at the same time; or nothing."""
        return self._able.shared_name(self.constants)

    @property
    def limits(self) -> SuiteLimits | None:
        """What of the model's graph its system cannot be driven along; None if all of it can."""
        distant = self._able.distant
        if distant is None:
            return None
        # Here, because the solver behind suites takes half a second to load and few commands cover.
        from conformance.suites.restricted import SuiteLimits

        variables, able = self.graph.variables, self._able

        def by_name(state: State) -> Mapping[str, Value]:
            return dict(zip(variables, state, strict=True))

        return SuiteLimits(
            distant.beyond_reach(),
            lambda state: distant.passes(self.constants, by_name(state)),
            lambda state: able.goes_on(self.constants, by_name(state)),
        )

    def make_system(self) -> SystemUnderTest:
        """A fresh system for this model's constants."""
        return make_system(self.factory, self.constants)


def constants_of(prepared: PreparedModel) -> Mapping[str, Value]:
    """The values of the model's constants, by name; constant operators are left out."""
    declared = prepared.module.constants
    return {
        declaration.name: prepared.spec.value(declaration.name)
        for declaration in declared
        if not declaration.arity
    }


def one_model(name: str) -> Model:
    """The model of that name or manifest path. Raises UserError unless it is exactly one."""
    models = find_models([name])
    if len(models) != 1:
        names = ", ".join(model.name for model in models[:6])
        raise UserError(f"{name} names {len(models)} models ({names}, ...). Name one of them.")
    return models[0]


def with_constants(model: Model, constants: Mapping[str, str]) -> Model:
    """The model with these TLA+ expressions for some of its constants. It feeds no suite.

    UserError if it has no constant of such a name.
    """
    known = {**model.constants, **model.literals}
    unknown = sorted({*constants} - {*known})
    if unknown:
        raise UserError(
            f"The model {model.name} gives no value to a constant {unknown[0]}: its constants are "
            f"{', '.join(known)}. Name one of these."
        )
    merged = {**model.constants, **constants}
    if merged == model.constants:
        return model
    literals = {name: value for name, value in model.literals.items() if name not in constants}
    return replace(model, constants=merged, literals=literals, feeds_suite=False)


def announce_benches(context: Context, models: Iterable[Model], system: str | None) -> None:
    """These models' benches will be made: parse them together, overridden as they will be."""
    context.check.parser.announce([_judged(context, model, system)[0] for model in models])


def check_overridden(context: Context, models: Iterable[Model], system: str | None) -> None:
    """Check the models that the system's known deviations override, side by side.

    What the table does not break of their formulas has to hold; and benches find the graphs. That
    a deviation changes nothing in some of the models is expected.
    """
    if context.strict:
        return
    overridden = [
        replace(judged, name=f"{judged.name} as {system or judged.system}")
        for judged, known in (_judged(context, model, system) for model in models)
        if known
    ]
    if overridden:
        check_models(overridden, replace(context.check, names_idle=False), context.emit)


def _judged(
    context: Context, model: Model, system: str | None
) -> tuple[Model, tuple[Deviation, ...]]:
    """The model as this system is judged by it, and the deviations that override it."""
    name = system or model.system
    known = () if context.strict else expected_of(context, name, model.spec)
    return with_deviations(model, (*choices_of(context, name, model, known), *known)), known


def choices_of(
    context: Context, system: str, model: Model, deviations: Iterable[Deviation] = ()
) -> tuple[Deviation, ...]:
    """What the system chooses where the specification leaves it open, as the saved paths show it.

    What the model or the deviations override is no choice of this system's. What its path cannot
    tell is judged as the models have it.
    """
    path = factory_path(system, context.settings.systems)
    free = FactoryCapabilities(load_factory(path)).free
    if free is None:
        return ()
    replaced = {*model.overrides, *(name for item in deviations for name in item.overrides)}

    def follow_path(choice: Deviation, saved: SavedDivergence) -> PathResult:
        fetch(context.settings, context.emit, system)
        bench = _bench(context, _model_of(saved), system, (choice,), with_graph=False, free=False)
        return follow(bench, saved.initial, saved.actions)

    return tuple(
        choice
        for choice in overriding(free.choices(), model.spec)
        if replaced.isdisjoint(choice.overrides)
        and context.presences.makes(path, free, choice, follow_path)
    )


def expected_of(context: Context, system: str, specification: str) -> tuple[Deviation, ...]:
    """The deviations by which the system is judged: the table's word, or what paths show of it."""
    path = factory_path(system, context.settings.systems)
    known = deviating(path)
    if known is None:
        return ()
    table = overriding(known.deviations(), specification)
    unnamed = [item for item in table if item.stands_in(known.version_of(item.part)) is None]
    maker = bench_maker(context, system, known, unnamed)
    return context.presences.standing(path, known, specification, maker)


def bench_maker(
    context: Context, system: str, known: Deviating, followed: Iterable[Deviation]
) -> BenchMaker:
    """Makes the benches of the saved paths that will be followed, of the system's table."""
    context.check.parser.announce(
        _model_of(load(known.file(item.path))) for item in followed if item.path
    )

    def bench(saved: SavedDivergence, deviations: Sequence[Deviation]) -> Workbench:
        fetch(context.settings, context.emit, system)
        model = _model_of(saved)
        ids = {item.id for item in overriding(known.deviations(), model.spec)}
        chosen = [item for item in deviations if item.id in ids]
        return _bench(context, model, system, chosen, with_graph=False)

    def reason(saved: SavedDivergence) -> str:
        path = factory_path(system, context.settings.systems)
        return reason_against(path, _prepared(context, _model_of(saved)))

    return BenchMaker(bench, reason)


def _model_of(saved: SavedDivergence) -> Model:
    return with_constants(one_model(saved.model), saved.constants)


def _prepared(context: Context, model: Model) -> PreparedModel:
    return prepare(model, context.check.tools or find_tools(), context.check.parser)


def workbench(
    context: Context,
    model: Model,
    system: str | None = None,
    *,
    with_graph: bool = True,
    deviations: Collection[str] | None = None,
) -> Workbench:
    """Read the model's state graph (from the cache or TLC) and find its system.

    The model is overridden by the deviations that are known of the system: all, or of these ids.
    """
    name = system or model.system
    if not name:
        raise UserError(
            f"The model {model.name} names no system to drive. Give one with --system "
            "module:function, or set `system` in its manifest."
        )
    fetch(context.settings, context.emit, name)
    known: Sequence[Deviation] = ()
    if not context.strict and (deviations is None or deviations):
        known = expected_of(context, name, model.spec)
    chosen = [item for item in known if deviations is None or item.id in deviations]
    return _bench(context, model, name, chosen, with_graph=with_graph)


def _bench(
    context: Context,
    model: Model,
    name: str,
    deviations: Sequence[Deviation],
    *,
    with_graph: bool,
    free: bool = True,
) -> Workbench:
    """`free`: judged by what the system chooses where the specification leaves it open."""
    path = factory_path(name, context.settings.systems)
    ids = tuple(deviation.id for deviation in deviations)
    chosen = choices_of(context, name, model, deviations) if free else ()
    choices = tuple(choice.id for choice in chosen)
    judged = with_deviations(model, (*chosen, *deviations))
    # Before TLC is asked for a graph that nobody could drive along.
    fitting = bound(judged, context.check.tools or find_tools(), context.check.parser)
    if reason := reason_against(path, fitting):
        raise UserError(
            f"The system {name} cannot be driven by the model {model.name}: "
            f"{reason.removesuffix('.')}. Name another system or another model."
        )
    if with_graph:
        graph, prepared = graph_and_spec(judged, context.check, context.emit)
        bench = Workbench(judged, prepared, path, graph, ids, choices)
    else:
        prepared = _prepared(context, judged)
        bench = Workbench(judged, prepared, path, None, ids, choices)
    context.emit(compared_model(prepared, path))
    return bench


def reason_against(path: str, prepared: PreparedModel) -> str:
    """Why the system at this path cannot take the model; empty if it can.

    A factory that says which models it takes is asked; then a system is made, and what it
    declares is held against the specification.
    """
    specification, constants = prepared.model.spec, constants_of(prepared)
    selective = FactoryCapabilities(load_factory(path)).selective
    reason = (
        _not_of_ours(path, specification)
        if selective is None
        else selective.cannot_take(specification, constants)
    )
    if reason:
        return reason
    try:
        system = make_system(path, constants)
    except UserError as error:
        return str(error)
    try:
        Boundary(system, prepared.spec.variables)
        return _no_actions(system, prepared)
    except UserError as error:
        return str(error)
    finally:
        close(system)


def _no_actions(system: SystemUnderTest, prepared: PreparedModel) -> str:
    """Why what the system offers would not be compared; empty if it would, or if it offers nothing.

    A name in `offerable` that is no action of the specification is enabled nowhere.
    """
    try:
        offers = Capabilities(system).offers
        declared: object = frozenset() if offers is None else offers.offerable
    except raised_by_systems() as error:
        return f"its `offerable` raised {type(error).__name__}: {error}"
    if not isinstance(declared, frozenset | set):
        return f"its `offerable` is {reprlib.repr(declared)}: make it a frozenset of names"
    unknown = sorted(str(name) for name in declared if name not in prepared.spec.all_kinds)
    if not unknown:
        return ""
    return (
        f"its `offerable` names {', '.join(unknown)}, which is no action of "
        f"{prepared.model.spec} in this model, so such a step would be compared with nothing: "
        "name actions of the specification there"
    )


def _not_of_ours(path: str, specification: str) -> str:
    """Of a bundled adapter: whether the specification is a shipped one that others are for."""
    name = next((name for name, bundled in BUILT_IN.items() if bundled == path), "")
    own = SPECIFICATIONS.get(name, ())
    if not own or specification in own or not (spec_dir() / f"{specification}.tla").exists():
        return ""
    return f"it is an adapter of {' and '.join(own)}, the model is one of {specification}"
