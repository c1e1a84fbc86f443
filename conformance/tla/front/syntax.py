"""The syntax tree of TLA+: immutable, resolved, and the only thing that back ends read.

The reader (`conformance.tla.reader`) has already resolved every name and every INSTANCE, so a
back end meets these things only:

* `Number`, `String`: literals.  `Constant`, `Variable`, `Bound`: names, with no argument.
  A `Bound` is whatever a quantifier, a parameter list, `@` or a LAMBDA binds; `uid` is unique
  within the module, so that no two binders clash.
* `Builtin`: every operator of the language and of the standard modules that needs no node of
  its own, by its name (`BUILTINS` lists them), with its operands.
* `Call`: an operator with its arguments. The target is the uid of a `Definition` (look it up in
  `Module.definitions`), or an operator parameter (`Bound`), or a constant operator (`Constant`).
  An argument is an expression, or an `OperatorArg` where the parameter's arity is above zero.
* `Binding`: `\\A`, `\\E`, `CHOOSE`, set filter, set map, function; `If`, `Case`, `Let`, `Apply`,
  `Field`, `Record`, `RecordSet`, `Except`, `RecursiveFunction`; `Opaque` for what no back end
  evaluates.

Definitions refer to each other through their uid, so recursion needs no cycle in the tree.
A LET's definitions may mention the `Bound`s of the scope around the LET; a module-level
definition mentions only its own parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a module: lines and columns count from 1, both ends included."""

    module: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Node:
    """Every node knows its place."""

    location: Location


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An integer literal."""

    value: int


@dataclass(frozen=True, slots=True)
class String(Node):
    """A string literal, without its quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A declared CONSTANT of the root module, used as an expression or as a call's target."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """A declared VARIABLE of the root module, unprimed (a prime is a `Builtin` around it)."""

    name: str


@dataclass(frozen=True, slots=True)
class Bound(Node):
    """A bound identifier or parameter; `arity` is above zero for operator parameters."""

    uid: int
    name: str
    arity: int = 0


_LOGIC = r"TRUE FALSE BOOLEAN STRING \land \lor \lnot => \equiv = /="
_SETS = r"\in \notin \subseteq \union \intersect \ SUBSET UNION DOMAIN \X {} <<>> [->]"
_ACTIONS = r"' UNCHANGED ENABLED [A]_v <<A>>_v \cdot"
_TEMPORAL = r"[] <> ~> -+-> WF SF"
_NUMBERS = r"Nat Int Real + - * / ^ % \div .. < > \leq \geq -."
_SEQUENCES = r"Seq Len \o Append Head Tail SubSeq SelectSeq"
_FINITE_SETS = "IsFiniteSet Cardinality"
_BAGS = (
    r"IsABag BagToSet SetToBag BagIn EmptyBag \oplus \ominus BagUnion \sqsubseteq SubBag BagOfAll "
    r"BagCardinality CopiesIn"
)
_TLC = (
    "Print PrintT Assert JavaTime TLCGet TLCSet :> @@ Permutations SortSeq RandomElement Any "
    "ToString TLCEval"
)
_RANDOMIZATION = "RandomSubset RandomSetOfSubsets TestRandomSetOfSubsets"
_TLC_EXT = (
    "AssertError TLCGetOrDefault TLCGetAndSet Trace CounterExample ToTrace TLCModelValue TLCFP "
    "TLCEvalDefinition TLCCache"
)
_JSON = (
    "ToJson ToJsonArray ToJsonObject JsonSerialize JsonDeserialize ndJsonSerialize "
    "ndJsonDeserialize"
)
_IO_UTILS = (
    "IOEnv atoi zeroPadN IOSerialize IODeserialize Serialize Deserialize IOExec IOEnvExec "
    "IOExecTemplate IOEnvExecTemplate"
)
STANDARD_MODULES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "Naturals": frozenset(_NUMBERS.split()),
        "Integers": frozenset(_NUMBERS.split()),
        "Reals": frozenset(_NUMBERS.split()),
        "Sequences": frozenset(_SEQUENCES.split()),
        "FiniteSets": frozenset(_FINITE_SETS.split()),
        "Bags": frozenset(_BAGS.split()),
        "TLC": frozenset(_TLC.split()),
        "Randomization": frozenset(_RANDOMIZATION.split()),
        "TLCExt": frozenset(_TLC_EXT.split()),
        "Json": frozenset(_JSON.split()),
        "IOUtils": frozenset(_IO_UTILS.split()),
    }
)
"""The operators that are builtins, by the standard module that defines them."""

DEFINED = frozenset[str]().union(*STANDARD_MODULES.values())
"""The builtins that a standard module defines: a configuration can override them, as TLC does."""

_ARITIES = {
    0: "Nat Int Real EmptyBag Any JavaTime Trace CounterExample IOEnv",
    1: "-. Seq Len Head Tail IsFiniteSet Cardinality IsABag BagToSet SetToBag BagUnion SubBag "
    "BagCardinality PrintT TLCGet Permutations RandomElement ToString TLCEval ToTrace "
    "TLCModelValue TLCFP TLCEvalDefinition ToJson ToJsonArray ToJsonObject JsonDeserialize "
    "ndJsonDeserialize atoi IOExec",
    3: "SubSeq RandomSetOfSubsets TestRandomSetOfSubsets IOSerialize Serialize IOEnvExecTemplate",
    4: "TLCGetAndSet",
}
ARITY: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(DEFINED, 2)
    | {name: arity for arity, names in _ARITIES.items() for name in names.split()}
)
"""How many operands each of them takes."""

BUILTINS = DEFINED.union(" ".join((_LOGIC, _SETS, _ACTIONS, _TEMPORAL)).split())
"""The names a `Builtin` can have; SANY's canonical spelling where TLA+ has several
(`\\cup` is `\\union`, `#` is `/=`, `\\circ` is `\\o`, `<=` is `\\leq`). Conjunction and
disjunction are n-ary, `{}` is the enumeration {a, b, ...}, `<<>>` the tuple, `[->]` the set of
functions, `\\X` is n-ary, `-.` is negation, the operands of `WF` and `SF` are (action,
subscript)."""


@dataclass(frozen=True, slots=True)
class Builtin(Node):
    """An operator of the language or of a standard module, applied to its operands."""

    operator: str
    args: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorArg(Node):
    """An operator passed as an argument: a definition's uid (also of a LAMBDA), an operator
    parameter, a constant operator, or the name of a builtin."""

    target: int | Bound | Constant | str


@dataclass(frozen=True, slots=True)
class Call(Node):
    """An application of a defined, bound or constant operator; `name` is for messages."""

    target: int | Bound | Constant
    name: str
    args: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Binder(Node):
    """`x, y \\in S`, or `<<x, y>> \\in S` if `pattern`; no domain: unbounded."""

    names: tuple[Bound, ...]
    domain: Expr | None
    pattern: bool = False


BindingKind = Literal["\\A", "\\E", "CHOOSE", "filter", "map", "function"]


@dataclass(frozen=True, slots=True)
class Binding(Node):
    """`\\A b : e`, `\\E b : e`, `CHOOSE b : e`, `{b : e}`, `{e : b}`, `[b |-> e]`.

    A function of several bound names is a function on tuples, as in TLA+.
    """

    kind: BindingKind
    binders: tuple[Binder, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class If(Node):
    """IF condition THEN then ELSE otherwise."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Case(Node):
    """CASE g1 -> e1 [] g2 -> e2 [] OTHER -> other."""

    arms: tuple[tuple[Expr, Expr], ...]
    other: Expr | None


@dataclass(frozen=True, slots=True)
class Let(Node):
    """LET definitions IN body. The definitions are in `Module.definitions` as well."""

    definitions: tuple[int, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """`f[a]`; `f[a, b]` is `f[<<a, b>>]`."""

    function: Expr
    argument: Expr


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`r.name`."""

    record: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Record(Node):
    """`[a |-> e, ...]`."""

    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class RecordSet(Node):
    """`[a : S, ...]`."""

    fields: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Update(Node):
    """`!path = value`; a path step is an argument of a function (a string for a field).

    `at` is the identifier that stands for `@` in `value`.
    """

    path: tuple[Expr, ...]
    at: Bound
    value: Expr


@dataclass(frozen=True, slots=True)
class Except(Node):
    """`[function EXCEPT update, ...]`, updates applied from left to right."""

    function: Expr
    updates: tuple[Update, ...]


@dataclass(frozen=True, slots=True)
class RecursiveFunction(Node):
    """`f[b] == body` where `body` mentions `f` (as `function`)."""

    function: Bound
    binders: tuple[Binder, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Opaque(Node):
    """What no back end evaluates (reals, temporal quantifiers, ...); `what` names it."""

    what: str


Expr = (
    Number
    | String
    | Constant
    | Variable
    | Bound
    | Builtin
    | Call
    | Binding
    | If
    | Case
    | Let
    | Apply
    | Field
    | Record
    | RecordSet
    | Except
    | RecursiveFunction
    | Opaque
)
Argument = Expr | OperatorArg


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """`name(params) == body`. `name` is as a user writes it, `I!Step` for an instance's.

    `substituted`: the body comes from an INSTANCE with a substitution (TLC looks for named
    actions no further inside such a definition).
    """

    uid: int
    name: str
    params: tuple[Bound, ...]
    body: Expr
    recursive: bool = False
    substituted: bool = False


@dataclass(frozen=True, slots=True)
class Declaration(Node):
    """A CONSTANT (of any arity) or a VARIABLE."""

    name: str
    arity: int = 0


@dataclass(frozen=True, slots=True)
class Assumption(Node):
    """ASSUME body, perhaps with a name."""

    name: str | None
    body: Expr


@dataclass(frozen=True, slots=True)
class Module:
    """A root module with everything it extends or instantiates.

    `operators` maps the names that a configuration or a user can say to definitions.
    `sources` are the files that were read, by module name; standard modules excepted.
    """

    name: str
    path: Path
    constants: tuple[Declaration, ...]
    variables: tuple[Declaration, ...]
    assumptions: tuple[Assumption, ...]
    definitions: Mapping[int, Definition]
    operators: Mapping[str, int]
    sources: Mapping[str, Path]

    def operator(self, name: str) -> Definition | None:
        """The module-level definition of that name, or None."""
        uid = self.operators.get(name)
        return None if uid is None else self.definitions[uid]


def children(node: Argument) -> Sequence[Argument]:
    """The direct subexpressions, in the order of the text; LET definitions are not included."""
    match node:
        case Builtin(args=args) | Call(args=args):
            return args
        case Binding(binders=binders, body=body) | RecursiveFunction(binders=binders, body=body):
            return [*(b.domain for b in binders if b.domain is not None), body]
        case If():
            return node.condition, node.then, node.otherwise
        case Case():
            arms = [part for arm in node.arms for part in arm]
            return arms if node.other is None else [*arms, node.other]
        case Let():
            return (node.body,)
        case Apply():
            return node.function, node.argument
        case Field():
            return (node.record,)
        case Record(fields=fields) | RecordSet(fields=fields):
            return [value for _, value in fields]
        case Except():
            updates = [part for update in node.updates for part in (*update.path, update.value)]
            return [node.function, *updates]
        case _:
            return ()


def walk(node: Argument) -> Iterator[Argument]:
    """The expression and all its subexpressions, outermost first; definitions not entered."""
    ahead = [node]
    while ahead:
        following = ahead.pop()
        yield following
        ahead += reversed(children(following))


def free_names(arguments: Iterable[Argument]) -> tuple[Bound, ...]:
    """The identifiers that the expressions mention and do not bind, each once."""
    free: dict[int, Bound] = {}
    inside: set[int] = set()
    for argument in arguments:
        for node in walk(argument):
            match node:
                case Bound() | OperatorArg(target=Bound()) | Call(target=Bound()):
                    bound = node if isinstance(node, Bound) else node.target
                    if isinstance(bound, Bound):
                        free.setdefault(bound.uid, bound)
                case Binding(binders=binders) | RecursiveFunction(binders=binders):
                    inside.update(name.uid for binder in binders for name in binder.names)
                    if isinstance(node, RecursiveFunction):
                        inside.add(node.function.uid)
                case Except():
                    inside.update(update.at.uid for update in node.updates)
                case _:
                    pass
    return tuple(bound for uid, bound in free.items() if uid not in inside)
