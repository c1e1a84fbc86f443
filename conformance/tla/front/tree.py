"""A syntax tree as indented text: what the reader made of an expression, names resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.tla.front import syntax as s

_STEP = "  "


def tree_lines(module: s.Module, node: s.Argument, depth: int = 0) -> Iterator[str]:
    """A line for each node, its operands below it; a LET's definitions before its body."""
    yield f"{_STEP * depth}{_label(module, node)}"
    if isinstance(node, s.Let):
        for uid in node.definitions:
            definition = module.definitions[uid]
            yield f"{_STEP * (depth + 1)}{head(definition)} =="
            yield from tree_lines(module, definition.body, depth + 2)
    for child in s.children(node):
        yield from tree_lines(module, child, depth + 1)


def head(definition: s.Definition) -> str:
    """`Name(parameters)`."""
    params = ", ".join(map(_parameter, definition.params))
    return f"{definition.name}({params})" if params else definition.name


def _parameter(param: s.Bound) -> str:
    places = ", ".join("_" * param.arity)
    return f"{param.name}({places})" if places else param.name


def _label(module: s.Module, node: s.Argument) -> str:
    match node:
        case s.Number(value=value):
            return f"Number {value}"
        case s.String(value=text):
            return f'String "{text}"'
        case s.Constant(name=name) | s.Variable(name=name) | s.Bound(name=name):
            return f"{type(node).__name__} {name}"
        case s.Builtin(operator=operator):
            return f"Builtin {operator}"
        case s.OperatorArg(target=target):
            return f"OperatorArg {_target(module, target)}"
        case s.Call(name=name):
            return f"Call {name}"
        case s.Binding(kind=kind, binders=binders):
            return f"Binding {kind} {_binders(binders)}"
        case s.RecursiveFunction(function=function, binders=binders):
            return f"RecursiveFunction {function.name} {_binders(binders)}"
        case s.Field(name=name):
            return f"Field .{name}"
        case s.Record(fields=fields) | s.RecordSet(fields=fields):
            return f"{type(node).__name__} {', '.join(name for name, _ in fields)}"
        case s.Opaque(what=what):
            return f"Opaque {what}"
        case _:
            return type(node).__name__


def _target(module: s.Module, target: int | s.Bound | s.Constant | str) -> str:
    if isinstance(target, int):
        return head(module.definitions[target])
    return target if isinstance(target, str) else target.name


def _binders(binders: Iterable[s.Binder]) -> str:
    return ", ".join(
        f"<<{', '.join(name.name for name in binder.names)}>>"
        if binder.pattern
        else ", ".join(name.name for name in binder.names)
        for binder in binders
    )
