"""Looks into a specification formula: its initial predicate, next-state relation, fairness."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from conformance.tla import (
    LIVENESS,
    Argument,
    Binding,
    Builtin,
    Call,
    Definition,
    Expr,
    Module,
    reader_of,
)


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
    parts = reader_of(module).parts(definition.body)
    if parts.rest or parts.always or len(parts.initial) != 1 or len(parts.steps) != 1:
        return None
    init, step = _plain_name(parts.initial[0]), _plain_name(_action(parts.steps[0]))
    return None if init is None or step is None else Parts(init, step)


def is_safety_property(module: Module, name: str) -> bool:
    """Whether the property is made of `[][A]_v` and `[]P` alone: no liveness in it."""
    definition = module.operator(name)
    return definition is not None and not reader_of(module).mentions(definition.body, LIVENESS)


def says_always(module: Module, name: str, predicate: str) -> bool:
    """Whether a property has `[]P` for the predicate of that name."""
    definition = module.operator(name)
    parts = None if definition is None else reader_of(module).parts(definition.body)
    return parts is not None and any(_plain_name(part) == predicate for part in parts.always)


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


def _action(step: Expr) -> Argument | None:
    """A of `[A]_v`."""
    boxed = isinstance(step, Builtin) and step.operator == "[A]_v"
    return step.args[0] if boxed and isinstance(step, Builtin) else None


def _plain_name(expression: Argument | None) -> str | None:
    """The name of an operator without parameters, if the expression is one."""
    is_name = isinstance(expression, Call) and not expression.args
    return expression.name if is_name and isinstance(expression, Call) else None


def _definition(module: Module, expression: Argument) -> Definition | None:
    if isinstance(expression, Call) and isinstance(expression.target, int):
        return module.definitions.get(expression.target)
    return None
