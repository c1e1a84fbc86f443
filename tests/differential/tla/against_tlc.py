"""Runs a module through TLC and through our own search, and says where the two differ."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.modelcheck.dump import read_dump
from conformance.modelcheck.tlc import Processes, TlcJob, TlcOptions, run_tlc
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.tla.text import ValueReader
from conformance.tla.tools import find_tools
from conformance.tla.values import State

MODULES = Path(__file__).parent / "modules"
CASES = tuple(sorted(path.stem for path in MODULES.glob("*.cfg")))
DEADLOCK = "deadlock"
UNDER_VIEW = frozenset({"View"})
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


def checks_deadlock(case: str) -> bool:
    """Whether the case's configuration asks for it, in a comment: TLC 2.15 has no such word."""
    return r"\* deadlock" in (MODULES / f"{case}.cfg").read_text()


def tlc_space(case: str, variables: tuple[str, ...]) -> Space:
    """What TLC finds; it stops at a violation, so each violated formula is taken out in turn."""
    started = time.monotonic()
    violations: dict[str, int] = {}
    deadlock = checks_deadlock(case)
    with tempfile.TemporaryDirectory() as scratch, Processes() as processes:
        folder = Path(scratch)
        for module in MODULES.glob("*.tla"):
            shutil.copy(module, folder)
        config = folder / f"{case}.cfg"
        config.write_text((MODULES / config.name).read_text())
        dump = folder / "space.dot"
        while True:
            job = TlcJob(folder / f"{case}.tla", config, (), deadlock, dump)
            result = run_tlc(job, find_tools(), TlcOptions(), processes, lambda _g, _d: None)
            transcript = result.transcript
            violation = transcript.violation
            if violation is None:
                break
            if violation.kind is ViolationKind.DEADLOCK:
                violations[DEADLOCK] = len(transcript.trace)
                deadlock = False
            else:
                violations[violation.name] = len(transcript.trace)
                config.write_text(_without(config.read_text(), violation.name))
        assert result.exit_code == 0, "\n".join(transcript.errors + transcript.outside)
        assert transcript.generated_states is not None
        graph = read_dump(dump, ValueReader(), {}, variables=variables)
        states = list(graph.states)
        return Space(
            generated=transcript.generated_states,
            states=frozenset(states),
            initial=frozenset(states[number] for number in graph.initial),
            transitions=frozenset(
                (states[source], graph.actions[action].name, states[target])
                for source, action, target in zip(
                    graph.source, graph.action, graph.target, strict=True
                )
            ),
            violations=violations,
            seconds=time.monotonic() - started,
        )


def _without(config: str, formula: str) -> str:
    """The configuration without the name of a formula; its keyword may stay."""
    shorter = re.sub(rf"(?<![\w=<-])\b{formula}\b(?! *(=|<-))", "", config)
    assert shorter != config
    return shorter


def our_space(case: str, spec: Spec) -> Space:
    """What our own search finds, going on after violations."""
    started = time.monotonic()
    problem = replace(problem_of(spec), check_deadlock=checks_deadlock(case))
    limits = Limits(stop_at_violation=False)
    result = search(problem, limits, keep_transitions=True)
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
    if case in UNDER_VIEW:
        counts = [(len(space.states), len(space.transitions)) for space in (tlc, ours)]
        return found + ([f"states and transitions: {counts}"] if counts[0] != counts[1] else [])
    for name in ("states", "initial", "transitions"):
        theirs, mine = getattr(tlc, name), getattr(ours, name)
        found += [f"{name}: only TLC has {item}" for item in list(theirs - mine)[:3]]
        found += [f"{name}: only ours has {item}" for item in list(mine - theirs)[:3]]
    return found
