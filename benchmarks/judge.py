"""Judges partially observed random behaviours, has TLC do the same job, and prints the ratio.

The behaviours are the spec's own, from a seed; a fifth of the variables is shown, and a third of
the actions is not. TLC gets the classic trace specification of the same recordings, all in one run
with one worker; both say how many events of each can be explained, and have to agree. Then the
judge's cost by the share of variables that is hidden, and by the bound on unseen steps; and a
recording of 1,000 events. Both are timed by the clock on the wall and by the processor, of all of
their processes and threads: only on a quiet machine does the first mean much. The judge is timed
in one process and in two, from the file on, compiling included; TLC with its start. `each more` is
what the recordings beyond the first tenth cost, without what is paid once.
Run: python -m benchmarks.judge [--model NAME] [--traces N] [--length N] [--long N] [--mutants N]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from conformance.judge.budget import JudgeLimits
from conformance.judge.events import Event, Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.processes import judge_here
from conformance.judge.reading import locate
from conformance.judge.verdict import Judgement
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.tla import (
    Action,
    ActionPattern,
    ObservedPart,
    Place,
    Spec,
    State,
    bind,
    find_tools,
    to_itf,
)
from conformance.verdict import Verdict
from tests.differential.judge.mutations import mutants, proves
from tests.differential.judge.referee import Refereed, referee


@dataclass(frozen=True, slots=True)
class Walk:
    """A behaviour of the spec."""

    initial: State
    steps: tuple[tuple[Action, State], ...]


@dataclass(frozen=True, slots=True)
class View:
    """What of a behaviour is shown."""

    variables: frozenset[str]
    unseen: frozenset[str]

    def of(self, spec: Spec, walk: Walk, name: str) -> Recording:
        """The recording that it gives."""
        events = [
            Event((ActionPattern(action.name),), after=self._parts(spec, state), source=name)
            for action, state in walk.steps
            if action.name not in self.unseen
        ]
        return Recording(name, tuple(events), name)

    def _parts(self, spec: Spec, state: State) -> tuple[ObservedPart, ...]:
        pairs = zip(spec.variables, state, strict=True)
        return tuple(
            ObservedPart(Place(name), value) for name, value in pairs if name in self.variables
        )

    def longest(self, walks: Sequence[Walk]) -> int:
        """The most unseen steps in a row."""
        most = 0
        for walk in walks:
            row = 0
            for action, _ in walk.steps:
                row = row + 1 if action.name in self.unseen else 0
                most = max(most, row)
        return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="group/dynamic-2m")
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--long", type=int, default=1000)
    parser.add_argument("--mutants", type=int, default=2000)
    options = parser.parse_args()
    model = find_models([options.model])[0]
    prepared = bound(model, find_tools())
    spec = prepared.spec
    successors = cache(spec.successors)
    walks = [walk(spec, options.length, seed, successors) for seed in range(options.traces)]
    names = sorted({action.name for each_walk in walks for action, _ in each_walk.steps})
    unseen = frozenset(random.Random(1).sample(names, len(names) // 3))
    print(
        f"load {os.getloadavg()[0]:.1f}, model {options.model}, unseen {', '.join(sorted(unseen))}"
    )
    view = View(shown(spec, 0.2), unseen)
    few = against_tlc(prepared, walks[: len(walks) // 10], view)
    many = against_tlc(prepared, walks, view)
    each_more(few, many)
    share_table(prepared, walks[:200], unseen)
    bound_table(prepared, walks[:200], view)
    long(prepared, options.long)
    lies(prepared, walks[:200], view, options.mutants)


Successors = Callable[[State], Sequence[tuple[Action, State]]]


def walk(spec: Spec, length: int, seed: int, successors: Successors) -> Walk:
    """A random behaviour of so many steps, or shorter where nothing is enabled."""
    rng = random.Random(seed)
    state = rng.choice(list(spec.initial_states()))
    initial = state
    steps: list[tuple[Action, State]] = []
    while len(steps) < length and (allowed := successors(state)):
        action, state = rng.choice(allowed)
        steps.append((action, state))
    return Walk(initial, tuple(steps))


def shown(spec: Spec, share: float) -> frozenset[str]:
    """So many of the variables, chosen by a seed."""
    count = max(1, round(share * len(spec.variables)))
    return frozenset(random.Random(2).sample(list(spec.variables), count))


def recordings(spec: Spec, walks: Sequence[Walk], view: View) -> list[Recording]:
    made = (view.of(spec, each_walk, f"run-{number}") for number, each_walk in enumerate(walks))
    return [each_walk for each_walk in made if each_walk.events]


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds by the wall, and of the processor in all processes."""

    wall: float
    processor: float


@contextmanager
def timed() -> Iterator[Callable[[], Took]]:
    """How long something took, with its children's time once they have ended."""

    def now() -> tuple[float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.monotonic(), time.process_time() + children.ru_utime + children.ru_stime

    wall, processor = now()
    yield lambda: Took(
        *(after - before for after, before in zip(now(), (wall, processor), strict=True))
    )


def judged(
    prepared: PreparedModel,
    made: Sequence[Recording],
    unseen: frozenset[str],
    bound: int,
    processes: int = 1,
    *,
    brief: bool = False,
) -> tuple[list[Judgement], Took]:
    """The judgements and what they took, from the file on, compiling included.

    `brief` as of `judge_here`: as `kconform judge` asks, which counts what passes.
    """
    silent = tuple(ActionPattern(name) for name in sorted(unseen))
    mapping = Mapping(declared=True, silent=silent, limits=JudgeLimits(bound, 100_000, 600))
    # Nothing is compiled yet in a spec that was bound just now.
    spec = bind(prepared.module, prepared.spec.config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recordings.ndjson"
        path.write_text("".join(map(lines_of, made)))
        gc.collect()
        gc.freeze()  # the recordings are of the benchmark, and no concern of the judge's collector
        with timed() as took:
            judge = Judge(spec, mapping)
            recordings = judge_here(judge, locate([path]), processes=processes, brief=brief)
            judgements = [judgement for _, judgement in recordings]
            return judgements, took()


def lines_of(recording: Recording) -> str:
    """The events as their recorder would have written them."""
    lines = []
    for event in recording.events:
        state = {str(part.place): to_itf(part.value) for part in event.after}
        (action,) = event.actions
        line = {"trace": recording.name, "action": action.name, "state": state}
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class Compared:
    """The same recordings judged by the judge, in one process and in two, and by TLC."""

    events: int
    one: Took
    two: Took
    tlc: Took


def against_tlc(prepared: PreparedModel, walks: Sequence[Walk], view: View) -> Compared:
    spec, bound_ = prepared.spec, view.longest(walks)
    made = recordings(spec, walks, view)
    judgements, item = judged(prepared, made, view.unseen, bound_, brief=True)
    again, two = judged(prepared, made, view.unseen, bound_, processes=2, brief=True)
    other, tlc = refereed(prepared, made, view.unseen, bound_)
    agree = sum(o == j.explained for o, j in zip(other.explained, judgements, strict=True))
    assert [j.reason for j in again] == [j.reason for j in judgements]
    events = sum(len(recording.events) for recording in made)
    print(f"{len(made):,} recordings, {events:,} events, verdicts agree on {agree} of {len(made)}")
    print(f"  {len(view.variables)} of {len(spec.variables)} variables shown, k = {bound_}")
    tried = sum(judgement.tried for judgement in judgements)
    print(f"  states looked at: judge {tried:,}, TLC {other.states:,}")
    return told_of(Compared(events, item, two, tlc))


def each_more(few: Compared, many: Compared) -> None:
    """What the recordings that only the second has took."""

    def more(item: Took, other: Took) -> Took:
        return Took(other.wall - item.wall, other.processor - item.processor)

    print("each more")
    pairs = (few.one, many.one), (few.two, many.two), (few.tlc, many.tlc)
    told_of(Compared(many.events - few.events, *(more(*pair) for pair in pairs)))


def told_of(compared: Compared) -> Compared:
    """Print the rates by the wall."""
    rows = ("judge, 1 process", compared.one), ("judge, 2 processes", compared.two)
    for name, took in (*rows, ("TLC", compared.tlc)):
        print(
            f"  {name:18} {took.wall:7.2f} s by the wall {took.processor:7.2f} s of processor "
            f"{compared.events / took.wall:9,.0f} events/s, {compared.tlc.wall / took.wall:5.1f} "
            f"times TLC's by the wall, {compared.tlc.processor / took.processor:5.1f} by processor"
        )
    return compared


def refereed(
    prepared: PreparedModel, made: Sequence[Recording], unseen: frozenset[str], bound_: int
) -> tuple[Refereed, Took]:
    """What TLC says in one run, and what that took."""
    silent = [ActionPattern(name) for name in sorted(unseen)]
    with timed() as took:
        with Processes() as processes:
            other = referee(prepared, made, silent, bound_, find_tools(), TlcOptions(), processes)
        return other, took()


def lies(prepared: PreparedModel, walks: Sequence[Walk], view: View, count: int) -> None:
    """Accepted recordings with one lie each: where they are rejected, or what explains them."""
    spec, bound_ = prepared.spec, view.longest(walks)
    made = list(mutants(recordings(spec, walks, view), count, seed=11))
    judgements, _ = judged(
        prepared, [recording.recording for recording in made], view.unseen, bound_
    )
    other, _ = refereed(prepared, [recording.recording for recording in made], view.unseen, bound_)
    silent = [ActionPattern(name) for name in view.unseen]
    rows: dict[str, Counter[str]] = {}
    for mutant, judgement, explained in zip(made, judgements, other.explained, strict=True):
        events = mutant.recording.events
        if explained != judgement.explained:
            what = "MISSED: TLC says otherwise"
        elif judgement.verdict is Verdict.FAIL:
            what = "at the lie" if judgement.explained == mutant.at else "later, as TLC does"
        elif judgement.explanation and proves(spec, silent, bound_, events, judgement.explanation):
            what = "explained otherwise, proved"
        else:
            what = "MISSED"
        rows.setdefault(mutant.kind, Counter())[what] += 1
    print(f"{len(made):,} recordings with one lie each")
    for kind, counts in rows.items():
        total = counts.total()
        text = ", ".join(f"{n / total:.1%} {what}" for what, n in counts.most_common())
        print(f"  {kind:14} {total:5,}: {text}")


def share_table(prepared: PreparedModel, walks: Sequence[Walk], unseen: frozenset[str]) -> None:
    for share in (1.0, 0.5, 0.2, 0.1, 0.04):
        view = View(shown(prepared.spec, share), unseen)
        told(f"{share:4.0%} shown", prepared, walks, view, view.longest(walks))


def bound_table(prepared: PreparedModel, walks: Sequence[Walk], view: View) -> None:
    for bound_ in range(view.longest(walks) + 1):
        told(f"k = {bound_}", prepared, walks, view, bound_)


def told(
    what: str, prepared: PreparedModel, walks: Sequence[Walk], view: View, bound_: int
) -> None:
    made = recordings(prepared.spec, walks, view)
    judgements, took = judged(prepared, made, view.unseen, bound_)
    events = sum(len(recording.events) for recording in made)
    print(
        f"  {what:12} "
        f"{sum(judgement.explained == judgement.events for judgement in judgements):4} explained  "
        f"{1000 * took.processor / events:8.2f} ms/event  most candidates "
        f"{max(judgement.most_candidates for judgement in judgements):6,}"
    )


MEMBERS = frozenset(
    [
        "SendJoinGroup",
        "ProcessJoinGroup",
        "ProcessSyncGroup",
        "SendHeartbeat",
        "ProcessHeartbeat",
        "SendOffsetCommit",
        "ProcessOffsetCommit",
        "CompleteJoin",
        "RequestRejoin",
    ]
)
OF_MEMBERS = frozenset(
    [
        "memberState",
        "memberGeneration",
        "rejoinNeeded",
        "needsJoinPrepare",
        "joinFuture",
        "isLeader",
        "owned",
        "protocols",
        "failed",
        "channel",
        "heartbeat",
        "idsGiven",
        "failures",
    ]
)


def long(prepared: PreparedModel, events: int) -> None:
    """A coordinator's view of a long life of its group; its members are hidden."""
    wide = replace(
        prepared.model, constants={**prepared.model.constants, "Generations": f"0..{events}"}
    )
    made_ready = bound(wide, find_tools())
    spec = made_ready.spec
    view = View(frozenset(spec.variables) - OF_MEMBERS, MEMBERS)
    long_walk = walk(spec, 4 * events, 7, spec.successors)
    short = Walk(long_walk.initial, tuple(_first(long_walk, events)))
    made = recordings(spec, [short], view)
    judgements, took = judged(made_ready, made, view.unseen, view.longest([short]))
    print(
        f"members hidden: {len(made[0].events):,} events, k = {view.longest([short])}, "
        f"{judgements[0].verdict}, {took.processor:.1f} s of processor, {took.wall:.1f} s by the "
        "wall, "
        f"most candidates {judgements[0].most_candidates}"
    )


def _first(walk_: Walk, events: int) -> Iterator[tuple[Action, State]]:
    seen = 0
    for action, state in walk_.steps:
        seen += action.name not in MEMBERS
        if seen > events:
            return
        yield action, state


if __name__ == "__main__":
    main()
