"""How the judge's cost grows with the length of a recording: `python -m benchmarks.judge_growth`.

A lock that ten processes ask for and get in the order of a queue; a third of the steps was not
recorded, and no event shows a variable. Every length is judged in one run, in processor time,
compiling included; the last column is the cost of an event beside that of the shortest recording.
Then a recorded group of
consumers (a random behaviour of the specification, as the members see it) of which a share of the
events was removed. At last a lie: a lock is taken twice, where only asking and queueing may go
unseen. It is judged with the proof of absence by all unseen steps, and with that by those that
matter. Each recording is judged alone, from nothing.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from conformance.judge.absence import Absence
from conformance.judge.budget import JudgeLimits
from conformance.judge.events import Event, Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.verdict import Judgement
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import bound
from conformance.tla import (
    ActionPattern,
    ObservedPart,
    Place,
    Spec,
    bind,
    find_tools,
    load_module,
    parse_config,
)

LOCK = r"""---- MODULE Lock ----
EXTENDS Sequences
CONSTANT Processes
VARIABLES at, waiting, owner
Init == /\ at = [p \in Processes |-> "idle"]
        /\ waiting = <<>>
        /\ owner = "nobody"
Ask(p) == /\ at[p] = "idle"
          /\ at' = [at EXCEPT ![p] = "asked"]
          /\ UNCHANGED <<waiting, owner>>
Queue(p) == /\ at[p] = "asked"
            /\ at' = [at EXCEPT ![p] = "queued"]
            /\ waiting' = Append(waiting, p)
            /\ UNCHANGED owner
Take(p) == /\ owner = "nobody"
           /\ waiting # <<>>
           /\ p = Head(waiting)
           /\ waiting' = Tail(waiting)
           /\ owner' = p
           /\ at' = [at EXCEPT ![p] = "holds"]
Release(p) == /\ at[p] = "holds"
              /\ owner' = "nobody"
              /\ at' = [at EXCEPT ![p] = "idle"]
              /\ UNCHANGED waiting
Next == \E p \in Processes : Ask(p) \/ Queue(p) \/ Take(p) \/ Release(p)
===="""

STEPS = 9
"""At most so many steps in a row go unseen."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A judgement, and the seconds of the processor that it took."""

    judgement: Judgement
    seconds: float

    def row(self, *cells: object) -> str:
        judgement = self.judgement
        return (
            f"{' '.join(f'{cell:>8}' for cell in cells)} {judgement.events:>7,} "
            f"{judgement.verdict.name.lower():>13} {judgement.silent:>7,} {judgement.tried:>10,} "
            f"{self.seconds:>8.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--events", type=int, nargs="*", default=[60, 125, 250, 500, 1000])
    parser.add_argument("--hidden", type=float, default=1 / 3)
    parser.add_argument("--group", default="group/dynamic-2m")
    parser.add_argument("--group-events", type=int, default=100)
    parser.add_argument("--lies", type=int, nargs="*", default=[5, 6], help="processes")
    parser.add_argument("--lie-events", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{'lock of':>8} {'events':>7} {'verdict':>13} {'unseen':>7} {'tried':>10} {'s':>8}")
    each = 0.0
    for events in options.events:
        with tempfile.TemporaryDirectory() as folder:
            spec = lock(Path(folder), options.processes)
        recording = hidden(spec, events, options.hidden, options.seed, shown=())
        measured = timed(spec, recording)
        cost = measured.seconds / measured.judgement.events
        each = each or cost
        print(f"{measured.row(options.processes)}   {cost / each:.1f} an event")
    prepared = bound(find_models([options.group])[0], find_tools())
    print(f"\n{'removed':>8} {'events':>7} {'verdict':>13} {'unseen':>7} {'tried':>10} {'s':>8}")
    for share in (0.1, 0.2, 0.3, 0.4):
        spec = bind(prepared.module, prepared.spec.config)
        shown = spec.variables[: len(spec.variables) // 3]
        recording = hidden(spec, options.group_events, share, options.seed, shown=shown)
        print(timed(spec, recording).row(f"{share:.0%}"))
    print(f"\n{'lie in':>8} {'events':>7} {'verdict':>13} {'unseen':>7} {'tried':>10} {'s':>8}")
    for processes in options.lies:
        with tempfile.TemporaryDirectory() as folder:
            spec = lock(Path(folder), processes)
        recording = lie(spec, options.lie_events, options.seed)
        with patch.object(Absence, "of", return_value=None):
            everything = timed(spec, recording, QUEUEING)
        matter = timed(spec, recording, QUEUEING)
        print(f"{everything.row(processes)}   all unseen steps")
        ratio = everything.seconds / matter.seconds
        print(f"{matter.row(processes)}   those that matter: {ratio:.1f} times as fast")


def lock(folder: Path, processes: int) -> Spec:
    """The lock, bound."""
    path = folder / "Lock.tla"
    path.write_text(LOCK)
    names = ", ".join(f'"p{number}"' for number in range(processes))
    return bind(load_module(path), parse_config(f"CONSTANT Processes = {{{names}}}"))


def hidden(spec: Spec, count: int, share: float, seed: int, *, shown: Sequence[str]) -> Recording:
    """So many events of a random behaviour, of whose steps a share was not recorded."""
    rng = random.Random(seed)
    state = next(iter(spec.initial_states()))
    events: list[Event] = []
    row = 0
    while len(events) < count:
        steps = spec.successors(state)
        if not steps:
            break
        action, state = rng.choice(steps)
        if rng.random() < share and row < STEPS:
            row += 1
            continue
        row = 0
        seen = dict(zip(spec.variables, state, strict=True))
        parts = tuple(ObservedPart(Place(name), seen[name]) for name in shown)
        process = action.args[0] if action.args and isinstance(action.args[0], str) else ""
        events.append(
            Event((ActionPattern(action.name, action.args),), after=parts, process=process)
        )
    return Recording(f"run-{seed}", tuple(events), "benchmark")


QUEUEING = ("Ask", "Queue")


def lie(spec: Spec, count: int, seed: int) -> Recording:
    """So many events of the lock; two thirds of asking and queueing go unseen. The first Take of
    the second half is there twice."""
    rng = random.Random(seed)
    state = next(iter(spec.initial_states()))
    events: list[Event] = []
    row = 0
    while len(events) < count:
        action, state = rng.choice(spec.successors(state))
        if action.name in QUEUEING and rng.random() < 2 / 3 and row < STEPS:
            row += 1
            continue
        row = 0
        events.append(Event((ActionPattern(action.name, action.args),)))
    takes = (n for n, event in enumerate(events) if event.actions[0].name == "Take")
    at = next(number for number in takes if number > count // 2)
    return Recording(f"lie-{seed}", (*events[: at + 1], *events[at:]), "benchmark")


def timed(spec: Spec, recording: Recording, unseen: Sequence[str] = ()) -> Measured:
    """Judge it, where every action may have gone unseen, or these."""
    silent = tuple(map(ActionPattern, unseen or spec.kinds))
    mapping = Mapping(declared=True, silent=silent, limits=JudgeLimits(STEPS))
    began = time.process_time()
    judgement = Judge(spec, mapping).judge(recording)
    return Measured(judgement, time.process_time() - began)


if __name__ == "__main__":
    main()
