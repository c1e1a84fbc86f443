"""Looks into a specification formula: its initial predicate, next-state relation, fairness."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from conformance.tla.syntax import Argument, Binding, Builtin, Call, Definition, Let, Module, walk

_LIVENESS = frozenset({"<>", "~>", "-+->", "WF", "SF"})
_TEMPORAL = _LIVENESS | {"[]"}


@dataclass(frozen=True, slots=True)
class Parts:
    """`Init /\\ [][Next]_vars`, the two as names of operators without parameters."""

    init: str
    next: str


def specification_parts(module: Module, name: str) -> Parts | None:
    """The parts of a specification without fairness; None if it says anything else."""
    definition = module.operator(name)
    if definition is None:
        return None
    names: list[str] = []
    steps: list[str] = []
    for conjunct in _conjuncts(module, definition.body):
        if (step := _boxed_action(conjunct)) is not None:
            steps.append(step)
        elif isinstance(conjunct, Call) and not conjunct.args:
            names.append(conjunct.name)
        else:
            return None
    if len(names) != 1 or len(steps) != 1:
        return None
    return Parts(names[0], steps[0])


def is_safety_property(module: Module, name: str) -> bool:
    """Whether the property is made of `[][A]_v` and `[]P` alone: no liveness in it."""
    definition = module.operator(name)
    return definition is not None and not _mentions(module, definition.body, _LIVENESS)


def encloses(module: Module, definition: Definition, names: Set[str]) -> bool:
    """Whether the definition is a choice (`\\/`, `\\E`) that leads to an operator in `names`."""
    seen = {definition.uid}
    pending: list[Argument] = [definition.body]
    while pending:
        node = pending.pop()
        if isinstance(node, Builtin) and node.operator == r"\lor":
            pending.extend(node.args)
        elif isinstance(node, Binding) and node.kind == r"\E":
            pending.append(node.body)
        elif (called := _definition(module, node)) is not None and called.uid not in seen:
            if called.name in names:
                return True
            seen.add(called.uid)
            pending.append(called.body)
    return False


def _conjuncts(module: Module, expression: Argument) -> Iterator[Argument]:
    """The conjuncts, looking through names of temporal formulas (`Fair == Spec /\\ WF...`)."""
    if isinstance(expression, Builtin) and expression.operator == r"\land":
        for part in expression.args:
            yield from _conjuncts(module, part)
        return
    definition = _definition(module, expression)
    if definition is not None and _mentions(module, definition.body, _TEMPORAL):
        yield from _conjuncts(module, definition.body)
    else:
        yield expression


def _boxed_action(expression: Argument) -> str | None:
    """The name N of `[][N]_v`, if this is one."""
    if isinstance(expression, Builtin) and expression.operator == "[]":
        step = expression.args[0]
        if isinstance(step, Builtin) and step.operator == "[A]_v":
            action = step.args[0]
            if isinstance(action, Call) and not action.args:
                return action.name
    return None


def _definition(module: Module, expression: Argument) -> Definition | None:
    if isinstance(expression, Call) and isinstance(expression.target, int):
        return module.definitions.get(expression.target)
    return None


def _mentions(module: Module, expression: Argument, operators: frozenset[str]) -> bool:
    """Whether one of the operators occurs in the expression or in a definition that it uses."""
    seen: set[int] = set()
    pending: list[Argument] = [expression]
    while pending:
        for node in walk(pending.pop()):
            if isinstance(node, Builtin) and node.operator in operators:
                return True
            used = list(node.definitions) if isinstance(node, Let) else []
            if isinstance(node, Call) and isinstance(node.target, int):
                used.append(node.target)
            for uid in used:
                if uid not in seen:
                    seen.add(uid)
                    pending.append(module.definitions[uid].body)
    return False
