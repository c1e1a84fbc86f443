"""Judges partially observed random behaviours, has TLC do the same job, and prints the ratio.

The behaviours are the spec's own, from a seed; a fifth of the variables is shown, and a third of
the actions is not. TLC gets the classic trace specification of the same recordings, all in one run
with one worker; both say how many events of each can be explained, and have to agree. Then the
judge's cost by the share of variables that is hidden, and by the bound on unseen steps; and a
recording of 1,000 events. Times are of the processor, since wall clocks depend on the machine's
load; TLC's are those of its JVM with all of its threads.
Run: python benchmarks/judge.py [--model NAME] [--traces N] [--length N] [--long N] [--mutants N]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.judge.candidates import Limits
from conformance.judge.events import Event, Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.mutations import mutants, proves
from conformance.judge.reading import read_recordings
from conformance.judge.referee import Refereed, referee
from conformance.judge.verdict import Judgement
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.tla import Action, ActionPattern, Part, Place, Spec, State, find_tools, to_itf
from conformance.verdict import Verdict


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

    def _parts(self, spec: Spec, state: State) -> tuple[Part, ...]:
        pairs = zip(spec.variables, state, strict=True)
        return tuple(Part(Place(name), value) for name, value in pairs if name in self.variables)

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
    parser.add_argument("--traces", type=int, default=5000)
    parser.add_argument("--length", type=int, default=20)
    parser.add_argument("--long", type=int, default=1000)
    parser.add_argument("--mutants", type=int, default=2000)
    options = parser.parse_args()
    model = find_models([options.model])[0]
    prepared = bound(model, find_tools())
    spec = prepared.spec
    walks = [walk(spec, options.length, seed) for seed in range(options.traces)]
    names = sorted({action.name for one in walks for action, _ in one.steps})
    unseen = frozenset(random.Random(1).sample(names, len(names) // 3))
    print(
        f"load {os.getloadavg()[0]:.1f}, model {options.model}, unseen {', '.join(sorted(unseen))}"
    )
    view = View(shown(spec, 0.2), unseen)
    against_tlc(prepared, walks[: len(walks) // 10], view)
    against_tlc(prepared, walks, view)
    share_table(spec, walks[:200], unseen)
    bound_table(spec, walks[:200], view)
    long(prepared, options.long)
    lies(prepared, walks[:200], view, options.mutants)


def walk(spec: Spec, length: int, seed: int) -> Walk:
    """A random behaviour of so many steps, or shorter where nothing is enabled."""
    rng = random.Random(seed)
    state = rng.choice(list(spec.initial_states()))
    initial = state
    steps: list[tuple[Action, State]] = []
    while len(steps) < length and (allowed := spec.successors(state)):
        action, state = rng.choice(allowed)
        steps.append((action, state))
    return Walk(initial, tuple(steps))


def shown(spec: Spec, share: float) -> frozenset[str]:
    """So many of the variables, chosen by a seed."""
    count = max(1, round(share * len(spec.variables)))
    return frozenset(random.Random(2).sample(list(spec.variables), count))


def recordings(spec: Spec, walks: Sequence[Walk], view: View) -> list[Recording]:
    made = (view.of(spec, one, f"run-{number}") for number, one in enumerate(walks))
    return [one for one in made if one.events]


def judged(
    spec: Spec, made: Sequence[Recording], unseen: frozenset[str], bound: int
) -> tuple[list[Judgement], float]:
    """The judgements and the processor's seconds, from the file on, compiling included."""
    silent = tuple(ActionPattern(name) for name in sorted(unseen))
    mapping = Mapping(declared=True, silent=silent, limits=Limits(bound, 100_000, 600))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recordings.ndjson"
        path.write_text("".join(map(lines_of, made)))
        began = time.process_time()
        judge = Judge(spec, mapping)
        found = [judge.judge(one) for one in read_recordings([path])]
        return found, time.process_time() - began


def lines_of(recording: Recording) -> str:
    """The events as their recorder would have written them."""
    lines = []
    for event in recording.events:
        state = {str(part.place): to_itf(part.value) for part in event.after}
        (action,) = event.actions
        line = {"trace": recording.name, "action": action.name, "state": state}
        lines.append(json.dumps(line) + "\n")
    return "".join(lines)


def against_tlc(prepared: PreparedModel, walks: Sequence[Walk], view: View) -> None:
    spec, bound_ = prepared.spec, view.longest(walks)
    made = recordings(spec, walks, view)
    found, seconds = judged(spec, made, view.unseen, bound_)
    other, tlc = refereed(prepared, made, view.unseen, bound_)
    agree = sum(o == j.explained for o, j in zip(other.explained, found, strict=True))
    tried = sum(one.tried for one in found)
    events = sum(len(one.events) for one in made)
    print(f"{len(made):,} recordings, {events:,} events")
    print(f"  {len(view.variables)} of {len(spec.variables)} variables shown, k = {bound_}")
    print(f"  judge {seconds:8.2f} s of processor  {tried:9,} states  {events / seconds:8,.0f} /s")
    print(f"  TLC   {tlc:8.2f} s of processor  {other.states:9,} states  {events / tlc:8,.0f} /s")
    print(f"  ratio {tlc / seconds:.1f}; verdicts agree on {agree} of {len(made)}")


def refereed(
    prepared: PreparedModel, made: Sequence[Recording], unseen: frozenset[str], bound_: int
) -> tuple[Refereed, float]:
    """What TLC says in one run, and its JVM's seconds of the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    silent = [ActionPattern(name) for name in sorted(unseen)]
    with Processes() as processes:
        other = referee(prepared, made, silent, bound_, find_tools(), TlcOptions(), processes)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return other, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def lies(prepared: PreparedModel, walks: Sequence[Walk], view: View, count: int) -> None:
    """Accepted recordings with one lie each: where they are rejected, or what explains them."""
    spec, bound_ = prepared.spec, view.longest(walks)
    made = list(mutants(recordings(spec, walks, view), count, seed=11))
    found, _ = judged(spec, [one.recording for one in made], view.unseen, bound_)
    other, _ = refereed(prepared, [one.recording for one in made], view.unseen, bound_)
    silent = [ActionPattern(name) for name in view.unseen]
    rows: dict[str, Counter[str]] = {}
    for mutant, judgement, explained in zip(made, found, other.explained, strict=True):
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
        told = ", ".join(f"{n / total:.1%} {what}" for what, n in counts.most_common())
        print(f"  {kind:14} {total:5,}: {told}")


def share_table(spec: Spec, walks: Sequence[Walk], unseen: frozenset[str]) -> None:
    for share in (1.0, 0.5, 0.2, 0.1, 0.04):
        view = View(shown(spec, share), unseen)
        told(f"{share:4.0%} shown", spec, walks, view, view.longest(walks))


def bound_table(spec: Spec, walks: Sequence[Walk], view: View) -> None:
    for bound_ in range(view.longest(walks) + 1):
        told(f"k = {bound_}", spec, walks, view, bound_)


def told(what: str, spec: Spec, walks: Sequence[Walk], view: View, bound_: int) -> None:
    made = recordings(spec, walks, view)
    found, seconds = judged(spec, made, view.unseen, bound_)
    events = sum(len(one.events) for one in made)
    print(
        f"  {what:12} {sum(one.explained == one.events for one in found):4} explained  "
        f"{1000 * seconds / events:8.2f} ms/event  most candidates "
        f"{max(one.most_candidates for one in found):6,}"
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
    spec = bound(wide, find_tools()).spec
    view = View(frozenset(spec.variables) - OF_MEMBERS, MEMBERS)
    one = walk(spec, 4 * events, 7)
    short = Walk(one.initial, tuple(_first(one, events)))
    began = time.monotonic()
    made = recordings(spec, [short], view)
    found, seconds = judged(spec, made, view.unseen, view.longest([short]))
    print(
        f"members hidden: {len(made[0].events):,} events, k = {view.longest([short])}, "
        f"{found[0].verdict}, {seconds:.1f} s of processor, {time.monotonic() - began:.1f} s of "
        f"wall, most candidates {found[0].most_candidates}"
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
