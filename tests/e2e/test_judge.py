"""What is seen of Kafka's protocols is judged as TLC does; lies are found; offsets may be large."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest
from msgspec import structs

from conformance.judge.budget import JudgeLimits
from conformance.judge.events import Event, Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping, MappingStart
from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.tla import (
    Action,
    ActionPattern,
    ObservedPart,
    Place,
    State,
    Value,
    find_tools,
    make_function,
    make_record,
    parse_pattern,
    value_at,
)
from conformance.verdict import Verdict
from tests.differential.judge.mutations import mutants, proves
from tests.differential.judge.referee import referee

pytestmark = pytest.mark.tlc

UNSEEN = ("SendJoinGroup", "ProcessJoinGroup", "ProcessSyncGroup", "SendHeartbeat", "CompleteJoin")
COORDINATOR = ("groupState", "generation", "members", "awaitingJoin", "leader")
STEPS = 3
DECLARED = Mapping(
    declared=True, silent=tuple(map(ActionPattern, UNSEEN)), limits=JudgeLimits(STEPS, 50_000, 60)
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
            parts = tuple(ObservedPart(Place(name), values[name]) for name in variables)
            events.append(Event((ActionPattern(action.name),), after=parts, source=str(seed)))
    return Recording(str(seed), tuple(events), str(seed))


@pytest.mark.parametrize(
    ("variables", "each"),
    [(COORDINATOR, None), (COORDINATOR[:1], None), (COORDINATOR, 1)],
    ids=["five variables", "one variable", "one unseen step of each process"],
)
def test_tlc_explains_as_many_events_of_each_recording(
    variables: Sequence[str], each: int | None
) -> None:
    originals = [one for seed in range(12) if (one := view(seed, variables)).events]
    recordings = [*originals, *(one.recording for one in mutants(originals, 40, seed=3))]
    silent, limits = DECLARED.silent, replace(DECLARED.limits, each=each)
    judge = Judge(group().spec, replace(DECLARED, limits=limits))
    found = [judge.judge(one) for one in recordings]
    with Processes() as running:
        tools, options = find_tools(), TlcOptions()
        other = referee(group(), recordings, silent, STEPS, tools, options, running, each=each)
    assert list(other.explained) == [one.explained for one in found]
    verdicts = [one.verdict for one in found[: len(originals)]]
    assert (set(verdicts) == {Verdict.PASS}) is (each is None)
    assert Verdict.FAIL in [one.verdict for one in found]


def test_a_lie_is_found_at_its_event() -> None:
    judge, found = Judge(group().spec, DECLARED), 0
    for seed in range(20):
        recording = view(seed, COORDINATOR)
        for at, event in enumerate(recording.events):
            lie = structs.replace(event, after=(ObservedPart(Place("generation"), 7),))
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
    snapshot = [
        ObservedPart(Place(name), value) for name, value in state.items() if name not in ghosts
    ]
    events = [Event(after=tuple(snapshot))]
    for name, broker, value in (
        ("AppendAsLeader", "b1", RECORDS),
        ("HandleFetch", "b1", RECORDS),
        ("ProcessFetchResponse", "b1", RECORDS),
        ("ElectLeader", "b2", RECORDS),
        ("BecomeLeader", "b2", RECORDS),
    ):
        seen = ObservedPart(Place("highWatermark", (broker,)), value)
        events.append(Event((parse_pattern(name),), after=(seen,), source=name))
    declared = Mapping(
        declared=True,
        silent=(parse_pattern("SendFetch"),),
        limits=JudgeLimits(2),
        start=MappingStart("any", ghosts, ()),
    )
    return Judge(spec, declared, ["HighWatermarkWithinLog", "OneLeaderPerEpoch"]), events


def test_three_brokers_with_thirty_epochs_and_offsets_to_3000() -> None:
    judge, events = large()
    found = judge.judge(Recording("large", tuple(events)))
    assert found.verdict is Verdict.PASS, found.reason
    lie = structs.replace(events[2], after=(ObservedPart(Place("highWatermark", ("b1",)), 7),))
    found = judge.judge(Recording("large", (*events[:2], lie, *events[3:])))
    assert (found.verdict, found.explained) == (Verdict.FAIL, 2)
    unknown = Event((ActionPattern("Crash"),), source="crash")
    found = judge.judge(Recording("large", (events[0], unknown)))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("instances of the action" in hint for hint in found.decide)


def leader_that_lags(*told: str) -> Recording:
    """Both followers are fenced; then the leader hears of their registrations."""
    actions = 'AppendAsLeader("b1", 0)', 'FenceBroker(1, "b3", "b1")', 'FenceBroker(1, "b2", "b1")'
    events = [Event((parse_pattern(one),), source=one) for one in (*actions, *told)]
    return Recording("lags", tuple(events))


def test_a_leader_adopts_registrations_in_their_order_however_late() -> None:
    (model,) = find_models(["replication/recorded-fine-3b"])
    constants = {**model.constants, "PartitionEpochs": "0..2"}
    spec = bound(replace(model, constants=constants), find_tools()).spec
    judge = Judge(spec, Mapping(declared=True))
    first, second = 'UpdateIsrLate("b1", 1, 1)', 'UpdateIsr("b1", 1)'
    assert judge.judge(leader_that_lags(first, second)).verdict is Verdict.PASS
    assert judge.judge(leader_that_lags(second)).verdict is Verdict.PASS
    for wrong in ((second, first), (first, first), (second, second)):
        found = judge.judge(leader_that_lags(*wrong))
        assert (found.verdict, found.explained) == (Verdict.FAIL, 4)


# --- a newcomer's captures ------------------------------------------------------------------------

LIE = ObservedPart(Place("highWatermark", ("b1",)), 777)
"""No behaviour of the model shows it."""


@cache
def replication() -> PreparedModel:
    (model,) = find_models(["replication/truncate-on-fetch-fine-2b-1-record"])
    return bound(model, find_tools())


def captured(seed: int, length: int = 9) -> tuple[State, list[tuple[Action, State]]]:
    """A behaviour of two brokers that replicate."""
    rng, spec = random.Random(seed), replication().spec
    state = rng.choice(list(spec.initial_states()))
    first, steps = state, []
    while len(steps) < length and (choices := spec.successors(state)):
        action, state = rng.choice(choices)
        steps.append((action, state))
    return first, steps


def parts(state: State, *, broker: str | None = None) -> tuple[ObservedPart, ...]:
    """The state; or what one broker can see of it."""
    values = dict(zip(replication().spec.variables, state, strict=True))
    if broker is None:
        return tuple(ObservedPart(Place(name), value) for name, value in values.items())
    places = [Place(name, (broker,)) for name in ("log", "highWatermark")]
    return tuple(
        ObservedPart(p, found) for p in places if (found := value_at(values[p.variable], p.path))
    )


def step(action: Action, after: State, *, name_only: bool = False) -> Event:
    pattern = ActionPattern(action.name, None if name_only else action.args)
    return Event((pattern,), after=parts(after), source=str(action))


Capture = tuple[list[Event], Mapping]


def declared(silent: Sequence[str], row: int, start: MappingStart | None = None) -> Mapping:
    patterns = tuple(map(ActionPattern, sorted(set(silent))))
    limits = JudgeLimits(row, 50_000, 60)
    return Mapping(declared=True, silent=patterns, limits=limits, start=start or MappingStart())


def everything() -> list[str]:
    return [action.name for action in replication().spec.actions]


def hidden_steps(seed: int) -> Capture:
    _, steps = captured(seed)
    hidden = [name for name in everything() if name.startswith(("Send", "Process"))]
    events = [step(action, after) for action, after in steps if action.name not in hidden]
    return events, declared(hidden, len(steps))


def one_broker(seed: int) -> Capture:
    first, steps = captured(seed, 6)
    seen = [Event(after=parts(state, broker="b1")) for state in (first, *(s for _, s in steps))]
    return seen, declared(everything(), 1)


def from_the_middle(seed: int) -> Capture:
    _, steps = captured(seed)
    events = [Event(after=parts(steps[3][1])), *(step(*one) for one in steps[4:])]
    return events, declared((), 0, MappingStart("any"))


def snapshots(seed: int) -> Capture:
    first, steps = captured(seed, 6)
    states = [first, *(state for _, state in steps)]
    return [Event(after=parts(state)) for state in states[::2]], declared(everything(), 2)


def no_arguments(seed: int) -> Capture:
    _, steps = captured(seed)
    return [step(*one, name_only=True) for one in steps], declared((), 0)


CAPTURES = (hidden_steps, one_broker, from_the_middle, snapshots, no_arguments)


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.__name__)
def test_no_capture_of_what_may_be_is_called_wrong_and_a_lie_in_it_is(
    capture: Callable[[int], Capture],
) -> None:
    """Three brokers with offsets to 3,000 have a test of their own, above."""
    spec = replication().spec
    for seed in range(3):
        events, mapping = capture(seed)
        judge, nothing_said = Judge(spec, mapping), Judge(spec, Mapping())
        honest = Recording("honest", tuple(events))
        found = judge.judge(honest)
        if not any(event.actions or event.after for event in events):
            assert found.verdict is Verdict.INCONCLUSIVE, "nothing was seen"
            continue
        assert found.verdict is Verdict.PASS, found.reason
        assert nothing_said.judge(honest).verdict is not Verdict.FAIL
        at = len(events) - 1
        lie = structs.replace(events[at], after=(LIE,))
        wrong = Recording("lie", (*events[:at], lie))
        found = judge.judge(wrong)
        assert (found.verdict, found.explained) == (Verdict.FAIL, at)
        assert nothing_said.judge(wrong).verdict is Verdict.INCONCLUSIVE


def test_every_mutant_is_rejected_or_explained_with_a_proof() -> None:
    spec, judge = group().spec, Judge(group().spec, DECLARED)
    originals = [one for seed in range(30) if len((one := view(seed, COORDINATOR)).events) > 2]
    made = list(mutants(originals, 120, seed=5))
    assert len(made) == 120
    at_the_lie, explained = 0, 0
    for mutant in made:
        found = judge.judge(mutant.recording)
        assert found.explained >= mutant.at
        at_the_lie += found.verdict is Verdict.FAIL and found.explained == mutant.at
        if found.verdict is Verdict.PASS:
            assert found.explanation is not None
            events = mutant.recording.events
            assert proves(spec, DECLARED.silent, STEPS, events, found.explanation)
            explained += 1
    assert at_the_lie > 60
    assert explained < 30


def test_a_proof_is_one_only_if_every_step_is() -> None:
    spec = group().spec
    recording = view(3, COORDINATOR)
    found = Judge(spec, DECLARED).judge(recording)
    assert found.explanation is not None
    good, events = found.explanation, recording.events
    assert proves(spec, DECLARED.silent, STEPS, events, good)
    assert not proves(spec, DECLARED.silent, 0, events, good)
    assert not proves(spec, (), STEPS, events, good)
    assert not proves(spec, DECLARED.silent, STEPS, events[:-1], good)
    other = replace(good, states=(*good.states[:-1], good.initial))
    assert not proves(spec, DECLARED.silent, STEPS, events, other)
    assert not proves(spec, DECLARED.silent, STEPS, events, replace(good, initial=good.states[0]))
    lie = structs.replace(events[-1], after=(ObservedPart(Place("generation"), 77),))
    assert not proves(spec, DECLARED.silent, STEPS, (*events[:-1], lie), good)
