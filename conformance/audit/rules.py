"""The spec's formulas as the audit asks them, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from conformance.tla import Action, Spec, fingerprint

__all__ = ["INIT", "NEXT", "AuditRule", "Rulebook", "compile_rules"]

NEXT = "Next"
INIT = "Init"


@dataclass(frozen=True, slots=True)
class AuditRule:
    """A formula, and where the spec states it."""

    name: str
    location: str = ""


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All that an audit asks of states and transitions.

    `initial` are the fingerprints of the states that Init allows.
    """

    variables: tuple[str, ...]
    initial: frozenset[int]
    invariants: Sequence[AuditRule] = ()
    properties: Sequence[AuditRule] = ()
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Where the spec defines Init and each action, by name."""
    anywhere: bool = False
    """Whether a trace may begin in any state: nobody saw how the system started."""

    def location(self, formula: str) -> str:
        """Where the spec states an invariant, a property or an action."""
        rules = (*self.invariants, *self.properties)
        text = next((rule.location for rule in rules if rule.name == formula), None)
        return text or self.places.get(formula.partition("(")[0], "")


def compile_rules(
    spec: Spec,
    actions: Sequence[Action],
    invariants: Sequence[str],
    properties: Sequence[str],
    *,
    anywhere: bool = False,
) -> Rulebook:
    """The rules of a spec; `actions` by code of the store.

    SpecError names a formula or an action that the spec lacks.
    """

    def place(name: str, why: str) -> str:
        return str(spec.program.operator(name, why).location)

    return Rulebook(
        variables=spec.variables,
        initial=frozenset(map(fingerprint, spec.initial_states())),
        invariants=tuple(AuditRule(name, place(name, "a formula")) for name in invariants),
        properties=tuple(AuditRule(name, place(name, "a property")) for name in properties),
        places={action.name: place(action.name, "an action") for action in actions},
        anywhere=anywhere,
    )
