"""Lists the action instances of a next-state relation with the names that TLC gives them.

TLC (Tool.getActions, version 2.15) descends through disjunctions, `\\E` over sets that are
constant, LET, and operators whose arguments are constant. The label of what it reaches is the
operator that it entered last, with whose arguments we complete it; an operator whose arguments
are not constant is not entered, but gives its name.

A pattern may also name an operator that TLC does not enter, because its arguments depend on the
state: the `Receive` of `\\E m \\in messages : Receive(m)`. The step keeps the name that TLC gives
it; what the pattern says of the arguments becomes a condition in the formula (`_Condition`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import prod
from types import MappingProxyType

from conformance.tla.errors import SpecError
from conformance.tla.front import syntax as s
from conformance.tla.python.machine import Machine
from conformance.tla.python.runtime import unpack
from conformance.tla.semantics.equality import value_of
from conformance.tla.semantics.errors import EvaluationError
from conformance.tla.semantics.program import Program
from conformance.tla.values import Action, ModelValue, Value, canonical_sorted, equal
from conformance.tla.values.observation import PartialRecord, Place
from conformance.tla.values.patterns import ActionPattern, SeenArgument


@dataclass(frozen=True, slots=True)
class ActionInstance:
    """An action instance: its label, its formula, and what the names in scope stand for.

    `operators` are the operator arguments on the way, in the order in which they were passed.
    `within` are the operators with arguments that were entered before the one that gives the
    label: of `One(i) == Add(i, 0)` TLC's label is Add(1, 0), and a user may say One(1).
    """

    action: Action
    node: s.Expr
    values: Mapping[int, Value]
    names: Mapping[int, s.Bound]
    operators: Mapping[int, s.OperatorArg]
    within: tuple[Action, ...] = ()
    in_part: bool = False
    """Whether it is the part of an instance that goes through the pattern's operator."""

    def has_name(self, name: str) -> bool:
        """Whether its label or an operator around it has the name."""
        return any(action.name == name for action in (self.action, *self.within))

    def is_called(self, pattern: ActionPattern) -> bool:
        """Whether a pattern admits the instance, by its label or an operator around it."""
        return any(map(pattern.admits, (self.action, *self.within)))


@dataclass(frozen=True, slots=True)
class _LabelPlace:
    action: Action
    values: Mapping[int, Value]
    names: Mapping[int, s.Bound]
    operators: Mapping[int, s.OperatorArg] = field(default_factory=lambda: MappingProxyType({}))
    lets: tuple[s.Let, ...] = ()
    depth: int = 0
    within: tuple[Action, ...] = ()

    def enter(self, action: Action) -> _LabelPlace:
        """Within one operator more, which gives the label from now on."""
        within = (*self.within, self.action) if self.depth else ()
        return replace(self, action=action, within=within, depth=self.depth + 1)

    def is_within(self, name: str) -> bool:
        """Whether an operator of that name was entered."""
        return any(action.name == name for action in (self.action, *self.within))

    def bind(self, names: tuple[s.Bound, ...], values: tuple[Value, ...]) -> _LabelPlace:
        pairs = list(zip(names, values, strict=True))
        return replace(
            self,
            values={**self.values, **{name.uid: value for name, value in pairs}},
            names={**self.names, **{name.uid: name for name, _ in pairs}},
        )


_DEEPEST = 200
"""Operators entered one inside the other; a recursive next-state relation ends here."""


MOST_INSTANCES = 100_000
"""So many instances of one pattern are listed at most."""


_TRIED = 2
"""Of each set so many elements are tried to learn which actions there are."""


_NOBODY = ModelValue("nobody")
"""Stands for an element of an empty set where only the names of actions are wanted."""


class TooManyInstances(Exception):
    """What is known of an action leaves more instances of it than anybody could try."""

    def __init__(self, pattern: ActionPattern, count: int) -> None:
        super().__init__(f"{pattern} stands for {count:,} instances of the action")


class ActionLister:
    """Finds the action instances of one machine's next-state relation."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._within: dict[tuple[int, int], s.Expr] = {}
        self._goal: ActionPattern | None = None
        self._unentered = False
        self._most: int | None = None
        self._filled = False
        self._named_in: dict[int, frozenset[str]] = {}
        self._calls: dict[int, tuple[s.Definition, ...]] = {}
        self._conditions: dict[tuple[object, ...], tuple[s.Expr, tuple[s.Bound, ...]]] = {}

    def instances(self, next_: s.Definition) -> list[ActionInstance]:
        """All instances, in TLC's order."""
        return list(self._list(next_.body, _LabelPlace(Action(next_.name), {}, {})))

    def kinds(self, next_: s.Definition, *, without_instances: bool = False) -> list[str]:
        """The names of the actions, in TLC's order, found without listing all instances.

        Of each set that a name ranges over the first elements are tried. `without_instances`: also
        the actions whose names range over sets that these constants leave empty.
        """
        self._most, self._filled = _TRIED, without_instances
        try:
            return list(dict.fromkeys(instance.action.name for instance in self.instances(next_)))
        finally:
            self._most, self._filled = None, False

    def matching(self, next_: s.Definition, pattern: ActionPattern) -> list[ActionInstance]:
        """The instances that a pattern admits, in TLC's order.

        What the pattern says of an argument is not enumerated. If no action has the name, an
        operator may have it that is not entered. Raises TooManyInstances, and SpecError if no
        operator of that name is within the next-state relation, or none that can be told apart.
        """
        if pattern.name != next_.name and pattern.name not in self._names(next_.body):
            raise SpecError(f"the spec has no action {pattern.name}")
        self._goal = pattern
        try:
            named = [
                instance for instance in self.instances(next_) if instance.has_name(pattern.name)
            ]
            if named:
                return [
                    action_instance
                    for action_instance in named
                    if action_instance.is_called(pattern)
                ]
            self._unentered = True
            return [instance for instance in self.instances(next_) if instance.in_part]
        finally:
            self._goal, self._unentered = None, False

    # --- what cannot lead to the goal ---------------------------------------------------------

    def _leads_nowhere(self, node: s.Expr, place: _LabelPlace) -> bool:
        """Whether no instance that the goal admits can be found within a node."""
        goal = self._goal
        if goal is None or place.is_within(goal.name):
            return False
        return goal.name not in self._names(node)

    def _names(self, node: s.Argument) -> frozenset[str]:
        """The names of all operators that a node calls, directly or through others."""
        known = self._named_in.get(id(node))
        if known is None:
            definitions = {definition.uid: definition for definition in self._called(node)}
            ahead = list(definitions.values())
            while ahead:
                for definition in self._called_by(ahead.pop()):
                    if definition.uid not in definitions:
                        definitions[definition.uid] = definition
                        ahead.append(definition)
            names = frozenset(definition.name for definition in definitions.values())
            known = self._named_in[id(node)] = names
        return known

    def _called_by(self, definition: s.Definition) -> tuple[s.Definition, ...]:
        known = self._calls.get(definition.uid)
        if known is None:
            known = self._calls[definition.uid] = tuple(self._called(definition.body))
        return known

    def _called(self, node: s.Argument) -> Iterator[s.Definition]:
        for part in s.walk(node):
            if isinstance(part, s.Call | s.Constant):
                meaning = self._machine.program.meaning(part)
                if isinstance(meaning, s.Definition):
                    yield meaning

    def _known_values(self, body: s.Expr, place: _LabelPlace) -> Mapping[int, SeenArgument]:
        """What bound names must be for a call of the goal's operator to have its arguments."""
        goal = self._goal
        if goal is None or goal.args is None or place.is_within(goal.name):
            return {}
        calls = []
        for part in s.walk(body):
            if isinstance(part, s.Call | s.Constant):
                meaning = self._machine.program.meaning(part)
                if not isinstance(meaning, s.Definition):
                    continue
                if meaning.name == goal.name and isinstance(part, s.Call):
                    calls.append(part)
                elif meaning.name == goal.name or goal.name in self._names(meaning.body):
                    return {}  # by another way, on which the arguments may be others
        if len(calls) != 1 or len(calls[0].args) != len(goal.args):
            return {}
        pairs = zip(calls[0].args, goal.args, strict=True)
        return {
            arg.uid: value for arg, value in pairs if isinstance(arg, s.Bound) and value is not None
        }

    # --- the next-state relation --------------------------------------------------------------

    def _list(self, node: s.Expr, place: _LabelPlace) -> Iterator[ActionInstance]:
        if self._leads_nowhere(node, place):
            return
        match node:
            case s.Builtin(operator=r"\lor", args=parts):
                for part in parts:
                    assert not isinstance(part, s.OperatorArg)
                    yield from self._list(part, place)
            case s.Binding(kind=r"\E", binders=binders, body=body):
                bindings = self._bindings(binders, place, self._known_values(body, place))
                if bindings is None:
                    yield self._in_some_states(node, place)
                else:
                    for inner in bindings:
                        yield from self._list(body, inner)
            case s.Call(target=int()) | s.Constant():
                inner_place = self._enter(node, place)
                if inner_place is None:
                    yield self._in_some_states(node, self._named(node, place))
                else:
                    yield from self._list(*inner_place)
            case s.Let(body=body):
                yield from self._list(body, replace(place, lets=(*place.lets, node)))
            case _:
                yield self._in_some_states(node, place)

    def _in_some_states(self, node: s.Expr, place: _LabelPlace) -> ActionInstance:
        """An instance, which TLC does not enter; of the goal's operator, that part of it."""
        goal = self._goal
        if goal is None or not self._unentered:
            return self._reached(node, place)
        key = (id(node), goal.name, None if goal.args is None else _shapes(goal.args))
        if key not in self._conditions:
            condition = _Condition(goal, self._machine.program, self._names)
            part = condition.part(node)
            if part is None:  # other disjuncts led here
                return self._reached(node, place)
            self._conditions[key] = part, tuple(condition.names)
        part, names = self._conditions[key]
        values = () if goal.args is None else tuple(_seen_values(goal.args))
        return replace(self._reached(part, place.bind(names, values)), in_part=True)

    def _named(self, node: s.Call | s.Constant, place: _LabelPlace) -> _LabelPlace:
        """The place with the label of an operator that is not entered."""
        definition = self._machine.program.meaning(node)
        if not isinstance(definition, s.Definition):
            return place
        return place.enter(Action(definition.name))

    def _reached(self, node: s.Expr, place: _LabelPlace) -> ActionInstance:
        for let in reversed(place.lets):
            # One node for all instances: they share their generated code by it.
            key = (id(let), id(node))
            if key not in self._within:
                self._within[key] = s.Let(let.location, let.definitions, node)
            node = self._within[key]
        return ActionInstance(
            place.action, node, place.values, place.names, place.operators, place.within
        )

    def _enter(
        self, node: s.Call | s.Constant, place: _LabelPlace
    ) -> tuple[s.Expr, _LabelPlace] | None:
        """The body of a called operator, if its arguments are constant."""
        definition = self._machine.program.meaning(node)
        if not isinstance(definition, s.Definition) or place.depth > _DEEPEST:
            return None
        args = node.args if isinstance(node, s.Call) else ()
        values: list[Value] = []
        operators: dict[int, s.OperatorArg] = {}
        for param, arg in zip(definition.params, args, strict=True):
            if isinstance(arg, s.OperatorArg):
                if not self._constant_operator(arg, place):
                    return None
                operators[param.uid] = arg
                continue
            value = self._evaluate(arg, place)
            if value is None:
                return None
            values.append(value)
        if definition.substituted and not values:
            return definition.body, replace(
                place.enter(Action(definition.name)), depth=_DEEPEST + 1
            )
        action = Action(definition.name, tuple(values))
        operators = {**place.operators, **operators}
        inner = replace(place.enter(action), operators=operators)
        params = tuple(param for param in definition.params if not param.arity)
        return definition.body, inner.bind(params, tuple(values))

    def _constant_operator(self, arg: s.OperatorArg, place: _LabelPlace) -> bool:
        """Whether an operator that is passed says nothing about states."""
        target = arg.target
        if isinstance(target, s.Bound):
            passed = place.operators.get(target.uid)
            return passed is not None and self._constant_operator(passed, place)
        if not isinstance(target, int):
            return True
        facts = self._machine.analysis.of_definition(target)
        return facts.timeless

    def _bindings(
        self, binders: tuple[s.Binder, ...], place: _LabelPlace, known: Mapping[int, SeenArgument]
    ) -> list[_LabelPlace] | None:
        """The places for all values of bound names; None if their sets are not constant.

        Over an empty set there are none. TLC then keeps the whole formula, under the name of the
        operator around it; but no step is ever one of it.
        """
        choices: list[list[tuple[tuple[s.Bound, ...], tuple[Value, ...]]]] = []
        for binder in binders:
            elements = None if binder.domain is None else self._elements(binder.domain, place)
            if elements is None:
                return None
            if binder.pattern:
                width = len(binder.names)
                choices.append(
                    [
                        (binder.names, (item,) * width if item is _NOBODY else unpack(item, width))
                        for item in elements
                    ]
                )
            else:
                choices += [
                    [((name,), (item,)) for item in _narrowed(elements, name, known)]
                    for name in binder.names
                ]
        count = prod(map(len, choices))
        if self._goal is not None and count > MOST_INSTANCES:
            raise TooManyInstances(self._goal, count)
        places = [place]
        for choice in choices:
            places = [old.bind(names, values) for old in places for names, values in choice]
        return places

    def _elements(self, node: s.Expr, place: _LabelPlace) -> list[Value] | None:
        value = self._evaluate(node, place)
        if not isinstance(value, frozenset):
            return None
        return list(canonical_sorted(value))[: self._most] or ([_NOBODY] if self._filled else [])

    def _evaluate(self, node: s.Argument, place: _LabelPlace) -> Value | None:
        """The value of an expression that is constant here; None for everything else."""
        if isinstance(node, s.OperatorArg):
            return None
        facts = self._machine.analysis.of(node)
        if not facts.timeless or not facts.free <= place.values.keys():
            return None
        names = [place.names[uid] for uid in sorted(facts.free)]
        try:
            evaluate = self._machine.expression(node, names)
            return value_of(evaluate((), (), *(place.values[name.uid] for name in names)))
        except EvaluationError:
            return None


def _narrowed(
    elements: list[Value], name: s.Bound, known: Mapping[int, SeenArgument]
) -> Iterable[Value]:
    """The elements that the name may stand for."""
    if name.uid not in known:
        return elements
    seen = known[name.uid]
    if isinstance(seen, PartialRecord):
        return filter(seen.admits, elements)
    return [item for item in elements if item == seen and equal(item, seen)]


# --- operators that are not entered ---------------------------------------------------------------


def _shapes(args: Sequence[SeenArgument | None]) -> object:
    return tuple([_shape(seen) for seen in args])


def _shape(seen: SeenArgument | None) -> object:
    """What the condition on an argument depends on, apart from values."""
    if isinstance(seen, PartialRecord):
        return tuple([part.place for part in seen.parts])
    return seen is not None


def _seen_values(args: Sequence[SeenArgument | None]) -> Iterator[Value]:
    """The values that conditions compare with, in their order."""
    for seen in args:
        if isinstance(seen, PartialRecord):
            yield from (part.value for part in seen.parts)
        elif seen is not None:
            yield seen


@dataclass(slots=True)
class _Condition:
    """Makes of a formula the part that goes through a call of the goal's operator.

    That is the disjuncts that have the call, and before the call one equation for each value that
    the goal gives. The values are `names`, so that one formula serves all patterns of a shape.
    """

    goal: ActionPattern
    program: Program
    called: Callable[[s.Argument], frozenset[str]]
    names: list[s.Bound] = field(default_factory=list)

    def __post_init__(self) -> None:
        """The names; no name of a module has a uid below zero."""
        count = len(list(_seen_values(self.goal.args or ())))
        self.names = [s.Bound(_NOWHERE, -number - 1, f"seen{number}") for number in range(count)]

    def part(self, node: s.Argument, depth: int = 0) -> s.Expr | None:
        """The part of a node, None if it has no such call.

        SpecError where the call cannot be told from the rest.
        """
        if self.goal.name not in self.called(node):
            return None
        match node:
            case s.Builtin(operator=r"\lor", args=disjuncts):
                return _joined(r"\lor", (self.part(part, depth) for part in disjuncts))
            case s.Builtin(operator=r"\land", args=parts):
                return _joined(r"\lor", (self._conjunct(node, n, depth) for n in range(len(parts))))
            case s.Binding(kind=r"\E", body=body) | s.Let(body=body):
                inner = self.part(body, depth)
                return None if inner is None else replace(node, body=inner)
            case s.Call() | s.Constant() if self._is_goal(node):
                args = node.args if isinstance(node, s.Call) else ()
                conditions = list(self._conditions(args))
                return s.Builtin(node.location, r"\land", (*conditions, node))
            case s.Call() | s.Constant() if depth < _DEEPEST:
                return self._inlined(node, depth)
        raise SpecError(
            f"{node.location}: {self.goal.name} is part of an expression from which its steps "
            "cannot be told apart. Name the action around it."
        )

    def _inlined(self, node: s.Call | s.Constant, depth: int) -> s.Expr | None:
        """The part of another operator's body, in which its parameters are its arguments."""
        meaning = self.program.meaning(node)
        if not isinstance(meaning, s.Definition):
            return None
        part = self.part(meaning.body, depth + 1)
        args = node.args if isinstance(node, s.Call) else ()
        for param, arg in zip(meaning.params, args, strict=True):
            if part is None or isinstance(arg, s.OperatorArg):
                raise SpecError(
                    f"{node.location}: {meaning.name} has an operator as argument. Name the "
                    f"action around it instead of {self.goal.name}."
                )
            only = s.Builtin(arg.location, "{}", (arg,))
            part = s.Binding(node.location, r"\E", (s.Binder(node.location, (param,), only),), part)
        return part

    def _conjunct(self, node: s.Builtin, number: int, depth: int) -> s.Expr | None:
        """The conjunction, if the call is in its conjunct of this number."""
        inner = self.part(node.args[number], depth)
        if inner is None:
            return None
        return replace(node, args=(*node.args[:number], inner, *node.args[number + 1 :]))

    def _is_goal(self, node: s.Call | s.Constant) -> bool:
        meaning = self.program.meaning(node)
        if not isinstance(meaning, s.Definition) or meaning.name != self.goal.name:
            return False
        known = self.goal.args
        return known is None or len(known) == sum(not param.arity for param in meaning.params)

    def _conditions(self, args: Sequence[s.Argument]) -> Iterator[s.Expr]:
        names = iter(self.names)
        values = [arg for arg in args if not isinstance(arg, s.OperatorArg)]
        for arg, seen in zip(values, self.goal.args or (), strict=False):
            if isinstance(seen, PartialRecord):
                for part in seen.parts:
                    yield from _place_shows(arg, part.place, next(names))
            elif seen is not None:
                yield s.Builtin(arg.location, "=", (arg, next(names)))


_NOWHERE = s.Location("", 0, 0, 0, 0)


def _joined(operator: str, parts: Iterable[s.Expr | None]) -> s.Expr | None:
    kept = [part for part in parts if part is not None]
    if len(kept) < 2:
        return kept[0] if kept else None
    return s.Builtin(kept[0].location, operator, tuple(kept))


def _place_shows(record: s.Expr, place: Place, value: s.Bound) -> Iterator[s.Expr]:
    """That a place, whose variable is a field of the record, has the value; each entry is there."""
    where, at = record.location, record
    for key in (place.variable, *place.path):
        argument = literal(key, where)
        yield s.Builtin(where, r"\in", (argument, s.Builtin(where, "DOMAIN", (at,))))
        at = s.Apply(where, at, argument)
    aspect = place.aspect
    if aspect is not None and aspect.member is None:
        at = s.Builtin(where, aspect.operator, (at,))
    elif aspect is not None and aspect.member is not None:
        among = s.Builtin(where, "DOMAIN", (at,)) if "DOMAIN" in aspect.operator else at
        at = s.Builtin(where, r"\in", (literal(aspect.member, where), among))
    yield s.Builtin(where, "=", (at, value))


def literal(value: Value, where: s.Location) -> s.Expr:
    """The expression that a value is written as."""

    def within(operator: str, values: Iterable[Value]) -> s.Expr:
        return s.Builtin(where, operator, tuple([literal(value, where) for value in values]))

    match value:
        case bool():
            return s.Builtin(where, "TRUE" if value else "FALSE")
        case int():
            return s.Number(where, value)
        case str():
            return s.String(where, value)
        case ModelValue():
            return s.Constant(where, value.name)
        case tuple():
            return within("<<>>", value)
        case frozenset():
            return within("{}", canonical_sorted(value))
    pairs = [within(":>", pair) for pair in value.items()]
    return reduce(lambda node, other: s.Builtin(where, "@@", (node, other)), pairs)


__all__ = ["ActionInstance", "ActionLister", "TooManyInstances"]
