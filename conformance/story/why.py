"""Why a formula is false, or an action not enabled, in the specification's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.errors import SpecError
from conformance.events import Reason
from conformance.tla import Action, Assumption, Explanation, Spec, State


def why_false(spec: Spec, formula: str, before: State, state: State) -> tuple[Reason, ...]:
    """The evaluator's account of an invariant in `state`, or of the step that leads there.

    Nothing where the evaluator has none, or finds the formula true.
    """
    try:
        explanation = spec.explain(formula, before, state)
    except SpecError:
        return ()
    if explanation.value == "TRUE":
        return ()
    return (Reason(0, f"Why {formula} is false:"), *_reasons(explanation, 1))


def why_assumed(spec: Spec, assumption: Assumption) -> tuple[Reason, ...]:
    """The evaluator's account of an ASSUME; nothing where it has none, or finds it true."""
    try:
        explanation = spec.explain_assumption(assumption)
    except SpecError:
        return ()
    if explanation.value == "TRUE":
        return ()
    named = assumption.name or "the ASSUME"
    return (Reason(0, f"Why {named} is false:"), *_reasons(explanation, 1))


def why_disabled(spec: Spec, action: Action, state: State) -> tuple[Reason, ...]:
    """The reasons why an action is not enabled; empty if no part of the specification gives one."""
    reasons = obstacles(spec, action, state, depth=1)
    return (Reason(0, f"Why the spec does not enable {action}:"), *reasons) if reasons else ()


def obstacles(spec: Spec, action: Action, state: State, depth: int = 0) -> tuple[Reason, ...]:
    """The same without the heading."""
    try:
        explanation = spec.obstacle(action, state)
    except SpecError:  # of an action that no operator is named for
        return ()
    return () if explanation is None else tuple(_reasons(explanation, depth))


def _reasons(explanation: Explanation, depth: int) -> Iterator[Reason]:
    where = explanation.location
    error = explanation.error
    yield Reason(
        depth,
        explanation.text,
        f"is undefined: {error}" if error else f"is {explanation.value}",
        str(where),
        (where.end_line, where.end_column),
        ", ".join(f"{name} = {value}" for name, value in explanation.bound),
    )
    for part in explanation.parts:
        yield from _reasons(part, depth + 1)


def reason_lines(reasons: Sequence[Reason]) -> tuple[str, ...]:
    """Reasons as indented lines, as a terminal shows them."""
    lines: list[str] = []
    for reason in reasons:
        indent = "  " * reason.depth
        if reason.bound:
            lines.append(f"{indent}for {reason.bound}")
        place = f"{reason.location}: " if reason.location else ""
        lines.append(f"{indent}{place}{reason.text} {reason.outcome}".rstrip())
    return tuple(lines)
