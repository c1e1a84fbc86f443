"""The search in Python against TLC with one worker; nothing is checked, or only invariants.

    python -m benchmarks.successors MODEL... [--processes 2] [--invariants]
    python -m benchmarks.successors CHECKOUT/specifications/ewd426/TokenRing.cfg=TokenRing.tla ...

A model is named as `kconform check` names it, or as a configuration with its module beside it. Both
search the same states, and the numbers of distinct and generated states must be equal. Seconds of
processor time, the start of neither counted: TLC's start is that of a module with one state, ours
is SANY and the compilation. With more than one of `--processes` also the seconds by the clock,
which say something only if the machine has nothing else to do. Memory is the peak of one process
in MiB, ours with SANY's syntax tree and the states, TLC's with the JVM.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.processes import Cost, run
from conformance.garbage import collect_seldom
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import bound
from conformance.modelcheck.tlc import TlcJob, TlcOptions, tlc_command
from conformance.tla import Spec, bind, find_tools, load_module, parse_config
from conformance.tla.search import problem_of, search
from conformance.workers import ForkedProcesses

ONE_STATE = "---- MODULE One ----\nVARIABLE x\nInit == x = 0\nNext == UNCHANGED x\n====\n"
INVARIANTS = ("INVARIANT", "INVARIANTS")
CHECKS = ("PROPERTY", "PROPERTIES", "CHECK_DEADLOCK")
"""What is left out for TLC; the last it does not know in a configuration of its version 2.15."""
KEYWORDS = (
    *INVARIANTS,
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


@dataclass(frozen=True, slots=True)
class OurCost:
    """What the search of one process came to, and the seconds by the clock of several, if any."""

    generated: int
    distinct: int
    processor: float
    wall: float
    megabytes: float
    together: float | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--invariants", action="store_true", help="check invariants on the way")
    arguments = parser.parse_args()
    collect_seldom()  # As the command line does.
    checks = () if arguments.invariants else INVARIANTS
    start = tlc("One", ONE_STATE, "INIT Init NEXT Next", (), checks)[0].processor
    several = arguments.processes > 1
    columns = f"{'':40}{'distinct':>9}{'generated':>11}{'ours':>8}{'TLC':>8}{'ratio':>7}"
    print(f"{columns}{'ours':>7}{'TLC':>7}{'  by the clock' if several else ''}")
    wall = f"   1 and {arguments.processes} processes" if several else ""
    print(f"{'':60}{'s':>8}{'s':>8}{'':7}{'MiB':>7}{'MiB':>7}{wall}")
    for name in arguments.models:
        print(line(subject(name), start, arguments.processes, checks), flush=True)


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


def line(item: Subject, start: float, processes: int, checks: tuple[str, ...]) -> str:
    """A row of the table; ends us if the two differ."""
    ours = our_cost(item, processes, checks)
    cost, generated, distinct = tlc(item.stem, item.module, item.config, item.search, checks)
    if (ours.generated, ours.distinct) != (generated, distinct):
        sys.exit(f"{item.name}: {ours.generated}, {ours.distinct}; TLC {generated}, {distinct}")
    seconds = cost.processor - start
    clock = "" if ours.together is None else f"   {ours.wall:.1f} and {ours.together:.1f} s"
    return (
        f"{item.name[-40:]:40}{distinct:9,}{generated:11,}{ours.processor:8.1f}{seconds:8.1f}"
        f"{seconds / ours.processor:7.2f}{ours.megabytes:7,.0f}{cost.megabytes:7,.0f}{clock}"
    )


def our_cost(item: Subject, processes: int, checks: tuple[str, ...]) -> OurCost:
    """In a process of its own, whose memory is that of this model alone."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writer, "wb") as out:
            pickle.dump(searched(item, processes, checks), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as report:
        data = report.read()
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{item.name}: our search ended with an error")
    cost: OurCost = pickle.loads(data)
    return cost


def searched(item: Subject, processes: int, checks: tuple[str, ...]) -> OurCost:
    """What the search takes here."""
    asked = problem_of(item.spec)
    names = () if INVARIANTS[0] in checks else item.spec.config.invariants
    problem = replace(
        asked,
        invariants={name: asked.invariants[name] for name in names},
        initial_properties={},
        action_properties={},
        temporal_properties={},
        check_deadlock=False,
    )
    before = time.process_time()
    alone = search(problem)
    processor = time.process_time() - before
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    together = search(problem, elsewhere=ForkedProcesses(processes)) if processes > 1 else None
    if together is not None and together.states != alone.states:
        sys.exit(f"{item.name}: {processes} processes find other states than one")
    return OurCost(
        alone.generated,
        len(alone.states),
        processor,
        alone.seconds,
        megabytes,
        None if together is None else together.seconds,
    )


def tlc(
    stem: str, text: str, config_text: str, places: tuple[Path, ...], checks: tuple[str, ...]
) -> tuple[Cost, int, int]:
    """What it took, generated and distinct states."""
    with tempfile.TemporaryDirectory(prefix="kconform-successors-") as folder:
        module = Path(folder) / f"{stem}.tla"
        module.write_text(text)
        config = module.with_suffix(".cfg")
        config.write_text(without(config_text, (*CHECKS, *checks)))
        job = TlcJob(module, config, places)
        options = TlcOptions(optimize=True)
        cost = run(tlc_command(job, find_tools(), options, Path(folder)))
    matches = re.findall(r"(\d+) states generated, (\d+) distinct", cost.output)
    if not matches:
        sys.exit(f"{stem}: {cost.output[-2000:]}")
    generated, distinct = map(int, matches[-1])
    return cost, generated, distinct


def without(config: str, keywords: tuple[str, ...]) -> str:
    """The configuration without what stands under these keywords."""
    parts = re.split(rf"(?m)^\s*({'|'.join(KEYWORDS)})\b", config)
    kept = [parts[0]]
    for keyword, text in zip(parts[1::2], parts[2::2], strict=True):
        kept += [] if keyword in keywords else [f"\n{keyword}{text}"]
    return "".join(kept)


if __name__ == "__main__":
    main()
