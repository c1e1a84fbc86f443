"""Judgements as findings: one per cause, named by action, variable and place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from conformance.events import Finding
from conformance.judge.behaviour import behaviour_of, why_not
from conformance.judge.verdict import Judgement
from conformance.story.behaviour import lines
from conformance.story.exhibit import exhibit
from conformance.story.key import NOT_ALLOWED, NOT_ENABLED, formula_key, step_key
from conformance.story.picture import Picture
from conformance.tla import Spec, parse_action

__all__ = ["finding_of"]

STAGE = "judge"


def finding_of(
    judgement: Judgement,
    spec: Spec,
    *,
    picture: Picture | None,
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
    places = (
        [
            _without_arguments(difference.variable, nearest.action)
            for difference in nearest.differences
        ]
        if nearest
        else []
    )
    why = "" if places or nearest is None or not nearest.lines else _place_of(nearest.lines[0])
    title = _title(judgement, action, places)
    behaviour = behaviour_of(judgement, spec)
    return Finding(
        key=formula_key(formula) if formula else _step_key(action, places, why),
        title=title,
        stage=STAGE,
        message=_sentence(judgement),
        trace=f"{judgement.name} ({judgement.source})",
        step=judgement.explained,
        action=nearest.action if nearest else "",
        formula=formula or action,
        location=locate(formula or action),
        differences=nearest.differences if nearest else (),
        story=tuple(why_not(judgement)) if behaviour is None else lines(behaviour),
        reproduce=reproduce,
        exhibit=None if behaviour is None else exhibit(behaviour, picture, title),
    )


def _step_key(action: str, places: Sequence[str], why: str) -> str:
    """Of an event that no step explains: the places that cannot be as seen, or what forbids it."""
    if places:
        return step_key([action], NOT_ALLOWED, places)
    return step_key([action], NOT_ENABLED, [why] if why else [])


def _formula(judgement: Judgement) -> str:
    violated = [formula for formula in judgement.formulas if formula.violated_at is not None]
    if judgement.failure is not None or not violated:
        return ""
    return min(violated, key=lambda verdict: verdict.violated_at or 0).name


def _name(action: str) -> str:
    return action.partition("(")[0]


def _without_arguments(place: str, action: str) -> str:
    """A place without its arguments: the cause is the same whichever broker or key it is.

    A key in a dot's form looks like a field; one that the action names is no field.
    """
    args = parse_action(action).args if action else ()
    bare = re.sub(r"\[[^\]]*\]", "", place)
    for name in args:
        bare = re.sub(rf"\.{re.escape(str(name))}(?!\w)", "", bare)
    return bare


def _place_of(line: str) -> str:
    """`Module:line:column` at the beginning of an explanation's line."""
    match = re.match(r"\w+:\d+:\d+", line)
    return match[0] if match else line


def _title(judgement: Judgement, action: str, places: Sequence[str]) -> str:
    failure = judgement.failure
    if failure is None:
        return f"{action} is violated" if action else judgement.reason
    if not failure.action:
        return f"a snapshot shows what no state can be: {', '.join(places[:3])}"
    if places:
        return f"{action}: {', '.join(dict.fromkeys(places))} cannot be as seen"
    return f"{action} cannot happen here"


def _sentence(judgement: Judgement) -> str:
    text = judgement.reason[:1].upper() + judgement.reason[1:] + "."
    failure = judgement.failure
    if failure is None:
        return text
    text += f" Events explained before it: {judgement.explained}."
    text += f" States that these leave possible, and from which it was tried: {failure.candidates}."
    if failure.others:
        text += f" Nor can these come next: {'; '.join(failure.others)}."
    return text
