"""Runs a module through TLC and through our own search, and says where the two differ."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.modelcheck.dump import read_dump
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.tlc import Processes, TlcJob, TlcOptions, TlcResult, run_tlc
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.tla import Spec, State, ValueReader, bind, find_tools, load_module, parse_config
from conformance.tla.search import SearchLimits, problem_of, search

MODULES = Path(__file__).parent / "modules"
CASES = tuple(sorted(path.stem for path in MODULES.glob("*.cfg")))
DEADLOCK = "deadlock"
CLASSES = frozenset({"View", "Symmetry", "SymmetryOfSwaps"})
"""Modules in which one state stands for several: which one is the searcher's choice."""


@dataclass(frozen=True, slots=True)
class Space:
    """A state space and what it violates."""

    generated: int
    states: frozenset[State]
    initial: frozenset[State]
    transitions: frozenset[tuple[State, str, State]]
    violations: Mapping[str, int]
    """Formula, or "deadlock", to the number of states of the shortest counterexample."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with a module and its configuration."""

    folder: Path
    name: str

    @property
    def module(self) -> Path:
        return self.folder / f"{self.name}.tla"

    @property
    def config(self) -> Path:
        return self.folder / f"{self.name}.cfg"

    @property
    def dump(self) -> Path:
        return self.folder / "space.dot"

    def spec(self) -> Spec:
        """The module as we read it."""
        config = parse_config(self.config.read_text(), source=self.config.name)
        return bind(load_module(self.module), config)

    def run_tlc(self, *, deadlock: bool = False) -> TlcResult:
        """TLC's answer; the state graph is dumped."""
        job = TlcJob(self.module, self.config, (), deadlock, self.dump)
        with Processes() as processes:
            return run_tlc(job, find_tools(), TlcOptions(), processes, lambda _g, _d: None)

    def graph(self, variables: tuple[str, ...]) -> StateGraph:
        """The state graph that TLC dumped."""
        return read_dump(self.dump, ValueReader(), {}, variables=variables)


def write_workspace(folder: Path, name: str, module: str, config: str) -> Workspace:
    """A workspace with a generated module."""
    workspace = Workspace(folder, name)
    workspace.module.write_text(module)
    workspace.config.write_text(config)
    return workspace


def load_case(case: str) -> Spec:
    """The bound spec of one of our modules."""
    return Workspace(MODULES, case).spec()


def checks_deadlock(case: str) -> bool:
    """Whether the case's configuration asks for it, in a comment: TLC 2.15 has no such word."""
    return r"\* deadlock" in Workspace(MODULES, case).config.read_text()


def tlc_space(case: str, variables: tuple[str, ...]) -> Space:
    """What TLC finds; it stops at a violation, so each violated formula is taken out in turn."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        for module in MODULES.glob("*.tla"):
            shutil.copy(module, scratch)
        config = Workspace(MODULES, case).config.read_text()
        workspace = Workspace(Path(scratch), case)
        workspace.config.write_text(config)
        result, violations = _run_past_violations(workspace, checks_deadlock(case))
        assert result.exit_code == 0, "\n".join(result.transcript.errors)
        assert result.transcript.generated_states is not None
        graph = workspace.graph(variables)
        states = list(graph.states)
        edges = zip(graph.source, graph.action, graph.target, strict=True)
        return Space(
            generated=result.transcript.generated_states,
            states=frozenset(states),
            initial=frozenset(states[number] for number in graph.initial),
            transitions=frozenset(
                (states[source], graph.actions[action].name, states[target])
                for source, action, target in edges
            ),
            violations=violations,
            seconds=time.monotonic() - started,
        )


def _run_past_violations(
    workspace: Workspace, deadlock: bool
) -> tuple[TlcResult, Mapping[str, int]]:
    violations: dict[str, int] = {}
    while True:
        result = workspace.run_tlc(deadlock=deadlock)
        violation, length = result.transcript.violation, len(result.transcript.trace)
        if violation is None:
            return result, violations
        if violation.kind is ViolationKind.DEADLOCK:
            violations[DEADLOCK], deadlock = length, False
        else:
            violations[violation.name] = length
            config = workspace.config.read_text()
            workspace.config.write_text(_without(config, violation.name))


def _without(config: str, formula: str) -> str:
    """The configuration without the name of a formula; its keyword may stay."""
    shorter = re.sub(rf"(?<![\w=<-])\b{formula}\b(?! *(=|<-))", "", config)
    assert shorter != config
    return shorter


def our_space(case: str, spec: Spec) -> Space:
    """What our own search finds, going on after violations."""
    started = time.monotonic()
    problem = replace(problem_of(spec), check_deadlock=checks_deadlock(case))
    result = search(problem, SearchLimits(stop_at_violation=False), keep_transitions=True)
    states, transitions = result.states, result.transitions
    assert transitions is not None
    return Space(
        generated=result.generated,
        states=frozenset(states),
        initial=frozenset(states[number] for number in result.initial),
        transitions=frozenset(
            (states[source], action.name, states[target]) for source, action, target in transitions
        ),
        violations={
            formula.name: len(formula.counterexample)
            for formula in result.formulas
            if formula.counterexample is not None
        },
        seconds=time.monotonic() - started,
    )


def differences(case: str, tlc: Space, ours: Space) -> list[str]:
    """What differs, in words; nothing if they agree."""
    found = [
        f"{name}: TLC {getattr(tlc, name)}, ours {getattr(ours, name)}"
        for name in ("generated", "violations")
        if getattr(tlc, name) != getattr(ours, name)
    ]
    if case in CLASSES:
        counts = [(len(space.states), len(space.transitions)) for space in (tlc, ours)]
        return found + ([f"states and transitions: {counts}"] if counts[0] != counts[1] else [])
    for name in ("states", "initial", "transitions"):
        theirs, mine = getattr(tlc, name), getattr(ours, name)
        found += [f"{name}: only TLC has {item}" for item in list(theirs - mine)[:3]]
        found += [f"{name}: only ours has {item}" for item in list(mine - theirs)[:3]]
    return found
