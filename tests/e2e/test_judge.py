"""What is seen of Kafka's protocols is judged as TLC does; lies are found; offsets may be large."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
from msgspec import structs

from conformance.judge.candidates import Limits
from conformance.judge.events import Event, Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping, Start
from conformance.judge.referee import referee
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.tla import (
    Action,
    ActionPattern,
    Part,
    Place,
    State,
    Value,
    find_tools,
    make_function,
    make_record,
    parse_pattern,
)
from conformance.verdict import Verdict

pytestmark = pytest.mark.tlc

UNSEEN = ("SendJoinGroup", "ProcessJoinGroup", "ProcessSyncGroup", "SendHeartbeat", "CompleteJoin")
COORDINATOR = ("groupState", "generation", "members", "awaitingJoin", "leader")
STEPS = 3
DECLARED = Mapping(
    declared=True, silent=tuple(map(ActionPattern, UNSEEN)), limits=Limits(STEPS, 50_000, 60)
)


@cache
def group() -> PreparedModel:
    (model,) = find_models(["group/dynamic-2m"])
    return bound(model, find_tools())


def walk(seed: int, length: int = 14) -> Iterator[tuple[Action, State]]:
    """A behaviour with at most `STEPS` unseen steps in a row."""
    rng, spec, row = random.Random(seed), group().spec, 0
    (state,) = spec.initial_states()
    for _ in range(length):
        choices = [
            one for one in spec.successors(state) if row < STEPS or one[0].name not in UNSEEN
        ]
        if not choices:
            return
        action, state = rng.choice(choices)
        row = row + 1 if action.name in UNSEEN else 0
        yield action, state


def view(seed: int, variables: Sequence[str]) -> Recording:
    """What the walk shows: actions without arguments, some variables."""
    spec, events = group().spec, []
    for action, state in walk(seed):
        if action.name not in UNSEEN:
            values = dict(zip(spec.variables, state, strict=True))
            parts = tuple(Part(Place(name), values[name]) for name in variables)
            events.append(Event((ActionPattern(action.name),), after=parts, source=str(seed)))
    return Recording(str(seed), tuple(events), str(seed))


def mutants(recording: Recording, seed: int) -> Iterator[Recording]:
    """A dropped, a doubled, a moved event; a changed value."""
    rng, events = random.Random(seed), list(recording.events)
    if len(events) < 3:
        return
    at = rng.randrange(len(events) - 1)
    one, other = events[at], events[at + 1]
    yield replace(recording, events=(*events[:at], *events[at + 1 :]))
    yield replace(recording, events=(*events[:at], one, *events[at:]))
    yield replace(recording, events=(*events[:at], other, one, *events[at + 2 :]))
    part = one.after[0]
    lie = structs.replace(
        one, after=(replace(part, value=events[-1].after[0].value), *one.after[1:])
    )
    yield replace(recording, events=(*events[:at], lie, *events[at + 1 :]))


@pytest.mark.parametrize("variables", [COORDINATOR, COORDINATOR[:1]], ids=["five", "one"])
def test_tlc_explains_as_many_events_of_each_recording(variables: Sequence[str]) -> None:
    originals = [one for seed in range(12) if (one := view(seed, variables)).events]
    recordings = [*originals, *(m for one in originals for m in mutants(one, 3) if m.events)]
    judge = Judge(group().spec, DECLARED)
    found = [judge.judge(one) for one in recordings]
    with Processes() as processes:
        other = referee(
            group(), recordings, DECLARED.silent, STEPS, find_tools(), TlcOptions(), processes
        )
    assert list(other.explained) == [one.explained for one in found]
    verdicts = [one.verdict for one in found]
    assert verdicts[: len(originals)] == [Verdict.PASS] * len(originals)
    assert Verdict.FAIL in verdicts


def test_a_lie_is_found_at_its_event() -> None:
    judge, found = Judge(group().spec, DECLARED), 0
    for seed in range(20):
        recording = view(seed, COORDINATOR)
        for at, event in enumerate(recording.events):
            lie = structs.replace(event, after=(Part(Place("generation"), 7),))
            events = (*recording.events[:at], lie, *recording.events[at + 1 :])
            judged = judge.judge(replace(recording, events=events))
            assert (judged.verdict, judged.explained) == (Verdict.FAIL, at)
            found += 1
    assert found > 50


LARGE = {
    "Brokers": '{"b1", "b2", "b3"}',
    "Epochs": "1..30",
    "Offsets": "0..3000",
    "AppendCounts": "0..3000",
}
RECORDS = 2990


def large() -> tuple[Judge, Sequence[Event]]:
    """Three brokers in the middle of their lives, seen whole but for the ghosts; then entries."""
    (model,) = find_models(["replication/truncate-on-fetch-crash-fine-2b"])
    spec = bound(replace(model, constants={**model.constants, **LARGE}), find_tools()).spec
    (initial,) = spec.initial_states()
    state: dict[str, Value] = dict(zip(spec.variables, initial, strict=True))
    brokers = ("b1", "b2", "b3")
    state["log"] = make_function(dict.fromkeys(brokers, (1,) * RECORDS))
    state["highWatermark"] = make_function(dict.fromkeys(brokers, RECORDS))
    state["fetchOffset"] = make_function({"b1": 0, "b2": RECORDS, "b3": RECORDS})
    cache_ = (make_record(epoch=1, start=0),)
    state["epochCache"] = make_function(dict.fromkeys(brokers, cache_))
    ghosts = {"exposed": "{}", "appends": "0", "guaranteedFrom": "1"}
    snapshot = [Part(Place(name), value) for name, value in state.items() if name not in ghosts]
    events = [Event(after=tuple(snapshot))]
    for name, broker, value in (
        ("AppendAsLeader", "b1", RECORDS),
        ("HandleFetch", "b1", RECORDS),
        ("ProcessFetchResponse", "b1", RECORDS),
        ("ElectLeader", "b2", RECORDS),
        ("BecomeLeader", "b2", RECORDS),
    ):
        seen = Part(Place("highWatermark", (broker,)), value)
        events.append(Event((parse_pattern(name),), after=(seen,), source=name))
    declared = Mapping(
        declared=True,
        silent=(parse_pattern("SendFetch"),),
        limits=Limits(2),
        start=Start("any", ghosts, ()),
    )
    return Judge(spec, declared, ["HighWatermarkWithinLog", "OneLeaderPerEpoch"]), events


def test_three_brokers_with_thirty_epochs_and_offsets_to_3000() -> None:
    judge, events = large()
    found = judge.judge(Recording("large", tuple(events)))
    assert found.verdict is Verdict.PASS, found.reason
    lie = structs.replace(events[2], after=(Part(Place("highWatermark", ("b1",)), 7),))
    found = judge.judge(Recording("large", (*events[:2], lie, *events[3:])))
    assert (found.verdict, found.explained) == (Verdict.FAIL, 2)
    unknown = Event((ActionPattern("Crash"),), source="crash")
    found = judge.judge(Recording("large", (events[0], unknown)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("instances of the action" in hint for hint in found.decide)
