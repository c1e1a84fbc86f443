"""Tells a divergence: its behaviour, its key, and the finding that is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.events import Difference, Finding, Reason
from conformance.replay.engine import Divergence
from conformance.replay.interleave import action_text, parts
from conformance.replay.oracle import Oracle
from conformance.replay.witness import witness
from conformance.story.behaviour import Behaviour, Locate, Seen, Step, lines
from conformance.story.comparison import (
    differences,
    model_values_as_strings,
    nearest,
    variables_of,
)
from conformance.story.exhibit import exhibit, nowhere
from conformance.story.key import departure_key
from conformance.story.kind import BehaviourKind
from conformance.story.picture import Picture
from conformance.tla import Action, State, format_value

_DETAIL = 12
"""Lines of an exception's trace that are told."""


def finding(
    oracle: Oracle,
    divergence: Divergence,
    *,
    stage: str = "replay",
    locate: Locate = nowhere,
    reasons: Sequence[Reason] = (),
    picture: Picture | None = None,
    drawn: bool = False,
) -> Finding:
    """The divergence as a finding.

    How to see it again says who knows where it is kept. `reasons` end the story; `drawn` adds
    the exhibit for the page.
    """
    action = divergence.action
    shown = action_text(action) if action else "initial state"
    behaviour = behaviour_of(oracle, divergence, reasons)
    title = f"{shown}: {divergence.kind}"
    differing = _differences(oracle, divergence)
    return Finding(
        key=key(oracle, divergence),
        title=title,
        stage=stage,
        message=" ".join([_message(divergence), *_hints(differing)]),
        step=divergence.step,
        action=shown if action else "",
        formula=action.name if action else "Init",
        location=locate(action) if action else "",
        differences=differing,
        story=lines(behaviour),
        exhibit=exhibit(behaviour, picture, title, locate) if drawn else None,
    )


def key(oracle: Oracle, divergence: Divergence) -> str:
    """The cause in words, as every stage that meets it writes it: see `story.key`."""
    name = divergence.action.name if divergence.action else ""
    differing = variables_of(_differences(oracle, divergence))
    return departure_key(divergence.kind, name, divergence.detail, differing)


def _differences(oracle: Oracle, divergence: Divergence) -> tuple[Difference, ...]:
    return differences(oracle.variables, divergence.allowed, divergence.observed)


def behaviour_of(
    oracle: Oracle, divergence: Divergence, reasons: Sequence[Reason] = ()
) -> Behaviour:
    """The spec's states on one path to the divergence, with the observations."""
    states = _witness(oracle, divergence)
    steps = [Step(None, states[0])]
    steps += [Step(a, s) for a, s in zip(divergence.actions, states[1:], strict=True)]
    return Behaviour(
        tuple(oracle.variables),
        tuple(steps),
        dict(divergence.observed),
        _ending(divergence),
        tuple(reasons),
        departs=True,
        format_action=action_text,
    )


def _witness(oracle: Oracle, divergence: Divergence) -> list[Seen]:
    """States from the initial one to the nearest that is allowed, each a successor of the other.

    Where the spec cannot follow, they are unknown.
    """
    last = nearest(oracle.variables, divergence.allowed, divergence.observed)
    unknown: Seen = (None,) * len(oracle.variables)
    if not divergence.actions:
        return [divergence.initial if last is None else last]
    *before, action = divergence.actions
    levels = _levels(oracle, divergence, before)
    leads = [s for s in levels[-1] if last is not None and last in _after(oracle, s, action)]
    steps = before[: len(levels) - 1]
    states = witness(levels[:-1], steps, (leads or levels[-1])[0], oracle.successors)
    lost = [unknown] * (len(before) - len(steps))
    return [*states, *lost, unknown if last is None else last]


def _levels(
    oracle: Oracle, divergence: Divergence, actions: Sequence[Action]
) -> list[tuple[State, ...]]:
    """The states that are possible after each action, as long as there are any."""
    levels: list[tuple[State, ...]] = [(divergence.initial,)]
    for action in actions:
        following = dict.fromkeys(t for s in levels[-1] for t in oracle.successors(s, action))
        if not following:
            return levels
        levels.append(tuple(following))
    seen = tuple(state for state in levels[-1] if state in divergence.before)
    return [*levels[:-1], seen or levels[-1]]


def _after(oracle: Oracle, state: State, action: Action) -> Sequence[State]:
    # An oracle knows an interrupted step only while a system is there to take it.
    return () if parts(action) else oracle.successors(state, action)


def _ending(divergence: Divergence) -> str:
    told_of = [f"     {divergence.kind}"]
    if divergence.detail:
        told_of += [f"       {line}" for line in divergence.detail.rstrip().splitlines()[-_DETAIL:]]
    elif not divergence.allowed:
        told_of += [f"       {line}" for line in _observed(divergence)]
    return "\n".join(told_of)


def _observed(divergence: Divergence) -> Iterator[str]:
    """The observation, one variable a line, as TLC prints a state."""
    for name, value in divergence.observed.items():
        yield f"/\\ {name} = {format_value(value)}"


def _message(divergence: Divergence) -> str:
    if (
        divergence.action
        and parts(divergence.action)
        and divergence.kind is BehaviourKind.NOT_ALLOWED
    ):
        return (
            "One action interrupted by the other leads to a state that the spec allows after "
            "neither order of the two."
        )
    return _MESSAGES[divergence.kind]


def _hints(result: Sequence[Difference]) -> Iterator[str]:
    """A hint for adapters that return a string in place of a model value."""
    names = model_values_as_strings(result)
    if names:
        several = len(names) > 1
        yield (
            f"{', '.join(names)} {'are model values' if several else 'is a model value'} of the "
            f"spec, and the adapter gives {'strings' if several else 'a string'}, which no model "
            f'value equals: in Python it is ModelValue("{names[0]}"), in the adapter protocol '
            f'{{"#unserializable": "{names[0]}"}}.'
        )


_MESSAGES = {
    BehaviourKind.WRONG_INITIAL: "The implementation does not start in the spec's initial state.",
    BehaviourKind.NOT_ALLOWED: (
        "After this action the implementation is in a state that the spec does not allow."
    ),
    BehaviourKind.REFUSED: "The spec allows this action, the implementation cannot take it.",
    BehaviourKind.RAISED: "The implementation raised an exception.",
    BehaviourKind.ENDLESS: "The implementation did not finish this action, and was interrupted.",
    BehaviourKind.OFFERS: "The implementation offers other steps than the spec enables here.",
    BehaviourKind.NOT_ENABLED: "The trace has an action that the spec does not enable here.",
    BehaviourKind.INVARIANT: "The state that spec and implementation agree on breaks an invariant.",
}
