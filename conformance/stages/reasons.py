"""Why the spec does not allow what an implementation did, in the spec's own words."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.events import Reason
from conformance.replay.engine import Divergence
from conformance.story.kind import BehaviourKind
from conformance.story.why import why_disabled, why_false
from conformance.tla import Spec

_SHOWN = 3
"""Of so many steps that the spec does not enable it is told why."""


def reasons(spec: Spec, divergence: Divergence) -> tuple[Reason, ...]:
    """What ends a divergence's story; nothing where the spec has nothing to say.

    Of a broken invariant, which part is false; of a step that the spec does not enable, what
    stands in its way.
    """
    return tuple(_reasons(spec, divergence))


def _reasons(spec: Spec, divergence: Divergence) -> Iterator[Reason]:
    match divergence.kind, divergence.before, divergence.allowed:
        case BehaviourKind.INVARIANT, (state, *_), _:
            yield from why_false(spec, divergence.detail, state, state)
        case BehaviourKind.NOT_ENABLED, (state, *_), _ if divergence.action is not None:
            yield from why_disabled(spec, divergence.action, state)
        case BehaviourKind.OFFERS, _, (state, *_):
            for action in divergence.offered[:_SHOWN]:
                yield from why_disabled(spec, action, state)
        case _:
            pass
