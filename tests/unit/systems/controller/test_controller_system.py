"""The adapter: a story from creation to a fail-over, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.systems.controller import ControllerSystem, create
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action, Fn, Value

CONSTANTS: Mapping[str, Value] = {
    "Replicas": ("b1", "b2"),
    "ControllerEpochs": frozenset({1, 2}),
    "LateRequests": True,
}


def new_system() -> ControllerSystem:
    system = create(CONSTANTS)
    system.reset({})
    return system


def take(system: ControllerSystem, *actions: tuple[str, *tuple[Value, ...]]) -> None:
    for name, *args in actions:
        system.apply(Action(name, tuple(args)))


def at(system: ControllerSystem, variable: str, *path: Value) -> Value:
    """A part of a variable; controllers are counted from 1."""
    value = system.observe()[variable]
    for key in path:
        value = value[key - 1] if isinstance(value, tuple) and isinstance(key, int) else value[key]  # type: ignore[index]
    return value


def test_a_topic_reaches_its_brokers_by_way_of_batch_queue_and_channel() -> None:
    system = new_system()
    take(system, ("CreateTopic", 1))
    assert at(system, "batch", 1, "leaderAndIsr", "b2", "isNew") is True
    take(system, ("SendRequestsToBrokers", 1))
    queued = at(system, "queue", 1, "b2")
    assert isinstance(queued, tuple)
    assert [one["type"] for one in queued if isinstance(one, Fn)] == [
        "LeaderAndIsr",
        "UpdateMetadata",
    ]
    assert system.offers() == {Action("SendRequest", (1, "b1")), Action("SendRequest", (1, "b2"))}
    take(system, ("SendRequest", 1, "b2"), ("HandleRequest", 1, "b2"))
    assert at(system, "channel", 1, "b2", "state") == "Answered"
    assert at(system, "partition", "b2", "fetching") is True
    take(system, ("ProcessResponse", 1, "b2"))
    assert at(system, "queue", 1, "b2") == queued[1:]


def test_a_late_request_of_a_replaced_controller_changes_nothing() -> None:
    system = new_system()
    take(system, ("CreateTopic", 1), ("SendRequestsToBrokers", 1), ("SendRequest", 1, "b1"))
    take(system, ("FailOver", 2), ("SendRequestsToBrokers", 2), ("Resign", 1))
    assert at(system, "late", "b1", "controllerEpoch") == 1
    take(system, ("SendRequest", 2, "b1"), ("HandleRequest", 2, "b1"))
    before = at(system, "partition", "b1")
    take(system, ("HandleLateRequest", "b1"))
    assert at(system, "partition", "b1") == before
    assert at(system, "seenController", "b1") == 2


@pytest.mark.parametrize(
    "action",
    [
        ("Unknown",),
        ("SendRequest", 1, "b1"),
        ("SendRequestsToBrokers", 2),
        ("HandleRequest", 1, "b1"),
        ("HandleLateRequest", "b1"),
        ("ProcessResponse", 1, "b1"),
    ],
)
def test_a_step_that_the_objects_cannot_take_is_refused(
    action: tuple[str, *tuple[Value, ...]],
) -> None:
    with pytest.raises(ActionRefused):
        take(new_system(), action)
