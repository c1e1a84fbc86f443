"""Code of the language's plain operators and of the standard modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from conformance.tla.front import syntax as s
from conformance.tla.python import logic, structures
from conformance.tla.python.protocol import CodeWriter, unsupported
from conformance.tla.python.scope import (
    ATOMS,
    FALSE,
    TRUE,
    BoundVariable,
    Closure,
    Frame,
    Kind,
    PythonCode,
)

_UNARY_NAMES = (
    r"\lnot SUBSET UNION DOMAIN -. Seq Len Head Tail IsFiniteSet Cardinality IsABag BagToSet "
    "SetToBag BagUnion SubBag BagCardinality PrintT ToString TLCEval Permutations TLCGet "
    "RandomElement"
)
UNARY = frozenset(_UNARY_NAMES.split())
"""Operators of one operand, among those that can be passed as an argument."""

_Args = tuple[s.Argument, ...]
_Handler = Callable[["CodeWriter", _Args, Frame], PythonCode]


def builtin(writer: CodeWriter, node: s.Builtin, context: Frame) -> PythonCode:
    """A builtin applied to its operands; overrides of the configuration come first."""
    meaning = writer.services.program.meaning(node)
    if isinstance(meaning, s.Definition):
        return writer.apply_definition(meaning, node.args, context)
    if meaning is not None:
        return writer.services.pool(meaning)
    name = node.operator
    if name in _CALLS:
        function, kind = _CALLS[name]
        texts = [writer.argument(arg, context).text for arg in node.args]
        return PythonCode(f"{function}({', '.join(texts)})", kind)
    if name in _HANDLERS:
        return _HANDLERS[name](writer, node.args, context)
    if name == "ENABLED":
        return writer.services.enabled(writer, writer.expression(node.args[0]), context)
    raise unsupported(node, name)


_CALLS: Mapping[str, tuple[str, Kind]] = MappingProxyType(
    {
        "^": ("power", "int"),
        "%": ("modulo", "int"),
        r"\div": ("divide", "int"),
        "SUBSET": ("Powerset", "lazy"),
        "Seq": ("Sequences", "lazy"),
        "[->]": ("Functions", "lazy"),
        r"\o": ("concat", None),
        "Tail": ("tail", None),
        "Head": ("head", None),
        "SubSeq": ("sub_seq", None),
        "IsFiniteSet": ("is_finite", "bool"),
        "IsABag": ("is_a_bag", "bool"),
        "BagToSet": ("bag_to_set", "set"),
        "SetToBag": ("set_to_bag", None),
        "BagIn": ("bag_in", "bool"),
        r"\oplus": ("bag_sum", None),
        r"\ominus": ("bag_difference", None),
        "BagUnion": ("bag_union", None),
        r"\sqsubseteq": ("sub_bag_of", "bool"),
        "SubBag": ("sub_bags", "set"),
        "BagCardinality": ("bag_cardinality", "int"),
        "CopiesIn": ("copies_in", "int"),
        ":>": ("single", None),
        "@@": ("override", None),
        "Permutations": ("permutation_set", "set"),
        "Assert": ("assertion", "bool"),
        "ToString": ("to_string", "str"),
        "TLCEval": ("value_of", None),
        "Print": ("print_both", None),
        "PrintT": ("print_true", "bool"),
        "JavaTime": ("java_time", "int"),
        "TLCGet": ("tlc_get", None),
        "TLCSet": ("tlc_set", "bool"),
        "RandomElement": ("random_element", None),
        "RandomSubset": ("random_subset", "set"),
        "RandomSetOfSubsets": ("random_set_of_subsets", "set"),
        "TestRandomSetOfSubsets": ("test_random_set_of_subsets", "tuple"),
        "TLCGetOrDefault": ("tlc_get_or", None),
        "TLCModelValue": ("model_value", "model"),
        "ToJson": ("to_json", "str"),
        "ToJsonArray": ("to_json_array", "str"),
        "ToJsonObject": ("to_json_object", "str"),
        "JsonSerialize": ("json_serialize", "bool"),
        "ndJsonSerialize": ("nd_json_serialize", "bool"),
        "JsonDeserialize": ("json_deserialize", None),
        "ndJsonDeserialize": ("nd_json_deserialize", None),
        "IOEnv": ("io_env", "fn"),
        "atoi": ("atoi", "int"),
        "zeroPadN": ("zero_padded", "str"),
    }
)


def _fixed(code: PythonCode) -> _Handler:
    """An operator without operands, whose code is always the same."""

    def handler(_writer: CodeWriter, _args: _Args, _context: Frame) -> PythonCode:
        return code

    return handler


def _and(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return logic.connective(writer, "and", args, context)


def _or(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return logic.connective(writer, "or", args, context)


def _not(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return PythonCode(f"(not {writer.truth(args[0], context).text})", "bool")


def _implies(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    negated = s.Builtin(args[0].location, r"\lnot", (args[0],))
    return logic.connective(writer, "or", (negated, args[1]), context)


def _equiv(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    left, right = (writer.truth(arg, context).text for arg in args)
    return PythonCode(
        f"({left} is {right})" if "(" not in left + right else f"({left} == {right})", "bool"
    )


def _equal(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return equality(writer, writer.argument(args[0], context), writer.argument(args[1], context))


def _not_equal(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return PythonCode(f"(not {_equal(writer, args, context).text})", "bool")


def equality(writer: CodeWriter, left: PythonCode, right: PythonCode) -> PythonCode:
    """left = right; inline where the kinds are known to be the same."""
    if left.kind == right.kind and left.kind not in (None, "lazy"):
        plain = left.kind in ATOMS or writer.services.empty(left) or writer.services.empty(right)
        test = f"({left.text} == {right.text})" if plain else f"same({left.text}, {right.text})"
        return PythonCode(test, "bool")
    for code, other in ((left, right), (right, left)):
        python = _CLASSES.get(code.kind or "")
        if python is not None and other.kind is None and code.atom:
            first, name = writer.named(other)
            test = f"{first}.__class__ is {python}"
            plain = code.kind in ATOMS or writer.services.empty(code)
            fast = f"{name} == {code.text}" if plain else f"same({name}, {code.text})"
            slow = f"eq({name}, {code.text})"
            return PythonCode(f"({fast} if {test} else {slow})", "bool")
    return PythonCode(f"eq({left.text}, {right.text})", "bool")


_CLASSES = {"int": "int", "str": "str", "bool": "bool", "set": "frozenset", "fn": "Fn"}


def _in(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return membership(writer, writer.argument(args[0], context), args[1], context)


def _not_in(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return PythonCode(f"(not {_in(writer, args, context).text})", "bool")


def membership(
    writer: CodeWriter, item: PythonCode, node: s.Argument, context: Frame
) -> PythonCode:
    """item \\in node."""
    analysis, program = writer.services.analysis, writer.services.program
    if isinstance(node, s.Builtin) and not analysis.of(node).constant:
        match node.operator, node.args:
            case "..", (low, high) if program.meaning(node) is None:
                first, last = writer.argument(low, context), writer.argument(high, context)
                if item.kind == first.kind == last.kind == "int":
                    return PythonCode(f"({first.text} <= {item.text} <= {last.text})", "bool")
                return PythonCode(f"in_interval({item.text}, {first.text}, {last.text})", "bool")
            case "{}", (only,):
                return equality(writer, item, writer.argument(only, context))
            case _:
                pass
    elements = writer.argument(node, context)
    rule = False
    if not isinstance(node, s.OperatorArg) and analysis.of(node).constant and item.kind != "lazy":
        rule = elements.kind == "lazy"
        constant = writer.services.elements(node)
        kind = constant[1] if constant is not None else None
        if kind == "model" or (kind in ATOMS and kind == item.kind):
            return PythonCode(f"({item.text} in {elements.text})", "bool")
        python = _CLASSES.get(kind or "")
        if item.atom and item.kind is None and python is not None and kind in ATOMS:
            x, of = item.text, elements.text
            return PythonCode(
                f"({x} in {of} if {x}.__class__ is {python} else member({x}, {of}))", "bool"
            )
    if rule:
        return PythonCode(f"({item.text} in {elements.text})", "bool")
    return PythonCode(f"member({item.text}, {elements.text})", "bool")


def _subset(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    left, right = (writer.argument(arg, context) for arg in args)
    if left.kind == right.kind == "set":
        return PythonCode(f"is_subset({left.text}, {right.text})", "bool")
    return PythonCode(f"subset({left.text}, {right.text})", "bool")


def _set_operator(function: str, operator: str) -> _Handler:
    def handler(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
        left, right = (writer.argument(arg, context) for arg in args)
        if left.kind == right.kind == "set":
            return PythonCode(f"{function}({left.text}, {right.text})", "set")
        a, b = left.text, right.text
        slow = f"set_operation({operator!r}, {a}, {b})"
        kind: Kind = "lazy"
        if left.kind == "set" and right.kind is None and right.atom:
            return PythonCode(
                f"({function}({a}, {b}) if {b}.__class__ is frozenset else {slow})", "set"
            )
        if left.kind is None and right.kind == "set" and left.atom:
            return PythonCode(
                f"({function}({a}, {b}) if {a}.__class__ is frozenset else {slow})", "set"
            )
        if "lazy" not in (left.kind, right.kind):
            kind = "set"
        return PythonCode(slow, kind)

    return handler


def _big_union(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    """UNION; UNION {S} is S, which may be infinite, as in TLC. Of two sets TLC must tell first
    whether they are one, so that both are enumerated."""
    match args[0]:
        case s.Builtin(operator="{}", args=(only,)):
            return PythonCode(f"union_of([{writer.argument(only, context).text}])", "lazy")
        case s.Binding(kind="map") as images:
            return PythonCode(
                f"union_of({structures.listed_images(writer, images, context)})", "lazy"
            )
        case sets:
            return PythonCode(f"big_union({writer.argument(sets, context).text})", "lazy")


def _domain(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    code = writer.argument(args[0], context)
    return PythonCode(f"domain({code.text})", "lazy" if code.kind == "lazy" else "set")


def _product(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    texts = [writer.argument(arg, context).text for arg in args]
    return PythonCode(f"Product([{', '.join(texts)}])", "lazy")


def _enumeration(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    codes = [writer.value(arg, context) for arg in args]
    kinds = {code.kind for code in codes}
    alike = len(codes) < 2 or (len(kinds) == 1 and kinds <= ATOMS)
    texts = ", ".join(code.text for code in codes)
    return PythonCode(f"{'frozenset' if alike else 'set_of'}([{texts}])", "set")


def _tuple(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    texts = [writer.value(arg, context).text for arg in args]
    if not texts:
        return PythonCode("()", "tuple", atom=True)
    return PythonCode(f"({', '.join(texts)},)", "tuple")


def _interval(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    low, high = (writer.argument(arg, context).text for arg in args)
    return PythonCode(f"frozenset(interval({low}, {high}))", "set")


def _arithmetic(symbol: str, function: str) -> _Handler:
    def handler(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
        left, right = (writer.argument(arg, context) for arg in args)
        if left.kind == "int" and right.kind == "int":
            return PythonCode(f"({left.text} {symbol} {right.text})", "int")
        fast = _with_integer(writer, left, right, symbol, f"{function}({{}}, {{}})")
        return PythonCode(fast or f"{function}({left.text}, {right.text})", "int")

    return handler


def _comparison(symbol: str, function: str, *, swap: bool) -> _Handler:
    slow = f"{function}({{1}}, {{0}})" if swap else f"{function}({{0}}, {{1}})"

    def handler(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
        left, right = (writer.argument(arg, context) for arg in args)
        if left.kind == "int" and right.kind == "int":
            return PythonCode(f"({left.text} {symbol} {right.text})", "bool")
        fast = _with_integer(writer, left, right, symbol, slow)
        return PythonCode(fast or slow.format(left.text, right.text), "bool")

    return handler


def _with_integer(
    writer: CodeWriter, left: PythonCode, right: PythonCode, symbol: str, slow: str
) -> str | None:
    """The operation inline, where one operand is an integer at hand; None otherwise."""
    if left.kind == "int" and left.atom and right.kind is None:
        first, name = writer.named(right)
        pair = (left.text, name)
    elif right.kind == "int" and right.atom and left.kind is None:
        first, name = writer.named(left)
        pair = (name, right.text)
    else:
        return None
    fast = f"{pair[0]} {symbol} {pair[1]}"
    return f"({fast} if {first}.__class__ is int else {slow.format(*pair)})"


def _negate(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return PythonCode(f"subtract(0, {writer.argument(args[0], context).text})", "int")


def _length(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    code = writer.argument(args[0], context)
    if code.kind == "tuple":
        return PythonCode(f"len({code.text})", "int")
    if code.atom and code.kind is None:
        t = code.text
        return PythonCode(f"(len({t}) if {t}.__class__ is tuple else length({t}))", "int")
    return PythonCode(f"length({code.text})", "int")


def _append(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    sequence, item = writer.argument(args[0], context), writer.value(args[1], context)
    kind = "tuple" if sequence.kind == "tuple" else None  # of a string it is a string
    return PythonCode(f"append({sequence.text}, {item.text})", kind)


def _cardinality(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    code = writer.argument(args[0], context)
    if code.kind == "set":
        return PythonCode(f"len({code.text})", "int")
    return PythonCode(f"size({code.text})", "int")


def _select_seq(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    sequence = writer.atom(writer.argument(args[0], context))
    operator = writer.operator(args[1], context)
    text, item = writer.emitter.fresh("s"), writer.emitter.fresh("i")
    writer.emitter.line(f"{text} = []")
    bound = s.Bound(args[1].location, -1, item)
    with writer.emitter.block(f"for {item} in items({sequence.text}):", loop=True):
        inner = context.bind({-1: BoundVariable(PythonCode(item, None, atom=True))})
        if isinstance(operator, Closure):
            operator = Closure(operator.definition, operator.context.bind({}))
        test = writer.checked(writer.apply_operator(operator, (bound,), bound.location, inner))
        writer.emitter.line(f"if {test.text}: {text}.append({item})")
    return PythonCode(f"tuple({text})", "tuple")


def _sort_seq(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    sequence = writer.atom(writer.argument(args[0], context))
    return PythonCode(f"sort_seq({sequence.text}, {writer.callable(args[1], context)})", "tuple")


def _bag_of_all(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    function = writer.callable(args[0], context)
    return PythonCode(f"bag_of_all({function}, {writer.argument(args[1], context).text})")


def _tlc_cache(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    expression, closure = args
    key = writer.argument(closure, context).text
    compute = writer.emitter.fresh("g")
    with writer.function(f"def {compute}():"):
        writer.emitter.line(f"return {writer.argument(expression, context).text}")
    return PythonCode(f"tlc_cache({str(expression.location)!r}, {key}, {compute})")


def _tlc_get_and_set(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    register, operator, value, default = args
    passed = [
        writer.argument(register, context).text,
        writer.callable(operator, context),
        writer.argument(value, context).text,
        writer.argument(default, context).text,
    ]
    return PythonCode(f"tlc_get_and_set({', '.join(passed)})")


def _prime(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return writer.argument(args[0], context.within(context.env, primed=True))


def _unchanged(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    return unchanged(writer, args[0], context)


def unchanged(writer: CodeWriter, node: s.Argument, context: Frame) -> PythonCode:
    """UNCHANGED e as a formula; of a tuple, part by part."""
    if isinstance(node, s.Builtin) and node.operator == "<<>>":
        if not node.args:
            return TRUE
        parts = [unchanged(writer, part, context).text for part in node.args]
        return PythonCode(f"({' and '.join(parts)})", "bool")
    assert not isinstance(node, s.OperatorArg)
    if isinstance(node, s.Call | s.Bound):
        callee = writer.callee(node, context)
        if callee is not None and isinstance(callee[0], s.Builtin | s.Variable):
            return unchanged(writer, callee[0], callee[1])
    old = writer.atom(writer.expr(node, context))
    new = writer.atom(writer.expr(node, context.within(context.env, primed=True)))
    return PythonCode(f"({old.text} is {new.text} or eq({new.text}, {old.text}))", "bool")


def _square(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    same = s.Builtin(args[1].location, "UNCHANGED", (args[1],))
    return logic.connective(writer, "or", (args[0], same), context)


def _angle(writer: CodeWriter, args: _Args, context: Frame) -> PythonCode:
    same = s.Builtin(args[1].location, "UNCHANGED", (args[1],))
    changed = s.Builtin(args[1].location, r"\lnot", (same,))
    return logic.connective(writer, "and", (args[0], changed), context)


_HANDLERS: Mapping[str, _Handler] = MappingProxyType(
    {
        "TRUE": _fixed(TRUE),
        "FALSE": _fixed(FALSE),
        "BOOLEAN": _fixed(PythonCode("BOOLEAN", "set", atom=True)),
        "STRING": _fixed(PythonCode("STRING", "lazy", atom=True)),
        "Nat": _fixed(PythonCode("NAT", "lazy", atom=True)),
        "Int": _fixed(PythonCode("INT", "lazy", atom=True)),
        "Any": _fixed(PythonCode("ANY", "lazy", atom=True)),
        r"\land": _and,
        r"\lor": _or,
        r"\lnot": _not,
        "=>": _implies,
        r"\equiv": _equiv,
        "=": _equal,
        "/=": _not_equal,
        r"\in": _in,
        r"\notin": _not_in,
        r"\subseteq": _subset,
        r"\union": _set_operator("union", r"\union"),
        r"\intersect": _set_operator("intersection", r"\intersect"),
        "\\": _set_operator("difference", "\\"),
        "UNION": _big_union,
        "DOMAIN": _domain,
        r"\X": _product,
        "{}": _enumeration,
        "<<>>": _tuple,
        "..": _interval,
        "+": _arithmetic("+", "add"),
        "-": _arithmetic("-", "subtract"),
        "*": _arithmetic("*", "multiply"),
        "<": _comparison("<", "less", swap=False),
        ">": _comparison(">", "less", swap=True),
        r"\leq": _comparison("<=", "at_most", swap=False),
        r"\geq": _comparison(">=", "at_most", swap=True),
        "-.": _negate,
        "Len": _length,
        "Append": _append,
        "Cardinality": _cardinality,
        "SelectSeq": _select_seq,
        "SortSeq": _sort_seq,
        "BagOfAll": _bag_of_all,
        "EmptyBag": _fixed(PythonCode("()", "tuple", atom=True)),
        "TLCGetAndSet": _tlc_get_and_set,
        "TLCCache": _tlc_cache,
        "'": _prime,
        "UNCHANGED": _unchanged,
        "[A]_v": _square,
        "<<A>>_v": _angle,
    }
)

SUPPORTED = frozenset(_CALLS) | frozenset(_HANDLERS) | {"ENABLED"}
"""The builtins that the Python evaluator has."""
