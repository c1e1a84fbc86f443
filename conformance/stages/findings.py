"""Judgements as findings: one per cause, named by action, variable and place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence

from conformance.events import Finding
from conformance.judge.verdict import Blocker, Judgement
from conformance.story.changes import changes
from conformance.tla import State
from conformance.verdict import Verdict

__all__ = ["finding_of"]

STAGE = "judge"
_STEPS = 40
"""The last so many steps of an explanation are told."""


def finding_of(
    judgement: Judgement,
    variables: Sequence[str],
    *,
    locate: Callable[[str], str],
    reproduce: str,
) -> Finding:
    """A trace that fails, as a finding; traces with one cause have one key."""
    failure = judgement.failure
    nearest = failure.blockers[0] if failure is not None and failure.blockers else None
    formula = _formula(judgement)
    action = (
        formula
        or _name(nearest.action if nearest else "")
        or _name(failure.action if failure else "")
    )
    places = [difference.variable for difference in nearest.differences] if nearest else []
    why = "" if places or nearest is None or not nearest.lines else _place_of(nearest.lines[0])
    cause = "|".join([STAGE, formula, action, *sorted(set(map(_variable, places))), why])
    return Finding(
        key=f"{STAGE}-{hashlib.sha256(cause.encode()).hexdigest()[:12]}",
        title=_title(judgement, action, places),
        stage=STAGE,
        message=_sentence(judgement),
        trace=f"{judgement.name} ({judgement.source})",
        step=judgement.explained,
        action=nearest.action if nearest else "",
        formula=formula or action,
        location=locate(formula or action),
        differences=nearest.differences if nearest else (),
        story=tuple(_story(judgement, variables)),
        reproduce=reproduce,
    )


def _formula(judgement: Judgement) -> str:
    violated = [one for one in judgement.formulas if one.violated_at is not None]
    if judgement.failure is not None or not violated:
        return ""
    return min(violated, key=lambda one: one.violated_at or 0).name


def _name(action: str) -> str:
    return action.partition("(")[0]


def _variable(place: str) -> str:
    """A place without its arguments: the cause is the same whichever broker it is."""
    return re.sub(r"\[[^\]]*\]", "", place)


def _place_of(line: str) -> str:
    """`Module:line:column` at the beginning of an explanation's line."""
    found = re.match(r"\w+:\d+:\d+", line)
    return found[0] if found else line


def _title(judgement: Judgement, action: str, places: Sequence[str]) -> str:
    failure = judgement.failure
    if failure is None:
        return f"{action} is violated" if action else judgement.reason
    if not failure.action:
        return f"a snapshot shows what no state can be: {', '.join(places[:3])}"
    if places:
        return f"{action}: {', '.join(dict.fromkeys(map(_variable, places)))} cannot be as seen"
    return f"{action} cannot happen here"


def _sentence(judgement: Judgement) -> str:
    text = judgement.reason[:1].upper() + judgement.reason[1:] + "."
    failure = judgement.failure
    if failure is None:
        return text
    text += f" The {judgement.explained} events before it are explained."
    text += f" It was tried from {failure.candidates} states that these leave possible."
    if failure.others:
        text += f" Nor can these come next: {'; '.join(failure.others)}."
    return text


def _story(judgement: Judgement, variables: Sequence[str]) -> Iterator[str]:
    """The end of the explained part, then why it does not go on."""
    yield from _path(judgement, variables)
    failure = judgement.failure
    for number, blocker in enumerate(failure.blockers if failure else (), 1):
        yield f"Why not, in the {_ordinal(number)} of the states that were possible:"
        yield from (f"  {line}" for line in _why(blocker))


def _why(blocker: Blocker) -> Iterator[str]:
    if blocker.differences and blocker.action:
        yield f"{blocker.action} leads to a state that shows something else:"
    for difference in blocker.differences:
        yield f"{difference.variable}: {difference.expected}, seen {difference.actual}"
    yield from blocker.lines if not blocker.differences or not blocker.action else ()


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def _path(judgement: Judgement, variables: Sequence[str]) -> Iterator[str]:
    explanation = judgement.explanation
    if explanation is None:
        return
    states: list[State] = [explanation.initial, *explanation.states]
    first = max(len(explanation.actions) - _STEPS, 0)
    if first:
        yield f"... {first} steps before"
    for number in range(first, len(explanation.actions)):
        unseen = "" if explanation.events[number] is not None else "  (not seen)"
        yield f"{number + 1:3}. {explanation.actions[number]}{unseen}"
        if judgement.verdict is Verdict.FAIL:
            for line in changes(tuple(variables), states[number], states[number + 1]):
                yield f"       {line}"
