"""Random actions of three variables, put to TLC and to our search: `python -m` this module.

An action gives each variable a value in one of the ways that TLC knows, directly or through
parameters, LET, higher-order and RECURSIVE operators; what it reads has a value by then. With
`--careless P` it forgets or misplaces an assignment with that probability, and then has no
successors in either engine, but an error in both.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from conformance.errors import UserError
from conformance.tla import State
from conformance.tla.search import problem_of, search
from tests.differential.tla.against_tlc import Workspace, write_workspace

Choice = TypeVar("Choice")

VARIABLES = ("x", "y", "z")
COMPARED = ["=", "#", "<", "<="]
CONNECTED = ["/\\", "\\/", "=>", "<=>"]
QUANTIFIERS = ["\\A", "\\E"]
INIT = "x \\in 0..1 /\\ y = 1 /\\ z \\in {0, 2}"
OPERATORS = r"""
Add(a, b) == (a + b) % 3
Small(a) == a < 1 \/ a = 1
Is(p, e) == p = e
In(p, S) == p' \in S
Apply(Op(_), a) == Op(a)
xNext == x'
yNext == y'
zNext == z'
Table == [i \in 0..2 |-> 2 - i]
RECURSIVE Times(_, _, _)
Times(Op(_), a, n) == IF n = 0 THEN Op(a) ELSE Times(Op, Add(a, 1), n - 1)
RECURSIVE Again(_, _, _)
Again(p, e, n) == IF n = 0 THEN p = e ELSE p \in {n, e} /\ Again(p, e, n - 1)
RECURSIVE Guard(_)
Guard(n) == n = 0 \/ n # 1 \/ (n > 0 /\ Guard(n - 1))
RECURSIVE Every(_, _)
Every(P(_), S) ==
    IF S = {} THEN TRUE ELSE LET e == CHOOSE e \in S : TRUE IN P(e) /\ Every(P, S \ {e})
"""

Known = tuple[str, ...]
"""The variables whose primes have values."""


class Actions:
    """Writes actions: `action(depth)` gives one."""

    def __init__(self, seed: int, careless: float = 0) -> None:
        self._random = random.Random(seed)
        self._careless = careless
        self._bound: list[str] = []
        self._names = 0

    def action(self, depth: int) -> str:
        """An action that gives all variables a value."""
        return self._act((), VARIABLES, depth)

    # --- actions --------------------------------------------------------------------------

    def _act(self, known: Known, missing: Sequence[str], depth: int) -> str:
        """A formula after which the missing variables have values."""
        todo = self._random.sample(list(missing), len(missing))
        if not todo:
            return self._boolean(known, depth)
        if depth <= 0:
            return self._assign(known, todo, 0)
        d = depth - 1

        def act() -> str:
            return self._act(known, todo, d)

        templates: list[Callable[[], str]] = [
            *[lambda: self._conjunction(known, todo, d)] * 4,
            *[lambda: f"({act()} \\/ {act()})"] * 2,
            lambda: f"({self._boolean(known, d)} /\\ {act()})",
            lambda: f"(IF {self._boolean(known, d)} THEN {act()} ELSE {act()})",
            lambda: f"(CASE {self._boolean(known, d)} -> {act()} [] OTHER -> {act()})",
            lambda: self._quantified(known, act, d),
            lambda: self._quantified(known, act, d),
            lambda: self._named(known, act, d),
            lambda: self._recursive(known, act, d),
            lambda: f"([{act()}]_<<{', '.join(todo)}>>)",
            lambda: f"(<<{act()}>>_<<{', '.join(todo)}>>)",
            lambda: f"UNCHANGED <<{', '.join(todo)}>>",
            lambda: self._assign(known, todo, d),
        ]
        if self._slips():
            templates = [lambda: f"(~{act()})", lambda: f"({self._boolean(known, d)} => {act()})"]
        return self._pick(templates)()

    def _conjunction(self, known: Known, todo: list[str], depth: int) -> str:
        cut = self._random.randrange(len(todo) + 1)
        first = self._act(known, todo[:cut], depth)
        return f"({first} /\\ {self._act((*known, *todo[:cut]), todo[cut:], depth)})"

    def _quantified(self, known: Known, act: Callable[[], str], depth: int) -> str:
        kind, (a, b) = self._pick(QUANTIFIERS), (self._name(), self._name())
        # Never empty: a \A without instances assigns nothing.
        sets = [f"{{{self._integer(known, depth)}, {self._integer(known, 0)}}}", "(0..1)"]
        first, second = self._pick(sets), self._pick(sets)
        binder = self._pick(
            [
                f"{a} \\in {first}",
                f"{a} \\in {first}, {b} \\in {second}",
                f"<<{a}, {b}>> \\in PAIRS",
            ]
        )
        names = [name for name in (a, b) if name in binder]
        binder = binder.replace("PAIRS", f"{first} \\X {second}")
        with self._binding(*names):
            return f"({kind} {binder} : {act()})"

    def _named(self, known: Known, act: Callable[[], str], depth: int) -> str:
        """The action in a LET, or as an operator argument."""
        name, param, value = self._name(), self._name(), self._integer(known, depth)
        with self._binding(param):
            body = act()
        return self._pick(
            [
                f"(LET {param} == {value} IN {body})",
                f"(LET {name}({param}) == {body} IN {name}({value}))",
                f"Apply(LAMBDA {param} : {body}, {value})",
                f"Times(LAMBDA {param} : {body}, {value}, 1)",
            ]
        )

    def _recursive(self, known: Known, act: Callable[[], str], depth: int) -> str:
        name, param, value = self._name(), self._name(), self._integer(known, depth)
        with self._binding(param):
            last, step = act(), act()
        again = f"{name}({param} - 1)"
        body = self._pick(
            [
                f"IF {param} = 0 THEN {last} ELSE {step} /\\ {again}",
                f"IF {param} = 0 THEN {last} ELSE {again} /\\ {step}",
                f"\\/ ({param} = 0 /\\ {last}) \\/ ({param} > 0 /\\ {again} /\\ {step})",
            ]
        )
        return f"(LET RECURSIVE {name}(_) {name}({param}) == {body} IN {name}({value}))"

    def _assign(self, known: Known, todo: Sequence[str], depth: int) -> str:
        variable, bound = todo[0], self._name()
        value, values = self._integer(known, depth), self._set(known, depth)
        one = self._pick(
            [
                f"{variable}' = {value}",
                f"{variable}' \\in {values}",
                f"{variable}Next = {value}",
                f"UNCHANGED <<{variable}, <<{variable}>>>>",
                f"Is({variable}', {value})",
                f"In({variable}, {values})",
                f"Again({variable}', {value}, 2)",
                f"(\\E {bound} \\in {values} : {variable}' = {bound})",
                f"(LET {bound} == {variable}' IN {bound} = {value})",
            ]
        )
        if self._slips():
            one = self._pick(["TRUE", f"{value} = {variable}'"])
        if len(todo) == 1:
            return one
        return f"({one} /\\ {self._assign((*known, variable), todo[1:], depth)})"

    # --- expressions ----------------------------------------------------------------------

    def _boolean(self, known: Known, depth: int) -> str:
        if depth <= 0:
            return f"({self._leaf(known)} {self._pick(COMPARED)} {self._leaf(known)})"
        d, name = depth - 1, self._name()

        def integer() -> str:
            return self._integer(known, d)

        def boolean() -> str:
            return self._boolean(known, d)

        def bound() -> str:
            with self._binding(name):
                return boolean()

        templates: list[Callable[[], str]] = [
            lambda: f"({integer()} {self._pick(COMPARED)} {integer()})",
            lambda: f"({boolean()} {self._pick(CONNECTED)} {boolean()})",
            lambda: f"(~{boolean()})",
            lambda: f"({integer()} \\in {self._set(known, d)})",
            lambda: f"({self._pick(QUANTIFIERS)} {name} \\in {self._set(known, d)} : {bound()})",
            lambda: f"Small({integer()})",
            lambda: f"Guard({integer()})",
            lambda: f"Every(LAMBDA {name} : {bound()}, {self._set(known, d)})",
            lambda: f"(LET {name} == {integer()} IN {bound()})",
            lambda: f"(IF {boolean()} THEN {boolean()} ELSE {boolean()})",
            lambda: "TRUE" if self._bound else f"(ENABLED {self._act((), VARIABLES, min(d, 1))})",
        ]
        return self._pick(templates)()

    def _integer(self, known: Known, depth: int) -> str:
        if depth <= 0:
            return self._leaf(known)

        def integer() -> str:
            return self._integer(known, depth - 1)

        templates: list[Callable[[], str]] = [
            lambda: self._leaf(known),
            lambda: f"(({integer()} + {integer()}) % 3)",
            lambda: f"Add({integer()}, {integer()})",
            lambda: f"Table[{integer()}]",
            lambda: f"(IF {self._boolean(known, depth - 1)} THEN {integer()} ELSE {integer()})",
            lambda: f"Add({self._pick(known)}, 1)'" if known else "2",
        ]
        return self._pick(templates)()

    def _set(self, known: Known, depth: int) -> str:
        name, domain = (
            self._name(),
            self._pick(["0..2", f"{{{self._integer(known, depth - 1)}, 1}}"]),
        )
        with self._binding(name):
            filtered = f"{{{name} \\in {domain} : {self._boolean(known, depth - 1)}}}"
        value = self._integer(known, depth)
        return self._pick([f"{{{value}, 1}}", f"({value}..2)", "(0..2)", "{0, 2}", filtered])

    def _leaf(self, known: Known) -> str:
        primed = VARIABLES if self._slips() else known
        names = [*VARIABLES, *(f"{name}'" for name in primed), *self._bound[-2:]]
        return self._pick([*names, *names, "0", "1", "2"])

    def _slips(self) -> bool:
        return self._random.random() < self._careless

    @contextmanager
    def _binding(self, *names: str) -> Iterator[None]:
        self._bound += names
        try:
            yield
        finally:
            del self._bound[len(self._bound) - len(names) :]

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _pick(self, choices: Sequence[Choice]) -> Choice:
        return self._random.choice(choices)


@dataclass(frozen=True, slots=True)
class Found:
    """What an engine makes of a module: its state space, or an error."""

    generated: int = 0
    initial: frozenset[State] = frozenset()
    steps: frozenset[tuple[State, State]] = frozenset()
    error: str | None = None

    def agrees(self, other: Found) -> bool:
        """Whether both fail, or both find the same."""
        if self.error or other.error:
            return bool(self.error and other.error)
        return self == other


def module(actions: Sequence[str]) -> str:
    """A module in which `k`, chosen at the start, says which of the actions is taken."""
    numbered = list(enumerate(actions, 1))
    return "\n".join(
        [
            "---- MODULE RandomActions ----",
            "EXTENDS Integers, TLC",
            f"VARIABLES k, {', '.join(VARIABLES)}{OPERATORS}",
            *(f"A{number} == {action}" for number, action in numbered),
            f"Init == k \\in 1..{len(actions)} /\\ {INIT}",
            "Next ==",
            *(f"  \\/ k = {number} /\\ k' = k /\\ A{number}" for number, _ in numbered),
            "====",
        ]
    )


@contextmanager
def _workspace(actions: Sequence[str]) -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory() as folder:
        text = module(actions)
        yield write_workspace(Path(folder), "RandomActions", text, "INIT Init\nNEXT Next\n")


def found(actions: Sequence[str]) -> tuple[Found, Found]:
    """What TLC finds, and what our search does."""
    with _workspace(actions) as workspace:
        return _by_tlc(workspace), _by_us(workspace)


def _by_tlc(workspace: Workspace) -> Found:
    result = workspace.run_tlc()
    if result.exit_code != 0:
        return Found(error="\n".join(result.transcript.errors) or f"exit code {result.exit_code}")
    graph = workspace.graph(("k", *VARIABLES))
    states = list(graph.states)
    pairs = zip(graph.source, graph.target, strict=True)
    return Found(
        generated=result.transcript.generated_states or 0,
        initial=frozenset(states[number] for number in graph.initial),
        steps=frozenset((states[source], states[target]) for source, target in pairs),
    )


def _by_us(workspace: Workspace) -> Found:
    try:
        problem = replace(problem_of(workspace.spec()), check_deadlock=False)
        result = search(problem, keep_transitions=True)
    except UserError as error:
        return Found(error=str(error))
    states, transitions = result.states, result.transitions
    assert transitions is not None
    return Found(
        generated=result.generated,
        initial=frozenset(states[number] for number in result.initial),
        steps=frozenset((states[source], states[target]) for source, _, target in transitions),
    )


def _is_defined(action: str) -> bool:
    """Whether our search finds its state space."""
    with _workspace([action]) as workspace:
        return _by_us(workspace).error is None


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many actions our search finds undefined, and those of which TLC differs, with what
    each found."""

    undefined: int
    differing: tuple[str, ...]


def compare(actions: Sequence[str]) -> Comparison:
    """One run of TLC for all that are defined, as long as it agrees; one for each that is not."""
    defined: list[str] = []
    undefined: list[str] = []
    for action in actions:
        (defined if _is_defined(action) else undefined).append(action)
    parts = [defined, *([action] for action in undefined)]
    return Comparison(len(undefined), tuple(text for part in parts for text in _disagreeing(part)))


def _disagreeing(actions: Sequence[str]) -> Iterator[str]:
    if not actions:
        return
    tlc, ours = found(actions)
    agree = tlc.agrees(ours)
    if len(actions) == 1:
        if not agree:
            yield f"{actions[0]}\n  TLC:  {_told(tlc)}\n  ours: {_told(ours)}"
    elif tlc.error or not agree:
        half = len(actions) // 2
        yield from _disagreeing(actions[:half])
        yield from _disagreeing(actions[half:])


def _told(space: Found) -> str:
    return space.error or f"{space.generated} generated, {len(space.steps)} steps"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the actions on which TLC and we differ; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--careless", type=float, default=0, metavar="P")
    asked = parser.parse_args(arguments)
    write = Actions(asked.seed, asked.careless)
    actions = [write.action(asked.depth) for _ in range(asked.count)]
    result = compare(actions)
    print("".join(f"{text}\n" for text in result.differing), end="")
    told = f"{len(actions)} actions, {result.undefined} of them undefined"
    print(f"{told}: {len(result.differing)} differ")
    return 1 if result.differing else 0


if __name__ == "__main__":
    sys.exit(main())
