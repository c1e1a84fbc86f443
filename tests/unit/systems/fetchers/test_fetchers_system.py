"""The adapter of a follower's fetcher threads."""

from __future__ import annotations

import pytest

from conformance.systems.fetchers import FetchersSystem, create
from conformance.systems.protocol import (
    ActionRefused,
    Interruptible,
    Offers,
    Snapshots,
    SystemUnderTest,
)
from conformance.tla import Action, Fn, Value

CONSTANTS: dict[str, Value] = {
    "Partitions": frozenset({0, 1}),
    "Leaders": frozenset({"b1"}),
    "PoolSizes": frozenset({1, 2}),
    "MaxOffset": 2,
    "HighWatermark": 1,
}
BOTH = (("AddFetcher", 0, "b1"), ("AddFetcher", 1, "b1"))
ASKED = (*BOTH, ("SendFetch", "b1", 0))


def after(*steps: tuple[Value, ...]) -> FetchersSystem:
    """A system that has taken these steps."""
    system = create(CONSTANTS)
    system.reset({})
    for name, *args in steps:
        system.apply(Action(str(name), tuple(args)))
    return system


def followed(system: FetchersSystem, partition: int, field: str) -> Value:
    states = system.observe()["followed"]
    assert isinstance(states, Fn)
    state = states[partition]
    assert isinstance(state, Fn)
    return state[field]


def test_it_offers_what_the_harness_can_use() -> None:
    for capability in (SystemUnderTest, Snapshots, Offers, Interruptible):
        assert isinstance(create(CONSTANTS), capability)


def test_one_partition_fails_and_the_other_goes_on() -> None:
    system = after(*ASKED, ("AnswerFetch", "b1", 0, 0, "broken"))
    observed = system.observe()
    assert observed["failed"] == frozenset({0})
    assert observed["logEnd"] == Fn({0: 1, 1: 2})
    assert followed(system, 0, "leader") == "none"
    assert followed(system, 1, "lag") == 0


def test_a_corrupt_record_is_fetched_again_after_a_pause() -> None:
    system = after(*ASKED, ("AnswerFetch", "b1", 0, 1, "corrupt"))
    assert followed(system, 1, "delayed") is True
    system.apply(Action("PassBackoff", ()))
    assert followed(system, 1, "delayed") is False
    assert Action("SendFetch", ("b1", 0)) in system.offers()


def test_a_thread_that_has_ended_keeps_its_partitions_and_fetches_nothing() -> None:
    system = after(*BOTH, ("EndThread", "b1", 0))
    observed = system.observe()
    assert observed["threads"] == Fn({"b1": Fn({0: "ended", 1: "none"})})
    gauges = observed["gauges"]
    assert isinstance(gauges, Fn)
    assert gauges["dead"] == 1
    assert followed(system, 0, "leader") == "b1"
    assert system.offers() == frozenset()
    with pytest.raises(ActionRefused):
        system.apply(Action("SendFetch", ("b1", 0)))


def test_a_partition_that_moves_to_another_thread_is_not_answered_in_the_old_one() -> None:
    system = after(*ASKED, ("Resize", 2), ("AnswerFetch", "b1", 0, 0, "records"))
    assert system.observe()["logEnd"] == Fn({0: 2, 1: 1})
    assert followed(system, 1, "fetcher") == 1


def test_nothing_is_answered_that_was_not_asked() -> None:
    with pytest.raises(ActionRefused):
        after(*BOTH, ("AnswerFetch", "b1", 0, 0, "records"))
