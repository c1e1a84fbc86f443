"""Stage `budget`: of many suites those that fit into some minutes, by what each adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from conformance.config import Tier
from conformance.errors import UserError
from conformance.events import JsonValue, ignore
from conformance.modelcheck.branches import key
from conformance.modelcheck.check import edge_branches
from conformance.modelcheck.manifest import Model
from conformance.printable import counted
from conformance.registry import load_factory
from conformance.stages.context import Context, Workbench, stage, workbench
from conformance.systems.capabilities import FactoryCapabilities
from conformance.tla import Value, format_value
from conformance.verdict import Verdict

STAGE = "budget"

_STEPS_A_SECOND, _AT_A_DISTANCE = 1_500.0, 200.0
"""Of an adapter that does not say its own pace, in this process or at a port."""
_STEPS_OF_A_TRANSITION = 3.5
"""A minimal suite takes three to three and a half steps for each transition of its graph."""
_SHARE_OF_SUITES, _SHARE_OF_TRACES = 0.75, 0.125
"""The rest is for interruptions and exploration."""
_MOST_BOUNDS = 10


@dataclass(frozen=True, slots=True)
class SuitePart:
    """Something that a suite can show.

    It is an action, a disjunct of one, or the combination of an action and a bound of the model.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A suite that could be driven."""

    name: str
    seconds: float
    parts: frozenset[SuitePart]


@dataclass(frozen=True, slots=True)
class ChosenSuite:
    """A suite that is driven, and what none of those before it has."""

    offer: Offer
    adds: Mapping[str, int]
    """How many parts of each kind."""


def chosen_of(offers: Sequence[Offer], seconds: float) -> tuple[ChosenSuite, ...]:
    """Those that fit into the seconds: always the one next that adds most for its time.

    Where no suite adds anything more, the quickest come first.
    """
    chosen: list[ChosenSuite] = []
    have: frozenset[SuitePart] = frozenset()
    ahead = list(offers)
    while fitting := [offer for offer in ahead if offer.seconds <= seconds]:

        def worth(offer: Offer, known: frozenset[SuitePart] = have) -> tuple[float, float, str]:
            return -len(offer.parts - known) / offer.seconds, offer.seconds, offer.name

        best = min(fitting, key=worth)
        ahead.remove(best)
        seconds -= best.seconds
        kinds = Counter(part.kind for part in best.parts - have)
        chosen.append(ChosenSuite(best, dict(sorted(kinds.items()))))
        have |= best.parts
    return tuple(chosen)


def within_budget(
    context: Context, models: Sequence[Model], system: str | None, minutes: float
) -> tuple[Model, ...]:
    """The models whose suites fit. UserError if not even the smallest one does.

    They are planned by the specification as it stands: TLC searches what a system's known
    deviations override only for those that are driven.
    """
    with stage(context, STAGE, f"{minutes:g} min") as outcome:
        by_name = {model.name: model for model in models}
        quiet = replace(context, emit=ignore)
        offers = [
            _offer(context, workbench(quiet, model, system, deviations=())) for model in models
        ]
        chosen = chosen_of(offers, 60 * minutes * _SHARE_OF_SUITES)
        if not chosen:
            least = min(offers, key=lambda offer: offer.seconds)
            needed = least.seconds / _SHARE_OF_SUITES / 60
            raise UserError(
                f"No suite fits into {minutes:g} minutes. The smallest is that of {least.name}: "
                f"give --minutes {needed:.1f} or more."
            )
        names = {suite.offer.name for suite in chosen}
        left_out = [offer for offer in offers if offer.name not in names]
        outcome.verdict = Verdict.PASS
        outcome.summary = "; ".join(_clauses(chosen, left_out))
        outcome.figures = _figures(minutes, chosen, left_out)
    return tuple(by_name[suite.offer.name] for suite in chosen)


def tier_within(tier: Tier, benches: Sequence[Workbench], minutes: float) -> Tier:
    """The tier with as many recorded traces as there is time for."""
    pace = min(_pace(bench) for bench in benches)
    traces = int(60 * minutes * _SHARE_OF_TRACES * pace / tier.trace_length)
    return replace(tier, traces=max(1, min(tier.traces, traces)))


def _clauses(chosen: Sequence[ChosenSuite], left_out: Sequence[Offer]) -> Iterator[str]:
    """Of the summary; what each suite adds stands in the figures, in the order of the choice."""
    about = sum(suite.offer.seconds for suite in chosen)
    have = frozenset[SuitePart]().union(*(suite.offer.parts for suite in chosen))
    yield f"{len(chosen)} of {len(chosen) + len(left_out)} suites, about {about:.0f} s"
    yield f"they take {kinds_of(have)}"
    if left_out:
        missing = frozenset[SuitePart]().union(*(offer.parts for offer in left_out)) - have
        names = ", ".join(offer.name for offer in left_out)
        yield f"no time for {names}, which would add {kinds_of(missing)}"


def kinds_of(parts: Iterable[SuitePart]) -> str:
    """`12 actions, 2 disjuncts`: how many there are of each kind; `nothing` without any."""
    kinds = sorted(Counter(part.kind for part in parts).items())
    return ", ".join(counted(number, kind) for kind, number in kinds) or "nothing"


def _figures(
    minutes: float, chosen: Sequence[ChosenSuite], left_out: Sequence[Offer]
) -> dict[str, JsonValue]:
    suites: list[JsonValue] = [
        {
            "model": suite.offer.name,
            "seconds": round(suite.offer.seconds, 1),
            "adds": dict(suite.adds),
        }
        for suite in chosen
    ]
    return {
        "minutes": minutes,
        "suites": suites,
        "no_time_for": {offer.name: round(offer.seconds, 1) for offer in left_out},
    }


def _offer(context: Context, bench: Workbench) -> Offer:
    steps = _STEPS_OF_A_TRANSITION * max(1, len(bench.graph.source))
    return Offer(bench.model.name, steps / _pace(bench), frozenset(_parts(context, bench)))


def _pace(bench: Workbench) -> float:
    """Steps in a second."""
    able = FactoryCapabilities(load_factory(bench.factory))
    if able.paced is not None:
        return able.paced.steps_a_second(bench.model.spec)
    return _STEPS_A_SECOND if able.distant is None else _AT_A_DISTANCE


def _parts(context: Context, bench: Workbench) -> Iterator[SuitePart]:
    graph, spec = bench.graph, bench.prepared.spec
    yield from (
        SuitePart("action", f"{bench.model.spec}.{action.name}") for action in graph.actions
    )
    every = np.ones(len(graph.source), np.bool_)
    branches = edge_branches(bench.prepared, graph, every, context.check)
    for code, kind in set(zip(graph.action.tolist(), branches.kind.tolist(), strict=True)):
        if kind >= 0:
            for number, place in enumerate(spec.branch_places(graph.actions[code].name)):
                if branches.taken[kind] >> number & 1:
                    yield SuitePart("disjunct", key(place))
    names = {action.name for action in graph.actions}
    yield from combinations(bench.model.spec, names, bench.constants)


def combinations(
    spec: str, actions: Iterable[str], constants: Mapping[str, Value]
) -> Iterator[SuitePart]:
    """Each action together with each bound: a commit by one of two members, a fetch in the third
    epoch. A model of three epochs has what one of two has, too.
    """
    bounds = [f"{name} {size}" for name, value in constants.items() for size in _sizes(value)]
    for action, bound in product(actions, bounds):
        yield SuitePart("combination", f"{spec}.{action} with {bound}")


def _sizes(value: Value) -> Iterable[str]:
    if isinstance(value, frozenset):
        return [f"of {size}" for size in range(1, min(len(value), _MOST_BOUNDS) + 1)]
    if isinstance(value, int) and not isinstance(value, bool):
        return [f">= {size}" for size in range(min(value, _MOST_BOUNDS) + 1)]
    return [f"= {format_value(value)}"]
