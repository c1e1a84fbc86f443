"""Steps of coordinators and partitions that take turns, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.systems.protocol import ActionRefused, Choosing, Interruptible, Snapshots
from conformance.systems.transaction import TransactionSystem, create
from conformance.systems.transaction.step_clock import StepClock
from conformance.systems.transaction.threads import concurrent, in_parts
from conformance.tla import Action, Fn, Value

CONSTANTS: Mapping[str, Value] = {
    "Clients": frozenset({"a", "b"}),
    "Partitions": frozenset({"p"}),
    "OffsetsPartitions": frozenset(),
    "Coordinators": frozenset({"c1", "c2"}),
    "Version2": True,
    "Verification": True,
    "StrictMarkers": True,
    "Late": frozenset({"EndTxn"}),
    "MaxEpoch": 2,
    "MaxLeaderChanges": 0,
    "TimeOuts": True,
    "LoadIsReplicated": True,
}
OPEN = """BeginTransaction a, SendBatch a p, StartVerification p 1 0, AddPartitionOfLeader c1 p,
AcknowledgeAppend c1 1, Verify c1 p, AppendBatch p 1 0"""


def action(words: str) -> Action:
    """`HandleEndTxn c1 1 TRUE` as an action."""

    def value(word: str) -> Value:
        return int(word) if word.isdigit() else {"TRUE": True, "FALSE": False}.get(word, word)

    name, *args = words.split()
    return Action(name, tuple(map(value, args)))


def after(path: str, **constants: Value) -> TransactionSystem:
    system = create({**CONSTANTS, **constants})
    assert isinstance(system, TransactionSystem)
    assert system.make_interruptible()
    system.reset({"leader": "c1"})
    for step in path.split(","):
        system.apply(action(step))
    return system


def coordinator(system: TransactionSystem, name: str = "c1") -> Mapping[Value, Value]:
    known = system.observe()["coordinators"]
    assert isinstance(known, Fn)
    entry = known[name]
    assert isinstance(entry, Fn)
    return entry


def records(system: TransactionSystem) -> list[Value]:
    """Each record's state, and whose request it comes from."""
    log = system.observe()["transactionLog"]
    assert isinstance(log, tuple)
    return [(r["state"], r["client"], r["request"]) for r in log if isinstance(r, Fn)]


def stops(system: TransactionSystem, running: str, between: str) -> list[tuple[str, list[Value]]]:
    """Where the one step stands still, and what is in the log after both, at each point."""
    start, seen, point = system.snapshot(), [], 1
    while place := system.interrupt(action(running), point, action(between)):
        seen.append((place, records(system)))
        system.restore(start)
        point += 1
    return seen


def test_it_offers_what_the_harness_can_use() -> None:
    system = create(CONSTANTS)
    for capability in (Interruptible, Snapshots):
        assert isinstance(system, capability)


@pytest.mark.parametrize("sequence", [0, 1])
def test_the_coordinator_is_asked_about_the_batch_that_is_chosen(sequence: int) -> None:
    path = """BeginTransaction a, SendBatch a p, SendBatch a p, StartVerification p 1 0,
    StartVerification p 1 1, AddPartitionOfLeader c1 p, AcknowledgeAppend c1 1"""
    system = after(path, OffsetsPartitions=frozenset({"p"}))
    assert isinstance(system, Choosing)
    batches = system.observe()["verifying"]
    assert isinstance(batches, frozenset)
    batch = {
        v["batch"]["sequence"]: v["batch"]
        for v in batches
        if isinstance(v, Fn) and isinstance(v["batch"], Fn)
    }
    chosen = Fn({"batch": batch[sequence], "isVerified": True})

    system.choose({"verifying": frozenset({chosen})})
    system.apply(action("Verify c1 p"))

    other = Fn({"batch": batch[1 - sequence], "isVerified": False})
    assert system.observe()["verifying"] == {chosen, other}


def test_a_request_stands_still_at_each_lock_that_kafka_takes() -> None:
    system = after(f"{OPEN}, EndTransaction a FALSE")
    points = [place for place, _ in stops(system, "HandleEndTxn c1 1 FALSE", "TakeEnd a c2")]
    assert (
        points
        == [
            "start",
            "lock transaction-state to read",
            "lock transaction-t",
            "lock transaction-state to read",
            "lock transaction-t",
        ][1:]
    )


def test_records_name_the_step_that_has_made_them_whoever_came_in_between() -> None:
    system = after(
        "BeginTransaction a, SendBatch a p, StartVerification p 1 0", Late=frozenset({"Produce"})
    )
    seen = stops(system, "HandleInitProducerId c1 b", "AddPartitionOfLeader c1 p")
    first = ("Empty", "a", 0)
    assert [log for _, log in seen] == [
        [first, ("Ongoing", "none", 0)],
        [first, ("Ongoing", "none", 0)],
        [first, ("Empty", "b", 0)],
        [first, ("Empty", "b", 0)],
    ]


def test_a_time_out_leaves_a_transaction_alone_that_ends_meanwhile() -> None:
    system = after(f"{OPEN}, EndTransaction a TRUE", Clients=frozenset({"a"}))
    pending = []
    start, point = system.snapshot(), 1
    while system.interrupt(action("BeginFence c1"), point, action("HandleEndTxn c1 1 TRUE")):
        pending.append(coordinator(system)["pending"])
        system.restore(start)
        point += 1
    assert pending == ["PrepareCommit", "PrepareCommit", "PrepareCommit"]


def test_a_commit_amid_a_fence_is_refused_as_kafka_cannot_prepare_it() -> None:
    system = after(f"{OPEN}, EndTransaction a TRUE, BeginFence c1")
    with pytest.raises(ActionRefused, match="a commit comes amid a fence"):
        system.apply(action("HandleEndTxn c1 1 TRUE"))
    assert coordinator(system)["pending"] == "Fence"


@pytest.mark.parametrize("elected", ["c1", "c2"])
def test_what_was_prepared_is_not_appended_when_an_election_was_faster(elected: str) -> None:
    system = after(f"{OPEN}, EndTransaction a FALSE")
    before = records(system)
    seen = stops(system, "HandleEndTxn c1 1 FALSE", f"Elect {elected} 2")
    assert [log for _, log in seen] == [before] * len(seen)


def test_whoever_is_elected_has_what_is_replicated() -> None:
    system = after(OPEN)
    with pytest.raises(ActionRefused, match="what is replicated"):
        system.apply(action("Elect c2 1"))


def test_markers_of_an_earlier_term_arrive_only_if_markers_may_be_late() -> None:
    path = f"{OPEN}, EndTransaction a FALSE, HandleEndTxn c1 1 FALSE"
    for late, arrives in ((frozenset({"Marker"}), True), (frozenset[Value](), False)):
        system = after(path, Late=late)
        system.interrupt(action("AcknowledgeAppend c1 1"), 1, action("Elect c2 3"))
        requests = system.observe()["requests"]
        assert isinstance(requests, frozenset)
        kinds = {request["type"] for request in requests if isinstance(request, Fn)}
        assert ("Marker" in kinds) is arrives


@pytest.mark.parametrize(
    ("running", "between", "meet"),
    [
        ("HandleEndTxn c1 1 TRUE", "AcknowledgeAppend c1 1", True),
        ("HandleEndTxn c1 1 TRUE", "AcknowledgeAppend c2 1", False),
        ("HandleEndTxn c1 1 TRUE", "Elect c2 1", True),
        ("CompleteTransaction c1", "Elect c1 1", True),
        ("CompleteTransaction c1", "Elect c2 1", False),
        ("Elect c1 1", "HandleEndTxn c1 1 TRUE", False),
        ("AcknowledgeMarker c1 p", "AcknowledgeMarker c1 q", False),
        ("AcknowledgeMarker c1 p", "TakeEnd a c1", True),
        ("TakeAdded a c1 p", "TakeAdded a c1 q", False),
        ("AppendBatch p 1 0", "WriteMarker p 1 1", True),
        ("AppendBatch p 1 0", "WriteMarker q 1 1", False),
        ("AppendBatch p 1 0", "StopLeader p", False),
        ("ElectLeader p 0", "WriteMarker p 1 1", True),
        ("ElectLeader p 0", "WriteMarker q 1 1", False),
        ("ElectLeader p 0", "Replicate p", False),
        ("AppendBatch p 1 0", "HandleEndTxn c1 1 TRUE", False),
        ("SendBatch a p", "HandleEndTxn c1 1 TRUE", False),
    ],
)
def test_whose_threads_meet(running: str, between: str, meet: bool) -> None:
    assert concurrent(action(running), action(between)) is meet


@pytest.mark.parametrize(
    ("running", "between", "is_seen"),
    [
        ("AcknowledgeAppend c1 1", "Elect c1 2", True),
        ("AcknowledgeAppend c1 1", "Elect c2 2", False),
        ("HandleEndTxn c1 1 TRUE", "Elect c1 2", False),
    ],
)
def test_an_election_of_the_same_broker_sees_a_call_back_in_parts(
    running: str, between: str, is_seen: bool
) -> None:
    assert in_parts(action(running), action(between)) is is_seen


def test_each_of_two_steps_goes_on_in_its_own_time() -> None:
    whose = "running"
    clock = StepClock(lambda: whose)
    clock.sleep(1)
    first = clock.milliseconds()
    whose = "between"
    clock.sleep(1)
    assert clock.milliseconds() == first + 1
    whose = "running"
    assert clock.milliseconds() == first
    clock.sleep(1)
    assert clock.milliseconds() == first + 2
