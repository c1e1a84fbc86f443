"""The spec's formulas as the audit asks them, by name; natively, three-valued SQL with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from conformance.tla import Action, Schema, Spec, fingerprint
from conformance.tla.spark import SparkFormula, compile_state_formulas
from conformance.tla.spark.sql import name as quoted
from conformance.tla.spark.sql import text as literal

__all__ = ["INIT", "NEXT", "AuditRule", "Rulebook", "compile_rules", "literal", "quoted"]

NEXT = "Next"
INIT = "Init"


@dataclass(frozen=True, slots=True)
class AuditRule:
    """A formula. `value` is SQL: true, false, or NULL where the formula is undefined; `reason`,
    an SQL string, then says why."""

    name: str
    value: str
    reason: str = "NULL"
    location: str = ""


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All that an audit asks of states and transitions.

    State rules read a column per variable, named as the variable; transition rules read in
    addition the value after the step (`following`). `next` decides whether the action in the
    column `action`, a code below `actions`, allows the transition. `initial` are the
    fingerprints of the states that Init allows.
    """

    variables: tuple[str, ...]
    actions: int
    initial: frozenset[int]
    invariants: Sequence[AuditRule] = ()
    properties: Sequence[AuditRule] = ()
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Where the spec defines Init and each action, by name."""
    anywhere: bool = False
    """Whether a trace may begin in any state: nobody saw how the system started."""
    native: bool = False
    """Whether the invariants are SQL; else the workers' evaluator judges them."""
    compiled: Sequence[SparkFormula] = ()
    """The native invariants again, as the compiler gave them: judged together they share what
    they have in common. Empty where the SQL came from elsewhere."""

    def location(self, formula: str) -> str:
        """Where the spec states an invariant, a property or an action."""
        rules = (*self.invariants, *self.properties)
        text = next((rule.location for rule in rules if rule.name == formula), None)
        return text or self.places.get(formula.partition("(")[0], "")


def compile_rules(
    spec: Spec,
    schema: Schema,
    actions: Sequence[Action],
    invariants: Sequence[str],
    properties: Sequence[str],
    *,
    anywhere: bool = False,
    native: bool = False,
) -> Rulebook:
    """The rules of a spec over states of this schema; `actions` by code of the store.

    SpecError names a formula or an action that the spec lacks, UnsupportedError an operator
    that cannot be compiled, with its place.
    """
    program = spec.program
    compiled: Sequence[SparkFormula] = ()
    if native:
        compiled = compile_state_formulas(program, invariants, schema)
        of_states = [AuditRule(f.name, "", f.reason, str(f.location)) for f in compiled]
    else:
        of_states = [AuditRule(n, "", "", str(spec.state_formula(n).location)) for n in invariants]
    of_steps = [AuditRule(n, "", "", str(spec.action_formula(n).location)) for n in properties]
    return Rulebook(
        variables=spec.variables,
        actions=len(actions),
        initial=frozenset(map(fingerprint, spec.initial_states())),
        invariants=tuple(of_states),
        properties=tuple(of_steps),
        places={action.name: str(spec.action_formula(action).location) for action in actions},
        anywhere=anywhere,
        native=native,
        compiled=tuple(compiled),
    )
