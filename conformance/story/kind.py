"""The ways in which an implementation leaves a specification, in all stages."""

from __future__ import annotations

from enum import StrEnum


class BehaviourKind(StrEnum):
    """The ways; the value is what people read."""

    WRONG_INITIAL = "wrong initial state"
    NOT_ALLOWED = "state not allowed"
    REFUSED = "action refused"
    RAISED = "exception"
    ENDLESS = "no end"
    INVARIANT = "invariant violated"
    OFFERS = "other steps on offer"
    NOT_ENABLED = "action not enabled"
    """Only for recorded traces: replay never asks an implementation for such an action."""
