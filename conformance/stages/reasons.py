"""Why the spec does not allow what an implementation did, in the spec's own words."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.errors import SpecError
from conformance.events import Reason
from conformance.replay.engine import Divergence, Kind
from conformance.story.behaviour import account
from conformance.tla import Action, Explanation, Spec, State

_SHOWN = 3
"""Of so many steps that the spec does not enable it is told why."""


def reasons(spec: Spec, divergence: Divergence) -> tuple[Reason, ...]:
    """What ends a divergence's story; nothing where the spec has nothing to say.

    Of a broken invariant, which part is false; of a step that the spec does not enable, what
    stands in its way.
    """
    return tuple(_lines(spec, divergence))


def _lines(spec: Spec, divergence: Divergence) -> Iterator[Reason]:
    match divergence.kind, divergence.before, divergence.allowed:
        case Kind.INVARIANT, (state, *_), _:
            told = _explained(spec, divergence.detail, state)
            yield from _told(f"Why {divergence.detail} is false:", told)
        case Kind.NOT_ENABLED, (state, *_), _ if divergence.action is not None:
            yield from _disabled(spec, divergence.action, state)
        case Kind.OFFERS, _, (state, *_):
            for action in divergence.offered[:_SHOWN]:
                yield from _disabled(spec, action, state)
        case _:
            pass


def _disabled(spec: Spec, action: Action, state: State) -> Iterator[Reason]:
    try:
        obstacle = spec.obstacle(action, state)
    except SpecError:  # of an action that no operator is named for
        return
    yield from _told(f"Why the spec does not enable {action}:", obstacle)


def _explained(spec: Spec, formula: str, state: State) -> Explanation | None:
    try:
        return spec.explain(formula, state, state)
    except SpecError:
        return None


def _told(heading: str, explanation: Explanation | None) -> Iterator[Reason]:
    if explanation is not None:
        yield from account(heading, explanation)
