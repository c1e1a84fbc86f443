"""One search with our Python engine, in a process of its own: bounded, and its answer as JSON.

`searched` starts `python -m tests.differential.searched MODULE CONFIG` and reads the answer. What
the collection of public examples and TLC's own suite need is the same: module and configuration as
they are, a limit of processor time, and an answer even if the engine crashes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from conformance.errors import UserError
from conformance.modelcheck.parser import Parser
from conformance.tla import UnsupportedError, bind, find_tools, parse_config, read_xml
from conformance.tla.front.monolith import config_text
from conformance.tla.search import (
    FalseAssumption,
    FormulaKind,
    SearchError,
    SearchResult,
    problem_of,
    search,
)
from conformance.tla.semantics.errors import EvaluationError

_MEMORY = 3 << 30
"""Bytes of address space that a search may use: the machine serves others too."""


class Outcome(StrEnum):
    """How a search ended."""

    SUCCESS = "success"
    SAFETY = "safety failure"
    PROPERTY = "property failure"
    """Of an initial state, of a step, or of a whole behaviour."""
    DEADLOCK = "deadlock failure"
    ASSUMPTION = "assumption failure"
    ERROR = "evaluation error"
    UNREADABLE = "unreadable"
    """The module or the configuration does not parse, or the two do not fit."""
    UNSUPPORTED = "unsupported"
    CRASH = "crash"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came out; `said` is the violated formula or the message."""

    outcome: Outcome
    said: str = ""
    generated: int = 0
    distinct: int = 0
    unchecked: tuple[str, ...] = ()
    """Temporal properties, and entries of the configuration, that a search does not judge."""

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> Answer:
        """The answer that `asdict` has written."""
        made = cls(**fields)  # type: ignore[arg-type]
        return replace(made, outcome=Outcome(made.outcome), unchecked=tuple(made.unchecked))


_KINDS = {
    FormulaKind.INVARIANT: Outcome.SAFETY,
    FormulaKind.INITIAL_PROPERTY: Outcome.PROPERTY,
    FormulaKind.ACTION_PROPERTY: Outcome.PROPERTY,
    FormulaKind.TEMPORAL_PROPERTY: Outcome.PROPERTY,
    FormulaKind.DEADLOCK: Outcome.DEADLOCK,
}


def searched(module: Path, config: Path, *, seconds: int, deadlock: bool | None = None) -> Answer:
    """Search in a process of its own, at most so many seconds of processor time."""
    files = [str(module.resolve()), str(config.resolve())]
    command = [sys.executable, "-m", "tests.differential.searched", *files]
    if deadlock is not None:
        command += ["--deadlock", "yes" if deadlock else "no"]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))

    with tempfile.TemporaryDirectory() as folder:  # a specification may write files
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limited,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
    if run.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Answer(Outcome.SLOW, f"not finished after {seconds} s")
    if run.returncode != 0:
        last = (run.stderr.strip().splitlines() or [f"signal {-run.returncode}"])[-1]
        return Answer(Outcome.CRASH, last[:300])
    return Answer.read(json.loads(run.stdout.splitlines()[-1]))


def search_here(module: Path, config: Path, *, deadlock: bool | None = None) -> Answer:
    """Search in this process. What is no mistake of the user's is raised: a crash."""
    try:
        tools = find_tools()
        parsed = read_xml(Parser().xml(module, (), tools), module)
        read = parse_config(config_text(config), source=config.name)
        if deadlock is not None:
            read = replace(read, check_deadlock=deadlock and read.check_deadlock)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        problem = problem_of(bind(parsed, read))
        unchecked = (*problem.unchecked, *read.postconditions, *read.ignored)
        return _answer(search(problem), unchecked)
    except UserError as error:
        return Answer(_kind(error), " ".join(str(error).split())[:400])
    except MemoryError:
        return Answer(Outcome.SLOW, f"more than {_MEMORY >> 30} GiB")


def _kind(error: UserError) -> Outcome:
    match error:
        case UnsupportedError():
            return Outcome.UNSUPPORTED
        case FalseAssumption():
            return Outcome.ASSUMPTION
        case SearchError() | EvaluationError():
            return Outcome.ERROR
        case _:
            return Outcome.UNREADABLE


def _answer(result: SearchResult, unchecked: tuple[str, ...]) -> Answer:
    violated = result.violated
    return Answer(
        Outcome.SUCCESS if violated is None else _KINDS[violated.kind],
        "" if violated is None else violated.name,
        result.generated,
        len(result.states),
        unchecked,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", type=Path)
    parser.add_argument("config", type=Path)
    parser.add_argument("--deadlock", choices=["yes", "no"])
    options = parser.parse_args(arguments)
    deadlock = None if options.deadlock is None else options.deadlock == "yes"
    answer = search_here(options.module, options.config, deadlock=deadlock)
    print(json.dumps(asdict(answer)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
