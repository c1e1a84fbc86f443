"""The search in Python against TLC with one worker, nothing checked on the way.

    python -m benchmarks.successors MODEL... [--processes 2]
    python -m benchmarks.successors CHECKOUT/specifications/ewd426/TokenRing.cfg=TokenRing.tla ...

A model is named as `kconform check` names it, or as a configuration with its module beside it. Both
search the same states, and the numbers of distinct and generated states must be equal. Seconds of
processor time, the start of neither counted: TLC's start is that of a module with one state, ours
is SANY and the compilation. With `--processes` also the seconds by the clock, which say something
only if the machine has nothing else to do.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import run
from conformance.garbage import collect_seldom
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import bound
from conformance.modelcheck.tlc import TlcJob, TlcOptions, tlc_command
from conformance.tla import Spec, bind, find_tools, load_module, parse_config
from conformance.tla.search import Problem, problem_of, search
from conformance.workers import ForkedProcesses

ONE_STATE = "---- MODULE One ----\nVARIABLE x\nInit == x = 0\nNext == UNCHANGED x\n====\n"
CHECKS = ("INVARIANT", "INVARIANTS", "PROPERTY", "PROPERTIES", "CHECK_DEADLOCK")
"""What is left out for TLC; the last it does not know in a configuration of its version 2.15."""
KEYWORDS = (
    *CHECKS,
    *("CONSTANT", "CONSTANTS", "INIT", "NEXT", "SPECIFICATION", "CONSTRAINT", "CONSTRAINTS"),
    *("ACTION_CONSTRAINT", "ACTION_CONSTRAINTS", "SYMMETRY", "VIEW"),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A specification for both: ours bound, TLC's as files."""

    name: str
    spec: Spec
    module: str
    """The root module's text."""
    stem: str
    config: str
    search: tuple[Path, ...]
    """Where the other modules are."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    collect_seldom()  # As the command line does.
    start = tlc("One", ONE_STATE, "INIT Init NEXT Next", ())[0]
    wall = f"{arguments.processes} processes"
    print(f"{'':40}{'distinct':>9}{'generated':>11}{'ours':>8}{'TLC':>8}{'ratio':>7}  by the clock")
    print(f"{'':68}{'s':>8}{'s':>8}{'':7}   1 and {wall}")
    for name in arguments.models:
        print(line(subject(name), start, arguments.processes), flush=True)


def subject(name: str) -> Subject:
    """UserError if there is no such model."""
    if "=" in name:
        given, module = name.split("=")
        config = Path(given).resolve()  # TLC runs in a folder of its own
        path, text = config.with_name(module), config.read_text()
        spec = bind(load_module(path), parse_config(text, source=str(config)))
        return Subject(config.stem, spec, path.read_text(), path.stem, text, (config.parent,))
    model = find_models([name])[0]
    prepared = bound(model, find_tools())
    generated = prepared.generated
    return Subject(
        name, prepared.spec, generated.module, generated.name, generated.config, model.search
    )


def line(one: Subject, start: float, processes: int) -> str:
    """A row of the table; ends us if the two differ."""
    problem = Problem(
        one.spec.variables,
        one.spec.initial_states,
        one.spec.successors,
        constraints=(asked := problem_of(one.spec)).constraints,
        action_constraints=asked.action_constraints,
        view=asked.view,
        symmetry=asked.symmetry,
        check_deadlock=False,
    )
    before = time.process_time()
    alone = search(problem)
    ours = time.process_time() - before
    together = search(problem, elsewhere=ForkedProcesses(processes))
    seconds, generated, distinct = tlc(one.stem, one.module, one.config, one.search)
    if (alone.generated, len(alone.states)) != (generated, distinct):
        sys.exit(f"{one.name}: {alone.generated}, {len(alone.states)}; TLC {generated}, {distinct}")
    if together.states != alone.states:
        sys.exit(f"{one.name}: {processes} processes find other states than one")
    ratio = (seconds - start) / ours
    clock = f"{alone.seconds:.1f} and {together.seconds:.1f} s"
    return (
        f"{one.name[-40:]:40}{distinct:9,}{generated:11,}{ours:8.1f}{seconds - start:8.1f}"
        f"{ratio:7.2f}   {clock}"
    )


def tlc(stem: str, text: str, config_text: str, places: tuple[Path, ...]) -> tuple[float, int, int]:
    """Processor seconds, generated and distinct states."""
    with tempfile.TemporaryDirectory(prefix="kconform-successors-") as folder:
        module = Path(folder) / f"{stem}.tla"
        module.write_text(text)
        config = module.with_suffix(".cfg")
        config.write_text(unchecked(config_text))
        job = TlcJob(module, config, places)
        options = TlcOptions(optimize=True)
        cost = run(tlc_command(job, find_tools(), options, Path(folder)))
    found = re.findall(r"(\d+) states generated, (\d+) distinct", cost.output)
    if not found:
        sys.exit(f"{stem}: {cost.output[-2000:]}")
    generated, distinct = map(int, found[-1])
    return cost.processor, generated, distinct


def unchecked(config: str) -> str:
    """The configuration without what is to be checked."""
    parts = re.split(rf"(?m)^\s*({'|'.join(KEYWORDS)})\b", config)
    kept = [parts[0]]
    for keyword, text in zip(parts[1::2], parts[2::2], strict=True):
        kept += [] if keyword in CHECKS else [f"\n{keyword}{text}"]
    return "".join(kept)


if __name__ == "__main__":
    main()
