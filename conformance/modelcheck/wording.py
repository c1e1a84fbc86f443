"""What was found of a formula, as sentences have it: a deadlock and an ASSUME are no invariants."""

from __future__ import annotations

from conformance.modelcheck.tlc_output import ViolationKind

DEADLOCK = "deadlock"
"""What a manifest writes in `expect.violated` for a deadlock."""

ASSUMPTION = "ASSUME"
"""What stands for an assumption that has no name."""


def is_broken(violated: str, kind: str, place: str = "") -> str:
    """What happened: `Inv is violated`, or what one says of another kind."""
    if violated == DEADLOCK:
        return "a deadlock was reached"
    if kind == ViolationKind.ASSUMPTION:
        return f"{_assumption(violated, place)} is false"
    if kind == ViolationKind.POSTCONDITION:
        return f"the postcondition {violated} is false"
    return f"{violated} is violated"


def breaks(violated: str, kind: str = "", place: str = "") -> str:
    """What a model does: `violates Inv`."""
    if violated == DEADLOCK:
        return "reaches a deadlock"
    if kind == ViolationKind.ASSUMPTION:
        return f"contradicts {_assumption(violated, place)}"
    if kind == ViolationKind.POSTCONDITION:
        return f"contradicts the postcondition {violated}"
    return f"violates {violated}"


def to_break(violated: str) -> str:
    """What a model must do: `violate Inv`."""
    return "reach a deadlock" if violated == DEADLOCK else f"violate {violated}"


def _assumption(violated: str, place: str) -> str:
    if violated == ASSUMPTION:
        return f"the ASSUME at {place}" if place else "an ASSUME"
    return f"the assumption {violated}"
