"""Code of formulas: conjunctions, quantifiers, IF, CASE, and jumps on their truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from conformance.tla.front import syntax as s
from conformance.tla.python.protocol import CodeWriter, unsupported
from conformance.tla.python.scope import FALSE, TRUE, BoundVariable, Frame, Kind, PythonCode, common


@dataclass(frozen=True, slots=True)
class Jump:
    """Statements that leave the code at hand, and the loop depth at which they may stand."""

    statements: tuple[str, ...]
    loops: int

    @property
    def returns(self) -> bool:
        """Whether the jump works from any depth of loops."""
        return self.statements[-1].startswith("return")


def jump_to(writer: CodeWriter, *statements: str) -> Jump:
    """A jump that is valid here."""
    return Jump(statements, writer.emitter.loops)


# Values


def connective(
    writer: CodeWriter, word: str, nodes: Sequence[s.Argument], context: Frame
) -> PythonCode:
    """n-ary conjunction ("and") or disjunction ("or"), evaluated from left to right."""
    texts = [writer.truth(nodes[0], context).text]
    for index, node in enumerate(nodes[1:], start=1):
        branch = writer.emitter.open(2)
        code = writer.truth(node, context)
        if not writer.emitter.written(branch):
            writer.emitter.close(branch)
            writer.emitter.drop(branch)
            texts.append(code.text)
            continue
        name = writer.emitter.fresh("c")
        test = name if word == "and" else f"not {name}"
        branch.headers[0].text = f"{name} = {f' {word} '.join(texts)}"
        branch.headers[1].text = f"if {test}:"
        writer.emitter.line(f"{name} = {code.text}")
        if rest := nodes[index + 1 :]:
            with writer.emitter.block(f"if {test}:"):
                writer.emitter.line(f"{name} = {connective(writer, word, rest, context).text}")
        writer.emitter.close(branch)
        return PythonCode(name, "bool", atom=True)
    return PythonCode(f"({f' {word} '.join(texts)})", "bool")


def conditional(writer: CodeWriter, node: s.If, context: Frame) -> PythonCode:
    """IF."""
    condition = writer.truth(node.condition, context)
    return _choose(
        writer,
        condition.text,
        lambda: writer.expr(node.then, context),
        lambda: writer.expr(node.otherwise, context),
    )


def case(writer: CodeWriter, node: s.Case, context: Frame) -> PythonCode:
    """CASE: the first true guard counts, as in TLC."""

    def arm(index: int) -> PythonCode:
        if index == len(node.arms):
            return (
                PythonCode("no_case()") if node.other is None else writer.expr(node.other, context)
            )
        guard, value = node.arms[index]
        condition = writer.truth(guard, context)
        return _choose(
            writer, condition.text, lambda: writer.expr(value, context), lambda: arm(index + 1)
        )

    return arm(0)


def _choose(
    writer: CodeWriter,
    condition: str,
    then: Callable[[], PythonCode],
    otherwise: Callable[[], PythonCode],
) -> PythonCode:
    emitter = writer.emitter
    first = emitter.open()
    then_code = then()
    first_written = emitter.written(first)
    assign_first = emitter.placeholder()
    emitter.close(first)
    second = emitter.open()
    other_code = otherwise()
    second_written = emitter.written(second)
    assign_second = emitter.placeholder()
    emitter.close(second)
    kind = (
        then_code.kind
        if other_code.text == "no_case()"
        else common(then_code.kind, other_code.kind)
    )
    if not first_written and not second_written:
        emitter.drop(first)
        return PythonCode(f"({then_code.text} if {condition} else {other_code.text})", kind)
    name = emitter.fresh("c")
    first.headers[0].text = f"if {condition}:"
    assign_first.text = f"{name} = {then_code.text}"
    second.headers[0].text = "else:"
    assign_second.text = f"{name} = {other_code.text}"
    return PythonCode(name, kind, atom=True)


def quantifier(writer: CodeWriter, node: s.Binding, context: Frame) -> PythonCode:
    """\\A or \\E as a value."""
    every = node.kind == r"\A"
    if writer.services.patient:
        return _patient(writer, _steps(writer, node.binders, context), node.body, context, every)
    name = writer.emitter.fresh("q")
    writer.emitter.line(f"{name} = {every}")

    def inside(inner: Frame, leave: Jump) -> None:
        if every:
            jump_if_false(writer, node.body, inner, leave)
        else:
            jump_if_true(writer, node.body, inner, leave)

    search(writer, node.binders, context, f"{name} = {not every}", name, every, inside)
    return PythonCode(name, "bool", atom=True)


def search(
    writer: CodeWriter,
    binders: Sequence[s.Binder],
    context: Frame,
    result: str,
    flag: str,
    initially: bool,
    inside: Callable[[Frame, Jump], None],
) -> None:
    """Loops over all bindings until `inside` jumps: that executes `found` and ends all loops."""
    steps = _steps(writer, binders, context)

    def level(index: int, inner: Frame) -> None:
        if index == len(steps):
            inside(inner, Jump((result, "break"), writer.emitter.loops))
            return
        binder, names, text, kind = steps[index]
        with bind_loop(writer, binder, names, text, kind, inner) as bound:
            level(index + 1, bound)
            if index + 1 < len(steps):
                writer.emitter.line(f"if {'not ' if initially else ''}{flag}: break")

    level(0, context)


_Step = tuple[s.Binder, tuple[s.Bound, ...], str, Kind]
"""A binder, the names of one loop over its set, what the loop iterates over, and the kind."""


def _steps(
    writer: CodeWriter, binders: Sequence[s.Binder], context: Frame, *, ordered: bool = False
) -> list[_Step]:
    """All sets are evaluated before the first loop."""
    return [
        (binder, names, *domain(writer, binder, context, ordered=ordered))
        for binder in binders
        for names in rounds(binder)
    ]


def _patient(
    writer: CodeWriter, steps: Sequence[_Step], body: s.Expr, context: Frame, every: bool
) -> PythonCode:
    """A quantifier whose body is a function of one element, nested for further names."""
    if not steps:
        return writer.truth(body, context)
    (binder, names, text, kind), *rest = steps
    function, item = writer.emitter.fresh("g"), writer.emitter.fresh("i")
    with writer.function(f"def {function}({item}):"):
        bound = _bound(writer, binder, names, item, kind, context)
        code = _patient(writer, rest, body, bound, every)
        writer.emitter.line(f"return {code.text}")
    order = binder.domain is not None and in_order(writer, binder.domain)
    return PythonCode(f"decide({text}, {function}, {every}, {order!r})", "bool")


def in_order(writer: CodeWriter, node: s.Expr) -> bool | None:
    """Whether TLC is known to take the elements of a set in our order: an interval, a constant
    set of integers or booleans. The order in which it takes others is its own affair. None of a
    DOMAIN: it is in order if it is that of a sequence."""
    constant = writer.services.elements(node)
    if constant is not None:
        return constant[1] in ("int", "bool")
    if not isinstance(node, s.Builtin) or writer.services.program.meaning(node) is not None:
        return False
    return None if node.operator == "DOMAIN" else node.operator == ".."


def rounds(binder: s.Binder) -> list[tuple[s.Bound, ...]]:
    """`x, y \\in S` is two loops, `<<x, y>> \\in S` one."""
    return [binder.names] if binder.pattern else [(name,) for name in binder.names]


@contextmanager
def all_loops(
    writer: CodeWriter, binders: Sequence[s.Binder], context: Frame, *, ordered: bool = False
) -> Iterator[Frame]:
    """Loops over all bindings; yields the context of the innermost."""
    steps = _steps(writer, binders, context, ordered=ordered)
    with ExitStack() as stack:
        for binder, names, text, kind in steps:
            context = stack.enter_context(bind_loop(writer, binder, names, text, kind, context))
        yield context


@contextmanager
def bind_loop(
    writer: CodeWriter,
    binder: s.Binder,
    names: tuple[s.Bound, ...],
    text: str,
    kind: Kind,
    context: Frame,
) -> Iterator[Frame]:
    """One loop; its context knows the bound names."""
    item = writer.emitter.fresh("i" if binder.pattern else _python(names[0].name))
    with writer.emitter.block(f"for {item} in {text}:", loop=True):
        yield _bound(writer, binder, names, item, kind, context)


def _bound(
    writer: CodeWriter,
    binder: s.Binder,
    names: tuple[s.Bound, ...],
    item: str,
    kind: Kind,
    context: Frame,
) -> Frame:
    """The context in which the names stand for an element, or for its components."""
    if not binder.pattern:
        return context.bind({names[0].uid: BoundVariable(PythonCode(item, kind, atom=True))})
    variables = [writer.emitter.fresh(_python(name.name)) for name in names]
    writer.emitter.line(f"{', '.join(variables)}, = unpack({item}, {len(names)})")
    entries = {
        name.uid: BoundVariable(PythonCode(variable, None, atom=True))
        for name, variable in zip(names, variables, strict=True)
    }
    return context.bind(entries)


def _python(name: str) -> str:
    return "v_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in name)


def domain(
    writer: CodeWriter, binder: s.Binder, context: Frame, *, ordered: bool = False
) -> tuple[str, Kind]:
    """What a loop over a binder's set iterates over, and the kind of the elements."""
    if binder.domain is None:
        raise unsupported(binder, "a quantifier or CHOOSE without a set to range over")
    return elements(writer, binder.domain, context, ordered=ordered)


def elements(
    writer: CodeWriter, node: s.Expr, context: Frame, *, ordered: bool = False
) -> tuple[str, Kind]:
    """An atom to iterate over the elements of a set, and their kind."""
    constant = writer.services.elements(node)
    if constant is not None:
        return constant[0].text, constant[1]
    if isinstance(node, s.Builtin) and writer.services.program.meaning(node) is None:
        match node.operator, node.args:
            case "..", (low, high):
                first, last = writer.argument(low, context), writer.argument(high, context)
                text = _interval(first, last)
                # Python forbids := where a comprehension says what it iterates over.
                return (writer.atom(PythonCode(text)).text if ":=" in text else text), "int"
    code = writer.expr(node, context)
    if ordered:
        return writer.atom(PythonCode(f"ordered({code.text})")).text, None
    text = code.text if code.kind in ("set", "lazy") else f"iterate({code.text})"
    return writer.atom(PythonCode(text)).text, None


def _interval(first: PythonCode, last: PythonCode) -> str:
    if first.kind == "int" and last.kind == "int":
        end = str(int(last.text) + 1) if last.text.isdigit() else f"{last.text} + 1"
        return f"range({first.text}, {end})"
    return f"interval({first.text}, {last.text})"


# Jumps


def jump_if_false(writer: CodeWriter, node: s.Argument, context: Frame, jump: Jump) -> None:
    """Code that executes the jump if the formula is false, and goes on if it is true."""
    with writer.emitter.at(node.location):
        match _plain(writer, node):
            case s.Builtin(operator=r"\land", args=parts):
                for part in parts:
                    jump_if_false(writer, part, context, jump)
            case s.Builtin(operator=r"\lnot", args=(part,)):
                jump_if_true(writer, part, context, jump)
            case s.Builtin(operator="=>", args=(left, right)):
                with writer.emitter.block(f"if {writer.truth(left, context).text}:"):
                    jump_if_false(writer, right, context, jump)
            case s.Binding(kind=r"\A"):
                _loop(writer, node, context, jump, every=True)
            case _ if not _descend(writer, node, context, jump, jump_if_false):
                _test(writer, writer.truth(node, context), "not ", jump)
            case _:
                pass


def jump_if_true(writer: CodeWriter, node: s.Argument, context: Frame, jump: Jump) -> None:
    """Code that executes the jump if the formula is true, and goes on if it is false."""
    with writer.emitter.at(node.location):
        match _plain(writer, node):
            case s.Builtin(operator=r"\lor", args=parts):
                for part in parts:
                    jump_if_true(writer, part, context, jump)
            case s.Builtin(operator=r"\land", args=(first, *rest)):
                # Nested, so that what one conjunct computed is known to the next.
                with ExitStack() as stack:
                    _nest(writer, stack, [first, *rest[:-1]], context)
                    jump_if_true(writer, rest[-1] if rest else first, context, jump)
            case s.Builtin(operator=r"\lnot", args=(part,)):
                jump_if_false(writer, part, context, jump)
            case s.Builtin(operator="=>", args=(left, right)):
                jump_if_false(writer, left, context, jump)
                jump_if_true(writer, right, context, jump)
            case s.Binding(kind=r"\E"):
                _loop(writer, node, context, jump, every=False)
            case _ if not _descend(writer, node, context, jump, jump_if_true):
                _test(writer, writer.truth(node, context), "", jump)
            case _:
                pass


def _nest(
    writer: CodeWriter, stack: ExitStack, parts: Sequence[s.Argument], context: Frame
) -> None:
    for part in parts:
        test = writer.truth(part, context)
        stack.enter_context(writer.emitter.block(f"if {test.text}:"))


def _plain(writer: CodeWriter, node: s.Argument) -> s.Argument | None:
    """The node itself unless it is a constant, which is folded, or overridden."""
    assert not isinstance(node, s.OperatorArg)
    if isinstance(node, s.Builtin) and writer.services.program.meaning(node) is not None:
        return None
    return None if writer.services.analysis.of(node).constant else node


def _descend(
    writer: CodeWriter,
    node: s.Argument,
    context: Frame,
    jump: Jump,
    go: Callable[[CodeWriter, s.Argument, Frame, Jump], None],
) -> bool:
    """Jumps within IF, LET and expanded operators; False for what is no such thing."""
    match _plain(writer, node):
        case s.If(condition=condition, then=then, otherwise=otherwise):
            with writer.emitter.block(f"if {writer.truth(condition, context).text}:"):
                go(writer, then, context, jump)
            with writer.emitter.block("else:"):
                go(writer, otherwise, context, jump)
        case s.Let(body=body):
            go(writer, body, writer.let(_let(node), context), jump)
        case s.Call(target=int()):
            result = _expanded(writer, node, context)
            if result is None:
                return False
            go(writer, result[0], result[1], jump)
        case _:
            return False
    return True


def _let(node: s.Argument) -> s.Let:
    assert isinstance(node, s.Let)
    return node


def _expanded(writer: CodeWriter, node: s.Argument, context: Frame) -> tuple[s.Expr, Frame] | None:
    assert isinstance(node, s.Call)
    assert isinstance(node.target, int)
    if node.target in context.env:
        # A LET's formula may be needed again: keep its value.
        return writer.callee(node, context) if node.args else None
    meaning = writer.services.program.meaning(node)
    if isinstance(meaning, s.Definition) and writer.expands(meaning, node.args):
        return writer.callee(node, context)
    return None


def _test(writer: CodeWriter, test: PythonCode, negation: str, jump: Jump) -> None:
    emitter = writer.emitter
    if test.text in ("True", "False"):
        if (test.text == "True") == (negation == ""):
            for statement in jump.statements:
                emitter.line(statement)
        return
    emitter.line(f"if {negation}{test.text}: {'; '.join(jump.statements)}")


def _loop(writer: CodeWriter, node: s.Argument, context: Frame, jump: Jump, *, every: bool) -> None:
    """A jump out of a quantifier's loops."""
    assert isinstance(node, s.Binding)
    go = jump_if_false if every else jump_if_true
    if writer.services.patient:
        _test(writer, writer.truth(node, context), "not " if every else "", jump)
        return
    if jump.returns:
        with all_loops(writer, node.binders, context) as inner:
            go(writer, node.body, inner, jump)
        return
    flag = writer.emitter.fresh("q")
    writer.emitter.line(f"{flag} = False")
    search(
        writer,
        node.binders,
        context,
        f"{flag} = True",
        flag,
        False,
        lambda inner, leave: go(writer, node.body, inner, leave),
    )
    writer.emitter.line(f"if {flag}: {'; '.join(jump.statements)}")


__all__ = [
    "FALSE",
    "TRUE",
    "Jump",
    "all_loops",
    "case",
    "conditional",
    "connective",
    "elements",
    "jump_if_false",
    "jump_if_true",
    "jump_to",
    "quantifier",
]
