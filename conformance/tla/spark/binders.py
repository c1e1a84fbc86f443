"""What binds names: quantifiers, CHOOSE, set constructors and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.tla.front import syntax as s
from conformance.tla.spark import functions
from conformance.tla.spark.candidates import static_candidates
from conformance.tla.spark.choice import choose
from conformance.tla.spark.columns import NotFinite, as_listed, function
from conformance.tla.spark.environment import Environment, rigid
from conformance.tla.spark.equality import equals
from conformance.tla.spark.formulas import (
    Formula,
    conjoin,
)
from conformance.tla.spark.protocol import TermCompiler
from conformance.tla.spark.quantifiers import quantify
from conformance.tla.spark.terms import (
    BigUnion,
    Boolean,
    FilteredTerm,
    FunctionOf,
    Image,
    KnownTerm,
    ProductTerm,
    Term,
    bare,
    guarded,
    guarded_formula,
    merge,
)
from conformance.tla.values import Value


def binding(compiler: TermCompiler, node: s.Binding, names: Environment) -> Term:
    """A quantifier, a CHOOSE, a set or a function over bound names."""
    for binder in node.binders:
        if binder.domain is None:
            raise compiler.unsupported(node, f"an unbounded {node.kind}")
    match node.kind:
        case "\\A" | "\\E":
            neutral = node.kind == "\\A"
            pairs = _flattened(node.binders)
            return Boolean(_quantified(compiler, pairs, node.body, names, neutral))
        case "CHOOSE":
            binder = node.binders[0]
            domain = _domain(compiler, binder, names)
            cause = compiler.cause(node.location, "no element satisfies the condition of CHOOSE")
            return choose(
                compiler.scope, domain, _predicate(compiler, binder, node.body, names), cause
            )
        case "filter":
            binder = node.binders[0]
            base = _domain(compiler, binder, names)
            return FilteredTerm(base, _predicate(compiler, binder, node.body, names), base.guards)
        case "map":
            return _map(compiler, _flattened(node.binders), node.body, names)
        case "function":
            return _function(compiler, node, names)


def _domain(compiler: TermCompiler, binder: s.Binder, names: Environment) -> Term:
    assert binder.domain is not None
    return compiler.term(binder.domain, names)


def _predicate(
    compiler: TermCompiler, binder: s.Binder, body: s.Expr, names: Environment
) -> Callable[[Term], Formula]:
    return lambda item: compiler.formula(body, _bind(compiler, binder, item, names))


def _bind(compiler: TermCompiler, binder: s.Binder, item: Term, names: Environment) -> Environment:
    if not binder.pattern:
        return names.having({binder.names[0].uid: rigid(item)})
    cause = compiler.cause(binder.location, "a tuple of another length")
    scope, numbers = compiler.scope, range(1, len(binder.names) + 1)
    fits = equals(scope, functions.domain(scope, item), KnownTerm(frozenset(numbers)))
    guards = functions.required(fits, cause)
    parts = {
        name.uid: rigid(guarded(functions.apply(scope, item, KnownTerm(number), cause), guards))
        for number, name in zip(numbers, binder.names, strict=True)
    }
    return names.having(parts)


def _quantified(
    compiler: TermCompiler,
    pairs: Sequence[s.Binder],
    body: s.Expr,
    names: Environment,
    neutral: bool,
) -> Formula:
    """All sets are evaluated first: one that is undefined counts even if another is empty."""
    domains = [_domain(compiler, binder, names) for binder in pairs]

    def level(index: int, inner: Environment) -> Formula:
        if index == len(pairs):
            return compiler.formula(body, inner)
        binder, domain = pairs[index], domains[index]
        return quantify(
            compiler.scope,
            bare(domain),
            lambda x: level(index + 1, _bind(compiler, binder, x, inner)),
            neutral=neutral,
            in_order=_in_order(compiler, binder, domain),
        )

    return guarded_formula(level(0, names), merge(*(domain.guards for domain in domains)))


def _in_order(compiler: TermCompiler, binder: s.Binder, domain: Term) -> bool:
    """Whether TLC is known to take the elements in our order, as the evaluator judges it too."""
    node = binder.domain
    assert node is not None
    if isinstance(node, s.Builtin) and node.operator == "..":
        return compiler.program.meaning(node) is None
    if not compiler.analysis.of(node).constant or not isinstance(domain, KnownTerm):
        return False
    return isinstance(domain.value, frozenset) and all(isinstance(x, int) for x in domain.value)


def _map(
    compiler: TermCompiler, pairs: Sequence[s.Binder], body: s.Expr, names: Environment
) -> Term:
    binder, rest = pairs[0], pairs[1:]
    domain = _domain(compiler, binder, names)

    def image(item: Term) -> Term:
        inner = _bind(compiler, binder, item, names)
        return _map(compiler, rest, body, inner) if rest else compiler.term(body, inner)

    made = Image(domain, image, domain.guards)
    return BigUnion(made) if rest else made


def _function(compiler: TermCompiler, node: s.Binding, names: Environment) -> Term:
    pairs = _flattened(node.binders)
    domains = [_domain(compiler, binder, names) for binder in pairs]
    domain = domains[0] if len(domains) == 1 else ProductTerm(tuple(domains))

    def result(argument: Term) -> Term:
        return compiler.term(node.body, _arguments(compiler, pairs, argument, names))

    return _function_on(compiler, domain, result)


def _arguments(
    compiler: TermCompiler, pairs: Sequence[s.Binder], argument: Term, names: Environment
) -> Environment:
    if len(pairs) == 1:
        return _bind(compiler, pairs[0], argument, names)
    listed = as_listed(argument)
    if listed is None:
        raise NotFinite("\\X")
    for binder, item in zip(pairs, listed.items, strict=True):
        names = _bind(compiler, binder, item, names)
    return names


def _function_on(compiler: TermCompiler, domain: Term, result: Callable[[Term], Term]) -> Term:
    static = static_candidates(compiler.scope, domain)
    if static is not None and all(
        isinstance(item, KnownTerm) and condition == conjoin([]) for condition, item in static[0]
    ):
        entries = [
            (item.value, result(item)) for _, item in static[0] if isinstance(item, KnownTerm)
        ]
        return function(entries, static[1])
    return FunctionOf(domain, result, domain.guards)


def recursive_function(
    compiler: TermCompiler, node: s.RecursiveFunction, names: Environment
) -> Term:
    """f[x \\in S] == e over a known domain: a result may use those before it."""
    pairs = _flattened(node.binders)
    domains = [_domain(compiler, binder, names) for binder in pairs]
    domain = domains[0] if len(domains) == 1 else ProductTerm(tuple(domains))
    results: dict[Value, Term] = {}

    def result(argument: Term) -> Term:
        if not isinstance(argument, KnownTerm):
            raise compiler.unsupported(node, "a recursive function of a computed argument")
        if argument.value not in results:
            results[argument.value] = functions.settled(
                compiler.scope,
                compiler.term(node.body, _arguments(compiler, pairs, argument, inner)),
            )
        return results[argument.value]

    inner = names.having({node.function.uid: rigid(FunctionOf(domain, result))})
    return _function_on(compiler, domain, result)


def _flattened(binders: Sequence[s.Binder]) -> list[s.Binder]:
    """One binder per name, or per pattern."""
    flat: list[s.Binder] = []
    for binder in binders:
        if binder.pattern:
            flat.append(binder)
        else:
            flat += [s.Binder(name.location, (name,), binder.domain) for name in binder.names]
    return flat
