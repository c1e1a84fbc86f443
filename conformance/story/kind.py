"""How an implementation departs from a specification, whoever notices it."""

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
    """Of recorded traces only: nobody asks an implementation for such an action."""
