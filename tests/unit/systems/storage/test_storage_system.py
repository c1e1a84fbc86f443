"""The adapter of a log on its disk, and what it needs of impl."""

from __future__ import annotations

import pytest

from conformance.systems.protocol import (
    ActionRefused,
    Interruptible,
    Offers,
    Snapshots,
    SystemUnderTest,
)
from conformance.systems.storage import StorageSystem, create
from conformance.tla import Action, Fn, Value

TWO_SEGMENTS = "AppendAsLeader, AppendAsLeader, AppendAsLeader"


def actions(path: str) -> list[Action]:
    """`RunTask 1, Start follower` as actions."""

    def value(word: str) -> Value:
        if word.isdigit():
            return int(word)
        return {"TRUE": True, "FALSE": False}.get(word, word)

    words = [step.split() for step in path.split(",")]
    return [Action(name, tuple(map(value, args))) for name, *args in words]


def after(path: str, retained: int = -1) -> StorageSystem:
    """A system that has taken these steps; its segments have two records."""
    system = create({"SegmentRecords": 2, "RetainedRecords": retained})
    system.reset({})
    for action in actions(path) if path else []:
        system.apply(action)
    return system


def segment(base: int, *records: int, durable: int = 0, torn: bool = False) -> Value:
    return Fn({"base": base, "records": records, "durable": durable, "torn": torn})


def test_it_offers_what_the_harness_can_use() -> None:
    system = create({"SegmentRecords": 2, "RetainedRecords": -1})
    for capability in (SystemUnderTest, Offers, Interruptible, Snapshots):
        assert isinstance(system, capability)


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        pytest.param(
            TWO_SEGMENTS,
            {"segments": (segment(0, 0, 0), segment(2, 0)), "tasks": ("flush-log",)},
            id="rolled",
        ),
        pytest.param(
            f"{TWO_SEGMENTS}, RunTask 1",
            {"segments": (segment(0, 0, 0, durable=2), segment(2, 0)), "recoveryPoint": 2},
            id="flushed-later",
        ),
        pytest.param(
            f"{TWO_SEGMENTS}, LosePower 1 1 TRUE",
            {
                "segments": (segment(0, 0, durable=1, torn=True), segment(2, 0, durable=1)),
                "tasks": (),
                "role": "down",
            },
            id="torn-in-the-middle",
        ),
        pytest.param(
            f"{TWO_SEGMENTS}, LosePower 1 1 TRUE, Start leader",
            {"segments": (segment(0, 0, durable=1),), "recoveryPoint": 0},
            id="nothing-behind-a-torn-segment",
        ),
        pytest.param(
            "AppendAsLeader, FailingShutdown",
            {"cleanShutdown": False, "recoveryPointFile": -1, "highWatermarkFile": 1},
            id="no-mark-if-a-log-cannot-be-flushed",
        ),
        pytest.param(
            "AppendAsLeader, Shutdown, FailToLoad",
            {"cleanShutdown": False, "recoveryPointFile": 1},
            id="no-mark-after-a-load-that-fails",
        ),
        pytest.param(
            f"{TWO_SEGMENTS}, TimePasses, AppendAsLeader, Retain",
            {"logStart": 2, "deleted": frozenset({0})},
            id="retention-by-time",
        ),
        pytest.param(
            f"{TWO_SEGMENTS}, TimePasses, Retain, Kill, Start leader",
            {"logStart": 3, "deleted": frozenset()},
            id="what-is-deleted-later-is-deleted-by-a-load",
        ),
    ],
)
def test_the_objects_are_shown_as_the_specs_values(path: str, variables: dict[str, Value]) -> None:
    observation = after(path).observe()
    assert {name: observation[name] for name in variables} == variables


@pytest.mark.parametrize(
    ("path", "message", "answer"),
    [
        ("AppendAsLeader", "CorruptBatch", "CORRUPT_MESSAGE"),
        ("AppendAsLeader", "BatchOfOtherOffset", "INVALID_RECORD"),
        ("AppendAsLeader", "DeleteAboveHighWatermark", "OFFSET_OUT_OF_RANGE"),
        ("AppendAsLeader, Elect follower", "OverlappingBatch", "UNEXPECTED_APPEND_OFFSET"),
        ("AppendAsLeader, Elect follower", "DisorderedBatches", "OFFSETS_OUT_OF_ORDER"),
    ],
)
def test_what_no_honest_peer_sends_changes_nothing(path: str, message: str, answer: str) -> None:
    before = dict(after(path).observe())
    observation = dict(after(f"{path}, Refuse {message}").observe())
    assert observation.pop("answer") == answer
    before.pop("answer")
    assert observation == before


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("NoSuchAction", id="unknown"),
        pytest.param("RunTask 1", id="nothing-waits"),
        pytest.param("Retain", id="nothing-to-delete"),
        pytest.param("DeleteRecords 1", id="nothing-committed"),
        pytest.param("Truncate 0", id="a-leader-follows-nobody"),
        pytest.param("Kill, AppendAsLeader", id="no-process"),
        pytest.param("Start leader", id="the-process-is-there"),
        pytest.param("Refuse OverlappingBatch", id="not-sent-to-a-leader"),
    ],
)
def test_what_the_broker_would_not_do_is_refused(path: str) -> None:
    with pytest.raises(ActionRefused):
        after(path)


def test_it_goes_back_to_where_it_was() -> None:
    system = after(TWO_SEGMENTS)
    kept, before = system.snapshot(), system.observe()
    for action in actions("RunTask 1, LosePower 2 0 TRUE, Start follower"):
        system.apply(action)

    system.restore(kept)

    assert dict(system.observe()) == dict(before)
