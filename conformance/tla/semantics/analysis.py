"""What an expression depends on: variables, primes, bound names, through the operators it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from conformance.tla.front import syntax as s

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Facts:
    """`free` are the uids of the bound names that the expression mentions but does not bind."""

    variables: frozenset[str] = frozenset()
    free: frozenset[int] = frozenset()
    calls: frozenset[int] = frozenset()
    primes: bool = False
    impure: frozenset[str] = frozenset()
    """What of it depends on more than the state, or does more than give a value: of `IMPURE`."""
    size: int = 1

    @property
    def timeless(self) -> bool:
        """The same in all states and steps: the bound names that it mentions decide alone."""
        return not self.variables and not self.primes and not self.impure

    @property
    def constant(self) -> bool:
        """Neither variables nor bound names: one value for the whole specification."""
        return self.timeless and not self.free


_RANDOM = "RandomElement RandomSubset RandomSetOfSubsets TestRandomSetOfSubsets"
_SHOWING = "Print PrintT JsonSerialize ndJsonSerialize"
_REMEMBERING = "TLCGet TLCSet TLCGetOrDefault TLCGetAndSet JavaTime"

RANDOM = frozenset(_RANDOM.split())
"""The operators that draw at random."""

IMPURE = RANDOM.union(_SHOWING.split(), _REMEMBERING.split())
"""The operators that show or remember something, or whose value depends on more than the state."""

RECURSIVE = "RECURSIVE"
"""Beside `IMPURE`: a name that stands for itself, so that no value of it is computed ahead."""

_ACTION_OPERATORS = frozenset(["'", "UNCHANGED", "[A]_v", "<<A>>_v"])


class Analysis:
    """Facts of expressions and definitions, each found once.

    `resolve` gives the definition that a call or constant stands for, after the
    configuration's overrides, or None for what has a plain value. `of_module` are the definitions
    that stand in no LET.
    """

    def __init__(
        self,
        definition: Callable[[int], s.Definition],
        resolve: Callable[[s.Argument], int | None],
        of_module: frozenset[int],
    ) -> None:
        self._definition = definition
        self._resolve = resolve
        self._of_module = of_module
        self._asked: set[int] = set()
        self._own: dict[int, tuple[s.Argument, Facts]] = {}
        self._reached: dict[frozenset[int], frozenset[int]] = {}
        self._called: dict[frozenset[int], Facts] = {}
        self._whole: dict[int, tuple[s.Argument, Facts]] = {}
        self._defined: dict[int, Facts] = {}
        self._strict: dict[int, frozenset[int]] = {}
        self._primed_params: dict[int, frozenset[int]] = {}

    def of(self, node: s.Argument) -> Facts:
        """The facts of an expression, those of the operators it calls included."""
        entry = self._whole.get(id(node))
        if entry is None:
            own = self._direct(node)
            entry = self._whole[id(node)] = (node, self._with_calls(own))
        return entry[1]

    def of_definition(self, uid: int) -> Facts:
        """The facts of a definition's body; its own parameters are not free."""
        if uid not in self._defined:
            definition = self._definition(uid)
            body = self._with_calls(self._direct(definition.body))
            params = frozenset(param.uid for param in definition.params)
            self._defined[uid] = replace(body, free=body.free - params)
        return self._defined[uid]

    def drawn_once(self, node: s.Argument) -> s.Definition | None:
        """The definition that a name stands for, if its value is drawn at random.

        TLC evaluates a module's constants once, before it looks for states
        (SpecProcessor.processConstantDefns): whoever names the definition gets the same value.
        """
        target = self._resolve(node)
        if target is None or target not in self._of_module:
            return None
        definition = self._definition(target)
        if definition.params or definition.recursive or target in self._asked:
            return None
        self._asked.add(target)  # named within itself, through others: a recursion
        try:
            facts = self.of_definition(target)
        finally:
            self._asked.remove(target)
        random = bool(facts.impure) and facts.impure <= RANDOM
        fixed = not facts.variables and not facts.free and not facts.primes
        return definition if random and fixed and not self.recursive(target) else None

    def recursive(self, uid: int) -> bool:
        """Whether the definition calls itself, directly or through others."""
        return uid in self._reachable(self._direct(self._definition(uid).body).calls)

    def primed_names(self, uid: int) -> frozenset[int]:
        """The bound names that occur under a prime (or UNCHANGED, ENABLED) in the body."""
        if uid not in self._primed_params:
            self._primed_params[uid] = frozenset()  # a recursive call adds nothing
            self._primed_params[uid] = self._primed(self._definition(uid).body)
        return self._primed_params[uid]

    def _primed(self, node: s.Argument) -> frozenset[int]:
        result: set[int] = set()
        for part in s.walk(node):
            if isinstance(part, s.Builtin) and part.operator in (*_ACTION_OPERATORS, "ENABLED"):
                for arg in part.args:
                    result |= self.of(arg).free
            elif isinstance(part, s.Call):
                target = self._resolve(part)
                if target is not None and self.primed_names(target):
                    for arg in part.args:
                        result |= self.of(arg).free
        return frozenset(result)

    def strict(self, node: s.Argument) -> frozenset[int]:
        """The bound names that are evaluated whenever the expression is."""
        none: frozenset[int] = frozenset()
        match node:
            case s.Bound(uid=uid):
                return frozenset([uid])
            case s.Builtin(operator=r"\land" | r"\lor" | "=>" | "[A]_v" | "<<A>>_v", args=args):
                return self.strict(args[0]) if args else none
            case s.Builtin(operator="ENABLED" | "'" | "UNCHANGED" | "Print" | "PrintT"):
                return none
            case s.If():
                both = self.strict(node.then) & self.strict(node.otherwise)
                return self.strict(node.condition) | both
            case s.Case():
                return self.strict(node.arms[0][0])
            case s.Binding(binders=binders):
                return none.union(*(self.strict(b.domain) for b in binders if b.domain is not None))
            case s.Let(body=body):
                return self.strict(body)
            case s.Except(function=function, updates=updates):
                return self.strict(function) | self.strict(updates[0].path[0])
            case s.Call(args=args):
                return self._strict_call(node, args)
            case s.Builtin() | s.Apply() | s.Field() | s.Record() | s.RecordSet():
                return none.union(*map(self.strict, s.children(node)))
            case _:
                return none

    def _strict_call(self, node: s.Call, args: tuple[s.Argument, ...]) -> frozenset[int]:
        target = self._resolve(node)
        if target is None:
            return frozenset()
        params = self._definition(target).params
        needed = self.strict_params(target)
        pairs = zip(params, args, strict=True)
        return frozenset().union(*(self.strict(arg) for p, arg in pairs if p.uid in needed))

    def strict_params(self, uid: int) -> frozenset[int]:
        """The parameters that a definition evaluates in any case."""
        if uid not in self._strict:
            self._strict[uid] = frozenset()  # of a recursive call nothing is presumed
            self._strict[uid] = self.strict(self._definition(uid).body)
        return self._strict[uid]

    def reached(self, node: s.Argument) -> frozenset[int]:
        """The definitions that the value of an expression may depend on."""
        return self._reachable(self._direct(node).calls)

    def _reachable(self, calls: frozenset[int]) -> frozenset[int]:
        entry = self._reached.get(calls)
        if entry is None:
            seen: set[int] = set()
            todo = list(calls)
            while todo:
                uid = todo.pop()
                if uid not in seen:
                    seen.add(uid)
                    todo += self._direct(self._definition(uid).body).calls
            entry = self._reached[calls] = frozenset(seen)
        return entry

    def _with_calls(self, own: Facts) -> Facts:
        if not own.calls:
            return own
        called = self._of_calls(own.calls)
        return Facts(
            own.variables | called.variables,
            own.free | called.free,
            own.calls,
            own.primes or called.primes,
            own.impure | called.impure,
            own.size,
        )

    def _of_calls(self, calls: frozenset[int]) -> Facts:
        """The facts of the bodies of these definitions, and of all that they call."""
        facts = self._called.get(calls)
        if facts is None:
            facts = self._called[calls] = self._together(self._reachable(calls))
        return facts

    def _together(self, uids: Iterable[int]) -> Facts:
        variables: set[str] = set()
        free: set[int] = set()
        primes = False
        impure: set[str] = set()
        for uid in uids:
            definition = self._definition(uid)
            body = self._direct(definition.body)
            variables |= body.variables
            # A LET's operator may mention names of the scope around the LET.
            free |= body.free - {param.uid for param in definition.params}
            primes = primes or body.primes
            impure |= body.impure
        return Facts(frozenset(variables), frozenset(free), primes=primes, impure=frozenset(impure))

    def _direct(self, node: s.Argument) -> Facts:
        entry = self._own.get(id(node))
        if entry is None:
            entry = self._own[id(node)] = (node, self._compute(node))
        return entry[1]

    def _compute(self, node: s.Argument) -> Facts:
        parts = [self._direct(child) for child in s.children(node)]
        variables: frozenset[str] = _union([part.variables for part in parts])
        free: frozenset[int] = _union([part.free for part in parts])
        calls: frozenset[int] = _union([part.calls for part in parts])
        primes = any(part.primes for part in parts)
        impure: frozenset[str] = _union([part.impure for part in parts])
        size = 1 + sum([part.size for part in parts])
        target = self._resolve(node)
        if target is not None and self.drawn_once(node) is None:
            calls |= {target}
            definition = self._definition(target)
            if definition.recursive and not definition.params:
                impure |= {RECURSIVE}
        match node:
            case s.Variable(name=name):
                variables = frozenset([name])
            case s.Bound(uid=uid):
                free |= {uid}
            case s.Call(target=s.Bound(uid=uid)) | s.OperatorArg(target=s.Bound(uid=uid)):
                free |= {uid}
            case s.Builtin(operator="ENABLED", args=(action,)):
                # The primes of an ENABLED are its own: it is a formula of one state.
                whole = self._with_calls(self._direct(action))
                variables, free, calls, primes = whole.variables, whole.free, frozenset(), False
                impure = whole.impure
            case s.Builtin(operator="TLCEval", args=(arg,)) if not variables and not free:
                # As in TLC, a constant once and for all, though it be drawn at random.
                impure = self._with_calls(self._direct(arg)).impure - RANDOM
                calls = frozenset()
            case s.Builtin(operator=operator) | s.OperatorArg(target=str(operator)):
                primes = primes or operator in _ACTION_OPERATORS
                impure |= {operator} & IMPURE
            case s.Binding(binders=binders):
                free -= _names(binders)
            case s.RecursiveFunction(binders=binders, function=function):
                free -= _names(binders) | {function.uid}
            case s.Let(definitions=definitions):
                for uid in definitions:
                    definition = self._definition(uid)
                    body = self._direct(definition.body)
                    variables |= body.variables
                    free |= body.free - {param.uid for param in definition.params}
                    calls |= body.calls
                    primes = primes or body.primes
                    impure |= body.impure
                calls -= set(definitions)
            case s.Except(updates=updates):
                free -= {update.at.uid for update in updates}
            case _:
                pass
        return Facts(variables, free, calls, primes, impure, size)


def _union(sets: list[frozenset[_T]]) -> frozenset[_T]:
    """Of all; most are empty or the same, and a specification has thousands of such lists."""
    result: frozenset[_T] = frozenset()
    for item in sets:
        if item and item is not result:
            result = result | item if result else item
    return result


def _names(binders: tuple[s.Binder, ...]) -> set[int]:
    return {name.uid for binder in binders for name in binder.names}
