"""Stage `changelog`: which rules of the specification two systems keep differently.

First the saved paths of what is known to depart are replayed on both. Then every suite that both
can take is driven on both, each judged with the departures that it has; a divergence that is left
is replayed on the other system. A path that tells the two apart is shortened on both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from conformance import __version__
from conformance.deviations.declared import deviating
from conformance.errors import UserError
from conformance.events import JsonValue, ignore
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.places import place_of
from conformance.printable import counted
from conformance.registry import factory_path
from conformance.replay.engine import Divergence
from conformance.replay.minimise import minimise
from conformance.replay.oracle import Oracle, allows, oracle_of
from conformance.replay.parallel import ReplayJob
from conformance.replay.saved import load
from conformance.replay.suite import ReplayResult
from conformance.replay.telling import finding, key
from conformance.report.changelog import (
    CHANGELOG_SCHEMA,
    Changelog,
    ComparedPath,
    ComparedSuite,
    RuleChange,
)
from conformance.stages.budget import within_budget
from conformance.stages.context import (
    Context,
    Workbench,
    bench_maker,
    stage,
    workbench,
)
from conformance.stages.fetch import fetch
from conformance.stages.presence import UNKNOWN, DeviationResult, Presence, follow
from conformance.stages.replay import locator
from conformance.stages.selection import ExcludedModel, by_reason, select
from conformance.stages.suite import cover
from conformance.suites.suite import Suite
from conformance.tla import Action, State
from conformance.verdict import Verdict

STAGE = "changelog"

_ATTEMPTS = 2_000
"""To shorten one path; most are paths that the specification does not have, and cost nothing."""
_COMPARABLE = (Presence.SEEN, Presence.GONE)


@dataclass(frozen=True, slots=True)
class SystemPair:
    """Two systems that take the same models; by name."""

    old: str
    new: str

    def __iter__(self) -> Iterator[str]:
        return iter((self.old, self.new))


def changelog(
    context: Context, pairs: Sequence[SystemPair], models: Sequence[Model], minutes: float
) -> Changelog:
    """Compare the pairs, which are parts of one old and one new system.

    What one pair has shown is not asked of the next one: a broker of a release is asked for what
    its classes, in a process of ours, cannot show.
    `minutes` is for the suites of all pairs, on both systems.
    """
    old, new = pairs[0]
    parts: list[_Part] = []
    for pair in pairs:
        paths = {path.id for part in parts for path in part.paths}
        left = [model for model in models if not any(model.name in part.models for part in parts)]
        parts.append(_SystemComparison(context, pair, left, paths, minutes / len(pairs) / 2).run())
    return Changelog(
        schema=CHANGELOG_SCHEMA,
        old=old,
        new=new,
        version=__version__,
        seed=context.seed,
        changes=tuple(change for part in parts for change in part.changes),
        suites=tuple(suite for part in parts for suite in part.suites),
        paths=tuple(path for part in parts for path in part.paths),
        not_compared=(
            *_left_out(parts),
            *(reason for part in parts for reason in part.not_compared),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What came out of one pair."""

    changes: tuple[RuleChange, ...]
    suites: tuple[ComparedSuite, ...]
    paths: tuple[ComparedPath, ...]
    models: frozenset[str]
    """The models that both take, whether there was time for them or not."""
    left_out: tuple[ExcludedModel, ...]
    not_compared: tuple[str, ...]


def _left_out(parts: Sequence[_Part]) -> Iterator[str]:
    """The models that no pair takes."""
    chosen_models = {name for part in parts for name in part.models}
    entries = {entry.model: entry for part in reversed(parts) for entry in part.left_out}
    for reason, names in by_reason(
        [e for e in entries.values() if e.model not in chosen_models]
    ).items():
        yield f"{counted(len(names), 'model')}: {reason}"


@dataclass(frozen=True, slots=True)
class _Side:
    """One system on one model or path."""

    system: str
    bench: Workbench

    @property
    def oracle(self) -> Oracle:
        return oracle_of(self.bench.prepared.spec)


class _SystemComparison:
    """One pair of systems."""

    def __init__(
        self,
        context: Context,
        pair: SystemPair,
        models: Sequence[Model],
        known: Collection[str],
        minutes: float,
    ) -> None:
        self._context = context
        self._quiet = replace(context, emit=ignore)
        self._pair = pair
        self._models = models
        self._shown = known
        """The deviations of which an earlier pair has shown whether they are seen."""
        self._minutes = minutes
        self._changes: dict[tuple[str, ...], RuleChange] = {}
        self._models_of_both: frozenset[str] = frozenset()
        self._left_out: list[ExcludedModel] = []
        self._not_compared: list[str] = []

    def run(self) -> _Part:
        """Paths first: suites are judged by what these have shown."""
        for system in self._pair:
            fetch(self._context.settings, self._context.emit, system)
        paths = tuple(self._paths())
        suites = tuple(self._suites())
        return _Part(
            tuple(self._changes.values()),
            suites,
            paths,
            self._models_of_both,
            tuple(self._left_out),
            tuple(self._not_compared),
        )

    # ---- saved paths -----------------------------------------------------------------------

    def _paths(self) -> Iterator[ComparedPath]:
        """Each deviation that a table of the two has, on both."""
        shown = [self._presences(system) for system in self._pair]
        for name in dict.fromkeys(id_ for results in shown for id_ in results):
            old, new = (results.get(name) for results in shown)
            if old is None or new is None:
                self._not_compared.append(f"{name}: the table of one of the two has it alone")
                continue
            if old.presence in UNKNOWN or new.presence in UNKNOWN:
                self._not_compared.append(f"{name}: {_word(old)}; {_word(new)}")
                continue
            yield ComparedPath(name, _word(old), _word(new))
            if {old.presence, new.presence} == {*_COMPARABLE}:
                self._known(old, new)
            elif Presence.OTHERWISE in (old.presence, new.presence):
                self._not_compared.append(
                    f"{name}: its path ends in another way, so that nothing is said of it"
                )

    def _presences(self, system: str) -> dict[str, DeviationResult]:
        """What is seen is asked of the system, whatever its table says."""
        path = factory_path(system, self._context.settings.systems)
        known = deviating(path)
        if known is None:
            return {}
        table = [
            deviation
            for deviation in known.deviations()
            if deviation.path and deviation.id not in self._shown
        ]
        maker = bench_maker(self._context, system, known, table)
        with stage(self._context, "deviations", system) as outcome:
            results = {
                item.id: self._context.presences.result(path, known, item, maker) for item in table
            }
            wrong = [name for name, result in results.items() if not result.as_expected]
            seen = [name for name, item in results.items() if item.presence is Presence.SEEN]
            outcome.verdict = Verdict.PASS
            outcome.summary = f"{len(seen)} of {len(results)} seen: {', '.join(seen) or 'none'}"
            outcome.figures = {
                "system": system,
                "deviations": {name: str(item.presence) for name, item in results.items()},
                "unexpected": list[JsonValue](wrong),
            }
        return results

    def _known(self, old: DeviationResult, new: DeviationResult) -> None:
        """A change that a table knows: one has the deviation, the other has not."""
        in_new = new.presence is Presence.SEEN
        departing, following = (new, old) if in_new else (old, new)
        systems = tuple(self._pair)[:: -1 if in_new else 1]
        deviation = departing.deviation
        known = deviating(factory_path(systems[0], self._context.settings.systems))
        assert known is not None
        assert departing.divergence is not None
        saved = load(known.file(deviation.path))
        sides = [
            _Side(
                system,
                bench_maker(self._context, system, known, ()).bench(saved, result.judged_with),
            )
            for system, result in zip(systems, (departing, following), strict=True)
        ]
        divergence = self._shortened(sides[0], sides[1], departing.divergence)
        spec = sides[0].bench.prepared
        self._add(
            RuleChange(
                rules=tuple(_rule(place_of(spec, name), name) for name in deviation.overrides),
                title=deviation.title,
                specification=deviation.specification or spec.model.spec,
                departs=systems[0],
                follows=systems[1],
                in_new=in_new,
                known=deviation.id,
                report=deviation.report,
                cost=str(deviation.severity),
                formulas=deviation.breaks,
                violated=departing.consequence,
                model=saved.model,
                path=tuple(map(str, divergence.actions)),
                differs=_differs(sides[0], divergence),
            )
        )

    # ---- suites ----------------------------------------------------------------------------

    def _suites(self) -> Iterator[ComparedSuite]:
        models = self._models_in_common()
        if not models:
            return
        longest = self._pair.new
        chosen = within_budget(self._context, models, longest, self._minutes)
        names = {model.name for model in chosen}
        late = [model.name for model in models if model.name not in names]
        if late:
            self._not_compared.append(f"no time for {', '.join(late)}")
        for model in chosen:
            yield self._suite(model)

    def _models_in_common(self) -> tuple[Model, ...]:
        """The models of both; of the others it is said which system cannot take them."""
        chosen_models: list[dict[str, Model]] = []
        for system in self._pair:
            try:
                selection = select(self._quiet, self._models, system)
                chosen, left_out = selection.models, selection.left_out
            except UserError as error:
                chosen, left_out = (
                    (),
                    tuple(ExcludedModel(model.name, str(error)) for model in self._models[:1]),
                )
            chosen_models.append({model.name: model for model in chosen})
            self._left_out += left_out
        old, new = chosen_models
        self._models_of_both = frozenset(old) & frozenset(new)
        return tuple(model for name, model in old.items() if name in new)

    def _suite(self, model: Model) -> ComparedSuite:
        with stage(self._context, STAGE, model.name) as outcome:
            sides = [_Side(system, workbench(self._quiet, model, system)) for system in self._pair]
            suites = [self._cover(side.bench) for side in sides]
            results = [self._drive(*pair) for pair in zip(sides, suites, strict=True)]
            undecided = self._unknown(sides, results)
            compared = _compared(model.name, sides, results, undecided)
            outcome.verdict = Verdict.INCONCLUSIVE if undecided else Verdict.PASS
            outcome.summary = (
                f"{compared.old} in {compared.old_steps:,} steps; {compared.new} in "
                f"{compared.new_steps:,} steps" + (f"; {undecided}" if undecided else "")
            )
        return compared

    def _cover(self, bench: Workbench) -> Suite:
        return cover(self._quiet, bench.model.name, bench.graph, limits=bench.limits)

    def _drive(self, side: _Side, suite: Suite) -> ReplayResult:
        bench = side.bench
        return ReplayJob(bench.graph, suite, bench.factory, bench.constants).run(ignore)

    def _unknown(self, sides: Sequence[_Side], results: Sequence[ReplayResult]) -> str:
        """Changes that no table knows; why nothing can be said, empty if something can."""
        reasons: list[str] = []
        for departing, other, result in (
            (sides[0], sides[1], results[0]),
            (sides[1], sides[0], results[1]),
        ):
            if not result.steps:
                reasons.append(f"nothing of it could be driven on {departing.system}")
            for divergence in result.divergences:
                reasons += self._replayed_on_other(departing, other, divergence)
        return "; ".join(dict.fromkeys(reasons))

    def _replayed_on_other(
        self, departing: _Side, other: _Side, divergence: Divergence
    ) -> Iterator[str]:
        after = follow(other.bench, divergence.initial, divergence.actions)
        if after.disabled or after.not_driven or after.late:
            yield f"{other.system} cannot be driven along the path on which the other departs"
            return
        if after.divergence is not None:
            oracles = (departing.oracle, other.oracle)
            before, now = (
                key(oracle, item)
                for oracle, item in zip(oracles, (divergence, after.divergence), strict=True)
            )
            if before != now:
                yield f"both depart in a way that no table knows, and not alike ({before}; {now})"
            return
        self._add(self._unknown_change(departing, other, divergence))

    def _unknown_change(self, departing: _Side, other: _Side, divergence: Divergence) -> RuleChange:
        shortest = self._shortened(departing, other, divergence)
        prepared = departing.bench.prepared
        action = shortest.action
        name = "Init" if action is None else action.name
        place = "" if action is None else locator(departing.bench)(action)
        return RuleChange(
            rules=(_rule(place, name),),
            title=finding(departing.oracle, shortest, stage=STAGE).title,
            specification=prepared.model.spec,
            departs=departing.system,
            follows=other.system,
            in_new=departing.system == self._pair.new,
            model=prepared.model.name,
            path=tuple(map(str, shortest.actions)),
            differs=_differs(departing, shortest),
        )

    # ---- both ------------------------------------------------------------------------------

    def _add(self, change: RuleChange) -> None:
        """Of several suites that show a change the one that needs the fewest steps."""
        name = (change.known or change.title, change.specification, change.departs)
        earlier = self._changes.get(name)
        if earlier is None or len(change.path) < len(earlier.path):
            self._changes[name] = change

    def _shortened(self, departing: _Side, other: _Side, divergence: Divergence) -> Divergence:
        """A path of which no step can be left out: the one departs, the other does not."""
        oracle, its = departing.oracle, other.oracle

        def attempt(initial: State, actions: Sequence[Action]) -> Divergence | None:
            if not (allows(oracle, initial, actions) and allows(its, initial, actions)):
                return None
            result = follow(departing.bench, initial, actions).divergence
            if result is None or len(result.actions) != len(actions):
                return None
            after = follow(other.bench, initial, actions)
            agrees = after.divergence is None and not (after.disabled or after.late)
            return result if agrees else None

        if attempt(divergence.initial, divergence.actions) is None:
            return divergence
        return minimise(divergence, attempt, budget=_ATTEMPTS)


def _word(result: DeviationResult) -> str:
    reason = f" ({result.reason})" if result.reason else ""
    return f"{result.presence}{reason}"


def _rule(place: str, name: str) -> str:
    """An operator, with the file that has it."""
    file = place.partition(":")[0].rpartition("/")[2]
    return f"{name} ({file})" if file else name


def _differs(side: _Side, divergence: Divergence) -> tuple[str, ...]:
    """What the departing system shows in the place of what the specification has."""
    evidence = finding(side.oracle, divergence, stage=STAGE)
    shown = tuple(
        f"{item.variable}: {side.system} has {item.actual}, the specification {item.expected}"
        for item in evidence.differences
    )
    return shown or (evidence.message,)


def _compared(
    name: str, sides: Sequence[_Side], results: Sequence[ReplayResult], undecided: str
) -> ComparedSuite:
    old, new = results
    words = [_outcome(*pair) for pair in zip(sides, results, strict=True)]
    return ComparedSuite(
        model=name,
        old=words[0],
        new=words[1],
        old_tests=old.passed,
        new_tests=new.passed,
        old_steps=old.steps,
        new_steps=new.steps,
        undecided=undecided,
    )


def _outcome(side: _Side, result: ReplayResult) -> str:
    """What a system makes of a suite."""
    ids = ", ".join(side.bench.deviations)
    if result.divergences:
        return "departs in a way that no table knows"
    return f"agrees with {ids}" if ids else "agrees"
