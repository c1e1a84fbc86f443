"""Why the formula is false to which a counterexample leads."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.events import Reason
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.story.why import why_false
from conformance.tla import Spec, State
from conformance.tla.search import FormulaKind

_EXPLAINED = (ViolationKind.INVARIANT, ViolationKind.ACTION_PROPERTY, FormulaKind.INITIAL_PROPERTY)


def why(spec: Spec, formula: str, kind: str, states: Sequence[State]) -> tuple[Reason, ...]:
    """The evaluator's account of the last state, or step, of a counterexample.

    Empty for what is no formula of one state or step, and where the evaluator cannot follow TLC:
    the counterexample must do then.
    """
    if kind not in _EXPLAINED or not states:
        return ()
    return why_false(spec, formula, states[-2:][0], states[-1])
