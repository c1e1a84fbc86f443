"""Where a recording may begin: in an initial state, or in any state that agrees with what was seen.

"Any state" is found in one of two ways, and the note says which. If what was seen, what the
mapping gives and what the type invariant allows of the rest leaves few enough states, all of them
are taken: more than can be reached, so that nothing is called impossible that is possible. Else
the states that the specification can reach are searched, as far as the limit goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from conformance.errors import SpecError
from conformance.tla import (
    Argument,
    Builtin,
    Call,
    Constant,
    Definition,
    EvaluationError,
    Expr,
    Functions,
    ObservedPart,
    OperatorArg,
    Place,
    Records,
    Spec,
    State,
    SymbolicSet,
    Value,
    Variable,
    canonical_sorted,
    make_function,
    value_of,
)

__all__ = ["StartStates", "any_state", "initial_states"]


@dataclass(frozen=True, slots=True)
class StartStates:
    """The states from which the search begins."""

    states: tuple[State, ...]
    exhaustive: bool
    """Whether the recording cannot have begun in another state."""
    note: str


def initial_states(spec: Spec) -> StartStates:
    """The states that Init allows."""
    return StartStates(tuple(spec.initial_states()), True, "in an initial state")


def any_state(
    spec: Spec,
    alternatives: Sequence[Sequence[ObservedPart]],
    *,
    given: Mapping[str, Value],
    invariants: Sequence[str],
    limit: int,
) -> StartStates:
    """Every state that shows one of the alternatives: what the first event may have seen.

    `given` are values that the mapping states for variables that nobody sees; `invariants` the
    formulas that hold in every state from which a recording may begin, a type invariant first.
    """
    result: dict[State, None] = {}
    for parts in alternatives:
        choices = _Choices(spec, parts, given, invariants)
        states = choices.states(limit)
        if states is None:
            return _reachable(spec, alternatives, given, limit, choices.open_variables())
        result.update(dict.fromkeys(states))
    what = " and ".join(invariants) if invariants else "the variables seen"
    return StartStates(
        tuple(result), True, f"in any state that agrees with what was seen and {what}"
    )


class _Choices:
    """The values that each variable may have."""

    def __init__(
        self,
        spec: Spec,
        parts: Sequence[ObservedPart],
        given: Mapping[str, Value],
        invariants: Sequence[str],
    ) -> None:
        self._spec = spec
        self._formulas = [spec.state_formula(name) for name in invariants]
        self._parts = {
            name: tuple(part for part in parts if part.place.variable == name)
            for name in spec.variables
        }
        domains = _domains(spec, invariants, self._unknown(given))
        self._of = {name: self._choice(name, given, domains) for name in spec.variables}

    def _unknown(self, given: Mapping[str, Value]) -> frozenset[str]:
        """The variables that neither the event nor the mapping shows whole."""
        seen = {n for n, parts in self._parts.items() if any(p.place.is_whole for p in parts)}
        return frozenset(self._parts) - seen - frozenset(given)

    def _choice(
        self, name: str, given: Mapping[str, Value], domains: Mapping[str, object]
    ) -> _Set | None:
        for part in self._parts[name]:
            if part.place.is_whole:
                return _ListedValues((part.value,))
        if name in given:
            return _ListedValues((given[name],))
        domain = domains.get(name)
        shown = [part for part in self._parts[name] if part.place.aspect is None]
        return None if domain is None else _within(domain, shown)

    def open_variables(self) -> tuple[str, ...]:
        """The variables that leave most open, those without any bound first."""
        sizes = {n: float("inf") if c is None else c.size for n, c in self._of.items()}
        ranked = sorted((name for name in sizes if sizes[name] > 1), key=lambda n: -sizes[n])
        return tuple(ranked[:5])

    def states(self, limit: int) -> list[State] | None:
        """The states, None if there are more than the limit."""
        sets = [choice for choice in self._of.values() if choice is not None]
        if len(sets) < len(self._of) or prod(choices.size for choices in sets) > limit:
            return None
        return [
            state for state in product(*(list(choices) for choices in sets)) if self._holds(state)
        ]

    def _holds(self, state: State) -> bool:
        positions = {name: n for n, name in enumerate(self._spec.variables)}
        shown = all(
            part.shown_by(state, positions[name])
            for name, parts in self._parts.items()
            for part in parts
        )
        return shown and all(_may_hold(formula, state) for formula in self._formulas)


def _may_hold(formula: Callable[[State], bool], state: State) -> bool:
    """A formula without a value excludes no state: too many are better than too few."""
    try:
        return formula(state)
    except EvaluationError:
        return True


# --- the sets that a type invariant names -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ListedValues:
    """Values that are written out."""

    values: tuple[Value, ...]

    @property
    def size(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)


@dataclass(frozen=True, slots=True)
class _Product:
    """Functions on a domain, each argument with its own set of values."""

    arguments: tuple[tuple[Value, _Set], ...]

    @property
    def size(self) -> int:
        return prod(values.size for _, values in self.arguments)

    def __iter__(self) -> Iterator[Value]:
        keys = [key for key, _ in self.arguments]
        for values in product(*(list(choices) for _, choices in self.arguments)):
            yield make_function(dict(zip(keys, values, strict=True)))


_Set = _ListedValues | _Product


def _domains(spec: Spec, invariants: Sequence[str], wanted: frozenset[str]) -> Mapping[str, object]:
    """For each wanted variable x the set S of the first conjunct `x \\in S` of the invariants."""
    domains: dict[str, object] = {}
    for name in invariants:
        for conjunct in _conjuncts(spec, spec.state_formula(name).definition.body):
            match conjunct:
                case Builtin(operator=r"\in", args=(Variable(name=variable), domain)):
                    if variable in wanted - domains.keys() and not isinstance(domain, OperatorArg):
                        value = _constant(spec, domain)
                        if value is not None:
                            domains[variable] = value
                case _:
                    pass
    return domains


def _constant(spec: Spec, node: Expr) -> object | None:
    try:
        return spec.constant_set(node)
    except EvaluationError:  # of a set too large to enumerate: it bounds nothing
        return None


def _conjuncts(spec: Spec, node: Argument) -> Iterator[Argument]:
    match node:
        case Builtin(operator=r"\land", args=parts):
            for part in parts:
                yield from _conjuncts(spec, part)
        case Call() | Constant():
            meaning = spec.program.meaning(node)
            if isinstance(meaning, Definition) and not meaning.params:
                yield from _conjuncts(spec, meaning.body)
        case _:
            yield node


def _within(domain: object, parts: Sequence[ObservedPart]) -> _Set | None:
    """The elements of a set that have the parts; None if they cannot be listed."""
    for part in parts:
        if not part.place.path:
            return _ListedValues((part.value,))
    if isinstance(domain, Functions):
        return _functions([(key, domain.range) for key in canonical_sorted(domain.domain)], parts)
    if isinstance(domain, Records):
        return _functions(list(domain.fields.items()), parts)
    values = _listed(domain)
    return None if values is None else _ListedValues(values)


def _functions(pairs: Sequence[tuple[Value, object]], parts: Sequence[ObservedPart]) -> _Set | None:
    arguments: list[tuple[Value, _Set]] = []
    for key, values in pairs:
        below = [
            ObservedPart(Place(part.place.variable, part.place.path[1:]), part.value)
            for part in parts
            if part.place.path[0] == key
        ]
        inner = _within(values, below)
        if inner is None:
            return None
        arguments.append((key, inner))
    return _Product(tuple(arguments))


_LONGEST = 100_000


def _listed(domain: object) -> tuple[Value, ...] | None:
    if isinstance(domain, SymbolicSet):
        size = domain.at_most()
        if size is None or size > _LONGEST:
            return None
        try:
            domain = value_of(domain)
        except EvaluationError:
            return None
    return tuple(canonical_sorted(domain)) if isinstance(domain, frozenset) else None


# --- what can be reached -------------------------------------------------------------------------


def _reachable(
    spec: Spec,
    alternatives: Sequence[Sequence[ObservedPart]],
    given: Mapping[str, Value],
    limit: int,
    open_variables: Sequence[str],
) -> StartStates:
    """The reachable states that agree with the observation, breadth first, up to the limit."""
    positions = {name: n for n, name in enumerate(spec.variables)}
    stated = [ObservedPart(Place(name), value) for name, value in given.items()]
    wanted = [[*parts, *stated] for parts in alternatives]

    def agrees(state: State) -> bool:
        return any(
            all(part.shown_by(state, positions[part.place.variable]) for part in parts)
            for parts in wanted
        )

    states, whole = _search(spec, limit)
    names = ", ".join(open_variables)
    note = f"in any reachable state that agrees with what was seen ({len(states):,} were searched"
    note += ")" if whole else f", not all: what was seen leaves {names} open)"
    return StartStates(tuple(filter(agrees, states)), whole, note)


def _search(spec: Spec, limit: int) -> tuple[Collection[State], bool]:
    seen: dict[State, None] = dict.fromkeys(spec.initial_states())
    ahead = list(seen)
    try:
        while ahead and len(seen) < limit:
            following = [t for state in ahead for _, t in spec.successors(state) if t not in seen]
            ahead = [t for t in dict.fromkeys(following) if len(seen) < limit]
            seen.update(dict.fromkeys(ahead))
    except SpecError:
        return seen, False
    return seen, not ahead
