"""Small random recordings through the judge and through brute force.

`python -m tests.differential.judge [--count 10000] [--seed 1]`. Each recording is a random
behaviour of a small protocol of which parts are hidden, and of which most are damaged. The judge
must find as many events explained as brute force does, in each order, with each declaration of
unseen steps; where its limits are small it may say that it does not know, and may never be wrong.
A bound on unseen steps that is one larger must explain what the smaller one explains. Exit code 1
if a verdict is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import msgspec

from conformance.judge import depth, search
from conformance.judge.budget import JudgeLimits
from conformance.judge.events import Event, Recording, read_event
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.order import Guarantee
from conformance.judge.verdict import Judgement
from conformance.tla import (
    Fn,
    Json,
    Spec,
    State,
    Value,
    format_value,
    parse_pattern,
    to_itf,
)
from conformance.verdict import Verdict
from tests.differential.judge import brute_force
from tests.differential.judge.brute_force import Done, Protocol, Rules
from tests.unit.judge.locks import locks
from tests.unit.tla.small import spec


@dataclass(frozen=True, slots=True)
class System:
    """A protocol, as TLA+ and as Python, and what may go unseen in it."""

    spec: Spec
    protocol: Protocol
    initial: State
    variables: tuple[str, ...]
    hideable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A recording, and all that is declared about it."""

    system: System
    recording: Recording
    rules: Rules
    guarantee: Guarantee
    limits: JudgeLimits
    few: int
    """Of so many candidates all are followed before one explanation is looked for."""
    reduced: bool
    """Whether absence is left to the proof by the unseen steps that matter."""

    def mapping(self) -> Mapping:
        return Mapping(
            declared=True,
            guarantee=self.guarantee,
            silent=self.rules.silent,
            directly=self.rules.directly,
            limits=self.limits,
        )


def systems(folder: Path) -> tuple[System, ...]:
    """Both protocols."""
    clients = ("a", "b")
    config = 'CONSTANT Clients = {"a", "b"}\nCONSTANT Grants = 5'
    (folder / "post").mkdir()
    return (
        System(
            locks(folder, config),
            brute_force.locks,
            brute_force.locks_init(clients),
            brute_force.LOCKS,
            ("Ask", "Queue", "Grant", "Release", 'Ask("a")', 'Queue("b")'),
        ),
        System(
            spec(folder / "post", brute_force.POST_BODY),
            brute_force.post,
            brute_force.post_init(),
            brute_force.POST,
            ("Write", "Send", "Receive", "Lose", 'Send("b")'),
        ),
    )


def cases(known: Sequence[System], count: int, seed: int) -> Iterator[Case]:
    """So many recordings; the seed decides."""
    rng = random.Random(seed)
    for number in range(count):
        yield _case(rng.choice(known), number, rng)


def _case(system: System, number: int, rng: random.Random) -> Case:
    rules = _rules(system, rng)
    guarantee = rng.choice([Guarantee.TOTAL, Guarantee.TOTAL, Guarantee.PROCESS])
    events = _recorded(system, rules, rng, ordered=guarantee is Guarantee.TOTAL)
    if rng.random() < 0.7:
        events = _damaged(events, rng)
    read = tuple(read_event(event, f"run:{n}") for n, event in enumerate(events, 1))
    small = rng.random() < 0.25
    limits = JudgeLimits(
        rules.steps,
        rng.choice([1, 2, 5]) if small else 20_000,
        states=rng.choice([20, 200, 1_000_000]) if small else 1_000_000,
        each=rules.each,
    )
    recording = Recording(f"run-{number}", read, "run:1")
    return Case(
        system, recording, rules, guarantee, limits, rng.choice([0, 3, 1_000]), rng.random() < 0.5
    )


def _rules(system: System, rng: random.Random) -> Rules:
    patterns = [*map(parse_pattern, rng.sample(system.hideable, rng.randint(1, 3)))]
    at = rng.randint(0, len(patterns)) if rng.random() < 0.4 else len(patterns)
    return Rules(
        tuple(patterns[:at]),
        tuple(patterns[at:]),
        rng.randint(0, 3),
        rng.choice([None, None, 1, 2]),
    )


def _recorded(
    system: System, rules: Rules, rng: random.Random, *, ordered: bool
) -> list[dict[str, Json]]:
    """A random behaviour, as far as it is recorded."""
    state, events = system.initial, list[dict[str, Json]]()
    hidden = [*rules.silent, *rules.directly]
    while len(events) < rng.randint(1, 5):
        steps = list(system.protocol(state))
        if not steps:
            break
        step = rng.choice(steps)
        unseen = any(one.admits(step.action) for one in hidden) and rng.random() < 0.8
        if not unseen:
            events.append(_event(system, state, step, rng, ordered=ordered))
        state = step.after
        if rng.random() < 0.1:
            events.append({"state": _parts(system, state, rng)})
    if not ordered:
        for number, event in enumerate(events):
            event.setdefault("process", rng.choice("ab"))
            if number and rng.random() < 0.3:
                events[number - 1]["sent"] = [f"m{number}"]
                event["received"] = [f"m{number}"]
    return events or [{"state": _parts(system, state, rng)}]


def _event(
    system: System, before: State, step: Done, rng: random.Random, *, ordered: bool
) -> dict[str, Json]:
    event: dict[str, Json] = {"action": _action(step, rng)}
    if rng.random() < 0.7:
        event["state"] = _parts(system, step.after, rng)
    if rng.random() < 0.3:
        event["before"] = _parts(system, before, rng)
    if not ordered or rng.random() < 0.3:
        process = step.label.args[0] if step.label.args else rng.choice("ab")
        event["process"] = str(process)
    return event


def _action(step: Done, rng: random.Random) -> Json:
    name, (argument, *_) = step.action.name, step.action.args
    if rng.random() < 0.4:
        return name
    if not isinstance(argument, Fn):
        return {"name": name, "args": [to_itf(argument)]}
    fields: dict[str, Json] = {
        str(key): to_itf(value) for key, value in argument.items() if rng.random() < 0.5
    }
    entries = argument["of"]
    if isinstance(entries, tuple) and rng.random() < 0.3:
        fields["Len(of)"] = len(entries)
    return {"name": name, "args": [{"#fields": fields} if fields else None]}


def _parts(system: System, state: State, rng: random.Random) -> dict[str, Json]:
    """Some of a state: variables, entries, lengths, members."""
    found: dict[str, Json] = {}
    for name, value in zip(system.variables, state, strict=True):
        if rng.random() < 0.5:
            continue
        if isinstance(value, Fn):
            key, inner = rng.choice(list(value.items()))
            if isinstance(inner, tuple) and rng.random() < 0.5:
                found[f'Len({name}["{key}"])'] = len(inner)
            else:
                found[f'{name}["{key}"]'] = to_itf(inner)
        elif isinstance(value, frozenset) and rng.random() < 0.5:
            found.update(_of_set(name, value, rng))
        else:
            found[name] = to_itf(value)
    return found


def _of_set(name: str, value: frozenset[Value], rng: random.Random) -> dict[str, Json]:
    members = sorted(map(format_value, value))
    if members and rng.random() < 0.5:
        return {f"{rng.choice(members)} \\in {name}": True}
    return {f"Cardinality({name})": len(value)}


def _damaged(events: list[dict[str, Json]], rng: random.Random) -> list[dict[str, Json]]:
    """One event dropped, doubled, moved, or with a number or text changed."""
    events = [dict(event) for event in events]
    at = rng.randrange(len(events))
    match rng.randrange(4):
        case 0 if len(events) > 1:
            del events[at]
        case 1:
            doubled = {k: v for k, v in events[at].items() if k not in ("sent", "received")}
            events.insert(at, doubled)
        case 2:
            events.insert(rng.randrange(len(events)), events.pop(at))
        case _:
            seen = events[at].get("state")
            if isinstance(seen, dict) and seen:
                key = rng.choice(sorted(seen))
                events[at]["state"] = seen | {key: _other(seen[key], rng)}
    return events


def _other(value: Json, rng: random.Random) -> Json:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1])
    return rng.choice(["a", "b", "nobody", "idle", "asked", "queued", "granted", 0])


# --- compared -------------------------------------------------------------------------------------


def truth(case: Case) -> int:
    """What brute force says: so many events can be explained."""
    events = case.recording.events
    return brute_force.most_explained(
        case.system.protocol,
        case.system.variables,
        case.system.initial,
        events,
        _earlier(events, case.guarantee),
        case.rules,
    )


def _earlier(events: Sequence[Event], guarantee: Guarantee) -> dict[int, frozenset[int]]:
    numbers = range(len(events))
    if guarantee is Guarantee.TOTAL:
        return {n: frozenset(range(n)) for n in numbers}
    pairs = {
        (a, b) for a in numbers for b in numbers if a < b and events[a].process == events[b].process
    }
    pairs |= {(a, b) for a in numbers for b in numbers if events[a].sent & events[b].received}
    return {n: frozenset(a for a, b in pairs if b == n) for n in numbers}


def wrong(case: Case, judgement: Judgement, explained: int) -> str:
    """What is wrong with a verdict; nothing if it is right."""
    total = len(case.recording.events)
    events = case.recording.events
    if not any(event.actions or event.before or event.after for event in events):
        seen = judgement.verdict is not Verdict.INCONCLUSIVE
        return f"{judgement.verdict.name}, where no event says anything" if seen else ""
    if judgement.verdict is Verdict.INCONCLUSIVE:
        limited = case.limits.candidates < 20_000 or case.limits.states < 1_000_000
        return "" if limited else f"inconclusive: {judgement.reason}"
    passes = judgement.verdict is Verdict.PASS
    if passes is not (explained == total):
        return f"{judgement.verdict.name}, where {explained} of {total} events can be explained"
    if judgement.explained != explained:
        return f"{judgement.explained} events explained, where {explained} can be"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        tally, problems = compared(systems(Path(folder)), options.count, options.seed)
    shown = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.items()))
    print(f"{options.count:,} recordings, seed {options.seed}: {shown}; {len(problems)} wrong")
    print(f"{time.process_time() - began:.0f} s of the processor")
    for problem in problems[:10]:
        print(problem)
    return 1 if problems else 0


def compared(known: Sequence[System], count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """The judge's verdicts counted, and those that are wrong."""
    tally: Counter[str] = Counter()
    problems: list[str] = []
    for case in cases(known, count, seed):
        explained = truth(case)
        judgement = judged(case)
        if "would each have happened" in judgement.reason:
            tally["in a cycle"] += 1
            continue
        tally[judgement.verdict.name.lower()] += 1
        problem = wrong(case, judgement, explained)
        if not problem and judgement.verdict is Verdict.PASS:
            larger = replace(case, limits=replace(case.limits, silent=case.limits.silent + 1))
            again = judged(larger)
            if again.verdict is not Verdict.PASS:
                problem = f"a larger bound loses it: {again.reason}"
        if problem:
            problems.append(f"{case.recording.name}: {problem}\n{_shown(case)}")
    return tally, problems


def judged(case: Case) -> Judgement:
    """The judge's verdict. Few candidates are too many here, so that every search has its turn."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(search, "_FEW", case.few))
        if case.reduced:
            never = patch.object(depth._DepthFirst, "proves_absence", return_value=False)
            patches.enter_context(never)
        return Judge(case.system.spec, case.mapping()).judge(case.recording)


def _shown(case: Case) -> str:
    events = "\n".join(str(msgspec.structs.asdict(event)) for event in case.recording.events)
    return f"  {case.rules}\n  {case.guarantee}, {case.limits}\n{events}"


if __name__ == "__main__":
    sys.exit(main())
