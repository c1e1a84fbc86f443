"""Stage `diff`: which behaviours one model has and another has not, up to what both show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.errors import UnsupportedError, UserError
from conformance.events import Exhibit, Finding, JsonValue, Progress, Reason
from conformance.inputs import local_path
from conformance.modelcheck.branches import BranchCounts, key
from conformance.modelcheck.manifest import Model, near, reference
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place_of, with_texts
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.modelcheck.unchanged import bounds_only, overridden_operators, without_overrides
from conformance.printable import counted
from conformance.stages.context import Context, Outcome, stage, with_constants
from conformance.story import itf
from conformance.story.behaviour import Behaviour, Step, lines
from conformance.story.changes import changes
from conformance.story.exhibit import exhibit
from conformance.story.key import INIT
from conformance.story.why import why_disabled
from conformance.tla import Action, Location, Spec, State, Value, find_tools
from conformance.tla.search import (
    Distinction,
    ObservedProblem,
    PairResult,
    PairSide,
    SearchEnd,
    SearchLimits,
    compare,
    problem_of,
)
from conformance.verdict import Verdict

STAGE = "diff"


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models that are held against each other, and what they are called in a sentence."""

    old: Model
    new: Model
    old_name: str
    new_name: str


def pair_of_modules(old: Model, new: Model) -> ModelPair:
    """Two models as their names have them; two of one name by their files."""
    if old.name != new.name:
        return ModelPair(old, new, old.name, new.name)
    return ModelPair(old, new, near(old.origin), near(new.origin))


def pair_of_texts(old: str, new: str, model: Model) -> ModelPair:
    """Two modules with the constants and bounds of one model. UserError unless both are there."""
    paths = []
    for name in (old, new):
        path = local_path(name)
        if path.suffix != ".tla" or not path.is_file():
            raise UserError(f"With --model name two TLA+ modules: {name} is no such file.")
        paths.append(path.resolve())
    if paths[0] == paths[1]:
        raise UserError(f"{old} is given twice: name two modules.")
    texts = [replace(model, spec_path=path, feeds_suite=False) for path in paths]
    return ModelPair(texts[0], texts[1], near(paths[0]), near(paths[1]))


def pair_of_constants(model: Model, old: Mapping[str, str], new: Mapping[str, str]) -> ModelPair:
    """One model with two values of its constants."""
    return ModelPair(
        with_constants(model, old),
        with_constants(model, new),
        _with_values(model, old),
        _with_values(model, new),
    )


def _with_values(model: Model, values: Mapping[str, str]) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in values.items())
    return f"{model.name} with {given}" if given else model.name


def pair_of_overrides(context: Context, model: Model) -> ModelPair:
    """A model without and with its overrides. UserError if it has none that can be left out."""
    tools = context.check.tools or find_tools()
    names = overridden_operators(bound(model, tools, context.check.parser))
    if not names:
        raise UserError(
            f"{model.name} overrides no operator, so there is nothing to compare it with. Name a "
            "second model, or give a constant's other value with --new NAME=VALUE."
        )
    without = f"{model.name} without its override of {', '.join(names)}"
    return ModelPair(without_overrides(model, names), model, without, model.name)


@dataclass(frozen=True, slots=True)
class DiffLimits:
    """When to give up, and what to observe in place of all common variables."""

    observe: tuple[str, ...] = ()
    states: int = 2_000_000
    seconds: float | None = None
    stories: bool = False
    """Whether every action that distinguishes gets a story, not the shortest of a side alone."""


@dataclass(frozen=True, slots=True)
class DistinguishingSteps:
    """The distinguishing steps of one action that take the same disjuncts."""

    action: str
    branches: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class _Observation:
    """What is compared: names of variables or operators, and what each side hides."""

    names: tuple[str, ...]
    hidden: tuple[tuple[str, ...], tuple[str, ...]]

    def summary(self) -> str:
        return "in " + (", ".join(self.names) if any(self.hidden) else "all variables")


def diff(context: Context, pair: ModelPair, limits: DiffLimits) -> PairResult:
    """Compare the two models; a finding for each kind of behaviour that one has alone."""
    with stage(context, STAGE, f"{pair.old_name}, {pair.new_name}") as outcome:
        work = _Comparison(context, pair, limits)
        result = work.run()
        for side in PairSide:
            shown = result.of(side) if limits.stories else result.of(side)[:1]
            for distinction in shown:
                context.emit(work.finding(distinction))
        work.fill(outcome, result)
    return result


class _Comparison:
    """Both models made ready, and the words for what comes out."""

    def __init__(self, context: Context, pair: ModelPair, limits: DiffLimits) -> None:
        self._context = context
        self._pair = pair
        self._limits = limits
        tools = context.check.tools or find_tools()
        models = [bounds_only(model) for model in (pair.old, pair.new)]
        context.check.parser.announce(models)
        self._prepared = {
            side: bound(model, tools, context.check.parser)
            for side, model in zip(PairSide, models, strict=True)
        }
        self._names = {PairSide.OLD: pair.old_name, PairSide.NEW: pair.new_name}
        old, new = (self._prepared[side].spec for side in PairSide)
        self._observation = _observation(old, new, limits.observe)

    def run(self) -> PairResult:
        """Search until all is known or a limit."""
        return compare(
            self._observed(PairSide.OLD),
            self._observed(PairSide.NEW),
            SearchLimits(self._limits.states, self._limits.seconds, stop_at_violation=False),
            self._progress(),
        )

    def _observed(self, side: PairSide) -> ObservedProblem:
        prepared = self._prepared[side]
        _require_states_alone(prepared)
        names = self._observation.names
        return ObservedProblem(
            problem_of(prepared.spec), names, _observer(prepared.spec, names), _label(prepared.spec)
        )

    def _progress(self) -> Callable[[int, int], None]:
        last = time.monotonic()

        def tell(nodes: int, states: int) -> None:
            nonlocal last
            if time.monotonic() - last > 0.5:
                last = time.monotonic()
                message = f"{nodes:,} observations, {states:,} states"
                self._context.emit(Progress(STAGE, states, self._limits.states, message))

        return tell

    def finding(self, distinction: Distinction) -> Finding:
        """A behaviour that one side has alone, as a story that ends with its reason."""
        side = distinction.side
        prepared, group = self._prepared[side], _group(distinction)
        behaviour = self._behaviour(distinction)
        title = self.title(distinction)
        kind = "added" if side is PairSide.NEW else "taken away"
        artifact = self._kept(behaviour, distinction, title)
        location = place_of(prepared, group.action) or near(prepared.model.spec_path)
        return Finding(
            key=":".join([group.action or INIT, kind.replace(" ", "_"), *map(key, group.branches)]),
            title=title,
            stage=STAGE,
            message=f"A behaviour that is {kind}, observed {self._observation.summary()}.",
            step=len(distinction.path.steps),
            action=group.action,
            location=location,
            story=lines(behaviour),
            about=prepared.model.name,
            artifact=artifact,
            exhibit=self._exhibit(prepared, behaviour, title),
        )

    def title(self, distinction: Distinction) -> str:
        """What happened, in one line."""
        side, length = distinction.side, len(distinction.path)
        name, other = self._names[side], self._names[_other(side)]
        if not distinction.path.steps:
            return f"{name} begins in a state in which {other} cannot"
        last, _ = distinction.path.steps[-1]
        return f"{name} takes {last} after {counted(length - 1, 'state')}, {other} cannot follow"

    def _exhibit(self, prepared: PreparedModel, behaviour: Behaviour, title: str) -> Exhibit:
        shown = exhibit(
            behaviour,
            picture_of(prepared.model),
            title,
            lambda action: place_of(prepared, action.name),
        )
        return with_texts(shown, self._prepared_of_reasons(prepared).model)

    def _prepared_of_reasons(self, shown: PreparedModel) -> PreparedModel:
        """The reasons are of the other side's text."""
        old, new = (self._prepared[side] for side in PairSide)
        return new if shown is old else old

    def _kept(self, behaviour: Behaviour, distinction: Distinction, title: str) -> str:
        folder = self._context.check.keep
        if folder is None:
            return ""
        group, model = _group(distinction), self._prepared[distinction.side].model
        path = itf.file_in(
            folder, "diff", distinction.side, group.action, *map(str, group.branches)
        )
        itf.keep(path, behaviour, {"model": reference(model), "key": title})
        return str(path)

    def _behaviour(self, distinction: Distinction) -> Behaviour:
        path = distinction.path
        steps = (Step(None, path.initial), *(Step(action, state) for action, state in path.steps))
        return Behaviour(
            self._prepared[distinction.side].spec.variables,
            steps,
            ending=self._ending(distinction),
            reasons=self._reasons(distinction),
        )

    def _ending(self, distinction: Distinction) -> str:
        other = self._names[_other(distinction.side)]
        if not distinction.path.steps:
            return f"No initial state of {other} shows this."
        return f"{other} shows the same until this step. {self._instead(distinction)}"

    def _instead(self, distinction: Distinction) -> str:
        """What the other side does in the place of the last step."""
        action, _ = distinction.path.steps[-1]
        if action.name not in self._spec_of_other(distinction).all_kinds:
            return f"It has no action {action.name}."
        after = self._same_action(distinction)
        count = len(distinction.elsewhere)
        if after is None:
            where = "its state" if count == 1 else f"any of the {count:,} states in which it may be"
            return f"{action} is not enabled in {where}."
        report = "\n".join(f"  {change}" for change in self._difference(distinction, after))
        return f"{action} leads elsewhere there (from here -> to there):\n{report}"

    def _same_action(self, distinction: Distinction) -> State | None:
        """Where the other side's action of that name leads; None if it is nowhere enabled."""
        action, _ = distinction.path.steps[-1]
        spec = self._spec_of_other(distinction)
        states = (spec.successors_by(action, state) for state in distinction.elsewhere)
        return next((after for targets in states for after in targets), None)

    def _spec_of_other(self, distinction: Distinction) -> Spec:
        return self._prepared[_other(distinction.side)].spec

    def _difference(self, distinction: Distinction, after: State) -> Iterable[str]:
        side, names = distinction.side, self._observation.names
        seen = _observer(self._prepared[side].spec, names)(distinction.path.states[-1])
        shown = _observer(self._prepared[_other(side)].spec, names)(after)
        return map(str, changes(names, seen, shown))

    def _reasons(self, distinction: Distinction) -> tuple[Reason, ...]:
        """Why the other side does not enable the last step, in the first state it may be in."""
        if not (distinction.path.steps and distinction.elsewhere):
            return ()
        action, _ = distinction.path.steps[-1]
        spec = self._spec_of_other(distinction)
        if action not in spec.actions or self._same_action(distinction) is not None:
            return ()
        return why_disabled(spec, action, distinction.elsewhere[0])

    def fill(self, outcome: Outcome, result: PairResult) -> None:
        """The verdict, its line, and the figures."""
        exhausted = result.end is SearchEnd.EXHAUSTED
        differs = bool(result.distinctions)
        outcome.verdict = (
            Verdict.FAIL if differs else Verdict.PASS if result.equal else Verdict.INCONCLUSIVE
        )
        outcome.summary = "; ".join(self._sentences(result))
        outcome.figures = {
            "old": self._pair.old_name,
            "new": self._pair.new_name,
            "observed": list(self._observation.names),
            "hidden": {
                str(side): list(names)
                for side, names in zip(PairSide, self._observation.hidden, strict=True)
            },
            "equal": result.equal,
            "exhausted": exhausted,
            "states": {
                str(side): count for side, count in zip(PairSide, result.states, strict=True)
            },
            "observations": result.nodes,
            "fairness": self._fairness(),
            "added": [self._row(item) for item in result.of(PairSide.NEW)],
            "taken_away": [self._row(item) for item in result.of(PairSide.OLD)],
        }

    def _sentences(self, result: PairResult) -> Iterable[str]:
        exhausted = result.end is SearchEnd.EXHAUSTED
        if not result.nodes and not result.distinctions:
            yield "neither has a state, so nothing was compared" if exhausted else "no state yet"
        elif result.equal:
            yield f"equal {self._observation.summary()}"
        else:
            added, removed = (_kinds(result.of(side)) for side in (PairSide.NEW, PairSide.OLD))
            open_end = "" if exhausted else " so far"
            yield f"adds {added}{open_end}, takes away {removed}{open_end}"
            if result.distinctions:
                yield f"observed {self._observation.summary()}"
        old, new = result.states
        yield f"{old:,} and {new:,} states, {counted(result.nodes, 'observation')} in common"
        yield "searched to the end" if exhausted else "a limit was reached (--limit, --seconds)"
        if self._fairness():
            yield "fairness is not compared"

    def _fairness(self) -> bool:
        """Whether one of the two says something of whole behaviours."""
        try:
            return any(prepared.spec.is_fair for prepared in self._prepared.values())
        except UnsupportedError:
            return True

    def _row(self, distinction: Distinction) -> JsonValue:
        group = _group(distinction)
        return {
            "action": group.action or None,
            "disjuncts": [key(place) for place in group.branches],
            "steps": distinction.steps,
            "length": len(distinction.path),
            "story": list(lines(self._behaviour(distinction))),
        }


def table(result: PairResult) -> list[str]:
    """The actions that distinguish, a line for each action and what it takes of its disjuncts."""
    rows: list[str] = []
    for side, title in ((PairSide.NEW, "added"), (PairSide.OLD, "taken away")):
        for distinction in result.of(side):
            group = _group(distinction)
            places = ", ".join(map(str, group.branches))
            rows.append(
                f"  {title:<10}  {group.action or 'initial state':<28} "
                f"{counted(distinction.steps, 'step'):<12} "
                f"{counted(len(distinction.path), 'state'):<10}  {places}".rstrip()
            )
    return rows


def _kinds(distinctions: Sequence[Distinction]) -> str:
    """How many behaviours, and how long the shortest is."""
    if not distinctions:
        return "nothing"
    actions = dict.fromkeys(_group(distinction).action for distinction in distinctions)
    names = ", ".join(name or "an initial state" for name in actions)
    return f"behaviours by {names} (the shortest has {counted(len(distinctions[0].path), 'state')})"


def _group(distinction: Distinction) -> DistinguishingSteps:
    label = distinction.label
    return label if isinstance(label, DistinguishingSteps) else DistinguishingSteps("")


def _other(side: PairSide) -> PairSide:
    return PairSide.OLD if side is PairSide.NEW else PairSide.NEW


def _label(spec: Spec) -> Callable[[Action, State, State], DistinguishingSteps]:
    counts = BranchCounts(spec)

    def label(action: Action, state: State, after: State) -> DistinguishingSteps:
        bits = counts.taken(action, state, after)
        places = spec.branch_places(action.name) if bits else ()
        branches = tuple(place for number, place in enumerate(places) if bits >> number & 1)
        return DistinguishingSteps(action.name, branches)

    return label


def _observation(old: Spec, new: Spec, wanted: Sequence[str]) -> _Observation:
    """What is observed: the wanted names, or the variables that both have."""
    common = tuple(name for name in old.variables if name in new.variables)
    names = tuple(dict.fromkeys(wanted)) or common
    for spec in (old, new):
        for name in names:
            if name not in spec.variables and spec.module.operator(name) is None:
                raise UserError(
                    f"--observe {name}: {spec.module.name} has neither a variable nor an operator "
                    f"of this name. Variables of both are {', '.join(common) or 'none'}."
                )
    if not names:
        raise UserError(
            "The two specifications have no variable in common, so nothing can be observed. "
            "Define an operator of the same name in both, and give it with --observe."
        )
    hidden = tuple(
        tuple(name for name in spec.variables if name not in names) for spec in (old, new)
    )
    return _Observation(names, (hidden[0], hidden[1]))


def _observer(spec: Spec, names: Sequence[str]) -> Callable[[State], tuple[Value, ...]]:
    """The values of variables, and of operators without arguments, in a state."""
    if tuple(names) == spec.variables:
        return lambda state: state
    parts = [_part(spec, name) for name in names]
    return lambda state: tuple(part(state) for part in parts)


def _part(spec: Spec, name: str) -> Callable[[State], Value]:
    if name in spec.variables:
        index = spec.variables.index(name)
        return lambda state: state[index]
    return spec.state_function(name)


def _require_states_alone(prepared: PreparedModel) -> None:
    """UnsupportedError for a specification whose steps depend on more than the state."""
    if prepared.spec.depends_on_search:
        raise UnsupportedError(
            f"{prepared.model.spec} asks TLCGet, or prints, remembers or draws at random, so its "
            "steps depend on the search and not on the state alone. Bound it by a constraint on "
            "its variables, and compare again."
        )
