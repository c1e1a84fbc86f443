"""Code of sets, functions, records: constructors, application, EXCEPT, CHOOSE."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.tla.front import syntax as s
from conformance.tla.python import logic
from conformance.tla.python.protocol import CodeWriter
from conformance.tla.python.scope import (
    ATOMS,
    BoundVariable,
    Entry,
    Frame,
    Kind,
    PythonCode,
    read_of,
)


def binding(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    """CHOOSE, set filter, set map, function."""
    match node.kind:
        case "CHOOSE":
            return _choose(writer, node, context)
        case "filter":
            return _filter(writer, node, context)
        case "map":
            return _map(writer, node, context)
        case _:
            return _function(writer, node, context)


def _choose(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    binder = node.binders[0]
    text, kind = logic.domain(writer, binder, context, ordered=True)
    result = writer.emitter.fresh("w")
    names = binder.names
    with logic.bind_loop(writer, binder, names, text, kind, context) as inner:
        if binder.pattern:
            codes = [writer.expr(name, inner).text for name in names]
            writer.emitter.line(f"{result} = ({', '.join(codes)},)")
        else:
            writer.emitter.line(f"{result} = {writer.expr(names[0], inner).text}")
        logic.jump_if_true(writer, node.body, inner, logic.jump_to(writer, "break"))
    with writer.emitter.block("else:"):
        writer.emitter.line(f"no_choice({text})")
    return PythonCode(result, "tuple" if binder.pattern else kind, atom=True)


def _filter(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    binder = node.binders[0]
    if _is_by_rule(writer, binder.domain):
        return _lazy_filter(writer, binder, node.body, context)
    text, kind = logic.domain(writer, binder, context)
    if binder.pattern:
        return _filter_tuples(writer, node, text, context)
    name = writer.emitter.fresh("v_" + "".join(c for c in binder.names[0].name if c.isalnum()))
    inner = context.bind({binder.names[0].uid: BoundVariable(PythonCode(name, kind, atom=True))})
    branch = writer.emitter.open(2, loop=True)
    test = writer.truth(node.body, inner)
    if not writer.emitter.written(branch):
        writer.emitter.close(branch)
        writer.emitter.drop(branch)
        return PythonCode(f"frozenset([{name} for {name} in {text} if {test.text}])", "set")
    result = writer.emitter.fresh("s")
    branch.headers[0].text = f"{result} = []"
    branch.headers[1].text = f"for {name} in {text}:"
    writer.emitter.line(f"if {test.text}: {result}.append({name})")
    writer.emitter.close(branch)
    return PythonCode(f"frozenset({result})", "set")


def _lazy_filter(writer: CodeWriter, binder: s.Binder, body: s.Expr, context: Frame) -> PythonCode:
    """Of a set given by a rule: as TLC's SetPredValue it asks of no element before it must."""
    assert binder.domain is not None
    whole = writer.expr(binder.domain, context).text
    rule, item = writer.emitter.fresh("r"), writer.emitter.fresh("v")
    with writer.function(f"def {rule}({item}):"):
        entries = _entries(writer, binder, binder.names, item)
        writer.emitter.line(f"return {writer.truth(body, context.bind(entries)).text}")
    return PythonCode(f"filtered({whole}, {rule})", "lazy")


def _entries(
    writer: CodeWriter, binder: s.Binder, names: tuple[s.Bound, ...], item: str
) -> dict[int, Entry]:
    """The names of one element that is given as an argument of a Python function."""
    parts = [item]
    if binder.pattern:
        parts = [writer.emitter.fresh("u") for _ in names]
        writer.emitter.line(f"{', '.join(parts)}, = unpack({item}, {len(names)})")
    return {
        name.uid: BoundVariable(writer.atom(PythonCode(part)))
        for name, part in zip(names, parts, strict=True)
    }


def _filter_tuples(writer: CodeWriter, node: s.Binding, text: str, context: Frame) -> PythonCode:
    binder = node.binders[0]
    result = writer.emitter.fresh("s")
    writer.emitter.line(f"{result} = []")
    with logic.bind_loop(writer, binder, binder.names, text, None, context) as inner:
        test = writer.truth(node.body, inner)
        codes = [writer.expr(name, inner).text for name in binder.names]
        writer.emitter.line(f"if {test.text}: {result}.append(({', '.join(codes)},))")
    return PythonCode(f"frozenset({result})", "set")


def _map(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    if len(node.binders) == 1 and len(node.binders[0].names) == 1 and not node.binders[0].pattern:
        return _map_one(writer, node, context)
    text = writer.emitter.fresh("s")
    writer.emitter.line(f"{text} = []")
    with logic.all_loops(writer, node.binders, context) as inner:
        writer.emitter.line(f"{text}.append({writer.value(node.body, inner).text})")
    return PythonCode(f"set_of({text})", "set")


def listed_images(writer: CodeWriter, node: s.Binding, context: Frame) -> str:
    """The images of {e : x \\in S} in a list.

    Sets among them may stay rules, which read their names after the loop has ended: so a function
    makes each image, and a rule keeps the names of its own call.
    """
    image, text = writer.emitter.fresh("r"), writer.emitter.fresh("s")
    names = [name for binder in node.binders for name in binder.names]
    items = [writer.emitter.fresh("v") for _ in names]
    entries: dict[int, Entry] = {
        name.uid: BoundVariable(PythonCode(item, atom=True))
        for name, item in zip(names, items, strict=True)
    }
    with writer.function(f"def {image}({', '.join(items)}):"):
        code = writer.expr(node.body, context.bind(entries))
        writer.emitter.line(f"return {code.text}")
    writer.emitter.line(f"{text} = []")
    with logic.all_loops(writer, node.binders, context) as inner:
        arguments = ", ".join(writer.expr(name, inner).text for name in names)
        writer.emitter.line(f"{text}.append({image}({arguments}))")
    return text


def _map_one(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    binder = node.binders[0]
    text, kind = logic.domain(writer, binder, context)
    name = writer.emitter.fresh("v_" + "".join(c for c in binder.names[0].name if c.isalnum()))
    inner = context.bind({binder.names[0].uid: BoundVariable(PythonCode(name, kind, atom=True))})
    branch = writer.emitter.open(2, loop=True)
    value = writer.value(node.body, inner)
    make = "frozenset" if value.kind in ATOMS else "set_of"
    if not writer.emitter.written(branch):
        writer.emitter.close(branch)
        writer.emitter.drop(branch)
        return PythonCode(f"{make}([{value.text} for {name} in {text}])", "set")
    result = writer.emitter.fresh("s")
    branch.headers[0].text = f"{result} = []"
    branch.headers[1].text = f"for {name} in {text}:"
    writer.emitter.line(f"{result}.append({value.text})")
    writer.emitter.close(branch)
    return PythonCode(f"{make}({result})", "set")


def _function(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    if _is_infinite(writer, node.binders) or context.recursive & _free(writer, node.body):
        return function_by_rule(writer, node, context)
    text = writer.emitter.fresh("d")
    writer.emitter.line(f"{text} = {{}}")
    with logic.all_loops(writer, node.binders, context) as inner:
        keys = [key for binder in node.binders for key in _keys(writer, binder, inner)]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        writer.emitter.line(f"{text}[{key}] = {writer.value(node.body, inner).text}")
    kind = _function_kind(writer, node.binders)
    if kind == "fn":
        return PythonCode(f"Fn({text})", "fn")
    if kind == "tuple":
        return PythonCode(f"tuple({text}.values())", "tuple")
    return PythonCode(f"make_function({text})")


def _free(writer: CodeWriter, node: s.Expr) -> frozenset[int]:
    return writer.services.analysis.of(node).free


def _keys(writer: CodeWriter, binder: s.Binder, context: Frame) -> list[str]:
    """The arguments that a binder stands for: `<<x>> \\in S` is one, the tuple of x."""
    codes = [writer.expr(name, context).text for name in binder.names]
    return [f"({', '.join(codes)},)"] if binder.pattern else codes


def _arguments(binder: s.Binder) -> int:
    """The number of arguments that a binder stands for."""
    return 1 if binder.pattern else len(binder.names)


def _function_kind(writer: CodeWriter, binders: Sequence[s.Binder]) -> Kind:
    """ "fn" or "tuple" where the domain tells which it is, in order for a tuple."""
    if len(binders) != 1 or len(binders[0].names) != 1 or binders[0].pattern:
        return None
    domain = binders[0].domain
    assert domain is not None, "SANY knows no function without a domain"
    overridden = writer.services.program.meaning(domain) is not None
    if isinstance(domain, s.Builtin) and domain.operator == ".." and not overridden:
        first = domain.args[0]
        return "tuple" if isinstance(first, s.Number) and first.value == 1 else None
    elements = writer.services.elements(domain)
    return "fn" if elements is not None and elements[1] in ("str", "model") else None


def _is_by_rule(writer: CodeWriter, domain: s.Expr | None) -> bool:
    """Whether a filter of the set stays a rule, as in TLC; of a finite S \\X T only there."""
    if domain is not None and writer.services.analysis.of(domain).constant:
        return writer.services.by_rule(domain)
    match domain:
        case s.RecordSet():
            return True
        case s.Builtin(operator="SUBSET" | "[->]" | "Seq" | "UNION"):
            return writer.services.program.meaning(domain) is None
        case _:
            return False


def _is_infinite(writer: CodeWriter, binders: Sequence[s.Binder]) -> bool:
    def infinite(domain: s.Expr | None) -> bool:
        if domain is None or not writer.services.analysis.of(domain).constant:
            return isinstance(domain, s.Builtin) and domain.operator == "Seq"
        return writer.services.infinite(domain)

    return any(infinite(binder.domain) for binder in binders)


def function_by_rule(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    """[x \\in S |-> e] of which no result is computed before somebody asks for it."""
    return _lazy_function(writer, node.binders, node.body, None, context)


def _is_infinite_function(writer: CodeWriter, node: s.Expr) -> bool:
    """Whether an expression is written as a function of an infinite domain."""
    return (
        isinstance(node, s.Binding)
        and node.kind == "function"
        and _is_infinite(writer, node.binders)
    )


def recursive_function(writer: CodeWriter, node: s.RecursiveFunction, context: Frame) -> PythonCode:
    """f[x \\in S] == ... f[...] ...: results are computed on demand and remembered."""
    return _lazy_function(writer, node.binders, node.body, node.function, context)


def _lazy_function(
    writer: CodeWriter,
    binders: Sequence[s.Binder],
    body: s.Expr,
    function: s.Bound | None,
    context: Frame,
) -> PythonCode:
    domains = [
        writer.expr(binder.domain, context).text
        for binder in binders
        for _ in range(_arguments(binder))
        if binder.domain is not None
    ]
    whole = domains[0] if len(domains) == 1 else f"Product([{', '.join(domains)}])"
    rule, self_name, argument = (writer.emitter.fresh(prefix) for prefix in ("r", "f", "x"))
    entries: dict[int, Entry] = {}
    if function is not None:
        entries[function.uid] = BoundVariable(PythonCode(self_name, "lazy", atom=True))
    with writer.function(f"def {rule}({self_name}, {argument}):"):
        rounds = [(binder, names) for binder in binders for names in logic.rounds(binder)]
        for index, (binder, names) in enumerate(rounds):
            item = argument if len(rounds) == 1 else f"{argument}[{index}]"
            entries.update(_entries(writer, binder, names, item))
        inner = context.bind(entries)
        if function is not None:
            inner = inner.within_function(function.uid)
        code = writer.expr(body, inner)
        writer.emitter.line(f"return {code.text}")
    return PythonCode(f"LazyFunction({whole}, {rule})", "lazy")


def application(writer: CodeWriter, node: s.Apply, context: Frame) -> PythonCode:
    """f[x]."""
    function = _in_part(writer.expr(node.function, context))
    argument = writer.expr(node.argument, context)
    if function.kind == "lazy":
        return PythonCode(f"apply({function.text}, {argument.text})", "lazy")
    if argument.kind in ("lazy", "bool"):
        return PythonCode(f"apply({function.text}, {argument.text})")
    if function.kind == "fn":
        return PythonCode(f"{function.text}.mapping[{argument.text}]")
    if function.kind is not None or not function.atom:
        return PythonCode(f"apply({function.text}, {argument.text})")
    f, x = function.text, argument.text
    if argument.kind == "int" and argument.atom:
        return PythonCode(
            f"({f}[{x} - 1] if {f}.__class__ is tuple and 0 < {x} <= len({f}) else apply({f}, {x}))"
        )
    if not argument.atom:
        return PythonCode(f"apply({f}, {x})")
    return PythonCode(f"({f}.mapping[{x}] if {f}.__class__ is Fn else apply({f}, {x}))")


def _in_part(function: PythonCode) -> PythonCode:
    """The function where it is read at one argument only, which a traced machine notes."""
    return PythonCode(read_of(function.text), function.kind, function.atom)


def field(writer: CodeWriter, node: s.Field, context: Frame) -> PythonCode:
    """r.name, without the record where it is written down as a constructor."""
    result = _written_field(writer, node.record, node.name, context, 0)
    if result is not None:
        return writer.expr(result[0], result[1])
    record = _in_part(writer.expr(node.record, context))
    if record.kind == "fn":
        return PythonCode(f"{record.text}.mapping[{node.name!r}]")
    if record.atom and record.kind is None:
        r = record.text
        return PythonCode(
            f"({r}.mapping[{node.name!r}] if {r}.__class__ is Fn else field({r}, {node.name!r}))"
        )
    return PythonCode(f"field({record.text}, {node.name!r})")


def _written_field(
    writer: CodeWriter, node: s.Expr, name: str, context: Frame, depth: int
) -> tuple[s.Expr, Frame] | None:
    """The expression of a field of a record that is constructed on the spot, such as
    `Replica(b).log`. Only where it is cheap: another use of the record computes it again."""
    match node:
        case s.Record(fields=fields):
            for field_name, value in fields:
                if field_name == name and (
                    isinstance(value, s.Apply | s.Variable | s.Bound)
                    or _is_infinite_function(writer, value)
                ):
                    return value, context
        case s.Call() | s.Bound() if depth < 8 and _may_be_record(writer, node):
            callee = writer.callee(node, context)
            if callee is not None:
                return _written_field(writer, callee[0], name, callee[1], depth + 1)
        case _:
            pass
    return None


def _may_be_record(writer: CodeWriter, node: s.Expr) -> bool:
    """Whether it is worth to look into a name or call for a record constructor."""
    meaning = writer.services.program.meaning(node)
    return not isinstance(meaning, s.Definition) or isinstance(meaning.body, s.Record)


def record(writer: CodeWriter, node: s.Record, context: Frame) -> PythonCode:
    """[a |-> e, ...]."""
    fields = _in_order(writer, [value for _, value in node.fields], context)
    pairs = [f"{name!r}: {text}" for (name, _), text in zip(node.fields, fields, strict=True)]
    return PythonCode(f"Fn({{{', '.join(pairs)}}})", "fn")


def record_set(writer: CodeWriter, node: s.RecordSet, context: Frame) -> PythonCode:
    """[a : S, ...]."""
    sets = _in_order(writer, [value for _, value in node.fields], context, values=False)
    pairs = [f"{name!r}: {text}" for (name, _), text in zip(node.fields, sets, strict=True)]
    return PythonCode(f"Records({{{', '.join(pairs)}}})", "lazy")


def _in_order(
    writer: CodeWriter, nodes: Sequence[s.Expr], context: Frame, *, values: bool = True
) -> list[str]:
    compute = writer.value if values else writer.expr
    return [compute(node, context).text for node in nodes]


def except_(
    writer: CodeWriter, node: s.Except, context: Frame, *, in_part: bool = False
) -> PythonCode:
    """[f EXCEPT !path = value, ...]; `in_part` if a `ChangedVariable` may come of it."""
    code = writer.expr(node.function, context)
    code = _in_part(code) if in_part else code
    for update in node.updates:
        code = _update(writer, code, list(update.path), update, context)
    return code


def _update(
    writer: CodeWriter, function: PythonCode, path: list[s.Expr], update: s.Update, context: Frame
) -> PythonCode:
    """One step of the path: outside the domain, the function stays as it is."""
    f = writer.atom(function)
    step = writer.atom(writer.value(path[0], context))
    result, old = writer.emitter.fresh("e"), writer.emitter.fresh("o")
    writer.emitter.line(f"{old} = {_lookup(f, step)}")
    with writer.emitter.block(f"if {old} is UNSET:"):
        writer.emitter.line(f"{result} = {f.text}")
    with writer.emitter.block("else:"):
        rule = f.kind == "lazy" or _is_infinite_function(writer, update.value)
        current = PythonCode(old, "lazy" if f.kind == "lazy" else None, atom=True)
        if len(path) > 1:
            new = _update(writer, current, path[1:], update, context)
        else:
            inner = context.bind({update.at.uid: BoundVariable(current)})
            compute = writer.argument if rule else writer.value
            new = compute(update.value, inner)
        writer.emitter.line(f"{result} = {_replaced(f, step, new.text)}")
    if f.kind == "lazy" or _is_infinite_function(writer, update.value):
        return PythonCode(result, "lazy", atom=True)
    return PythonCode(result, f.kind if f.kind in ("fn", "tuple") else None, atom=True)


def _lookup(f: PythonCode, step: PythonCode) -> str:
    if f.kind == "fn":
        return f"{f.text}.mapping.get({step.text}, UNSET)"
    if f.kind is not None or step.kind == "bool":
        return f"lookup({f.text}, {step.text})"
    return (
        f"{f.text}.mapping.get({step.text}, UNSET) if {f.text}.__class__ is Fn "
        f"else lookup({f.text}, {step.text})"
    )


def _replaced(f: PythonCode, step: PythonCode, value: str) -> str:
    if f.kind == "fn":
        return f"{f.text}.except_({step.text}, {value})"
    return f"replaced({f.text}, {step.text}, {value})"
