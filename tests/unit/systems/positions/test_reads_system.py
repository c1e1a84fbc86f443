"""The adapter of a consumer's positions."""

from __future__ import annotations

import pytest

from conformance.systems.positions import ReadsSystem, create
from conformance.systems.protocol import ActionRefused, Interruptible, Snapshots, SystemUnderTest
from conformance.tla import Action, Fn, Value

CONSTANTS: dict[str, Value] = {
    "Partitions": frozenset({1}),
    "GroupAssigns": False,
    "InitialLog": (1, 1),
    "InitialEpoch": 1,
    "Committed": (Fn({"offset": 1, "epoch": 1}),),
    "Policy": "earliest",
    "MaxFetch": 2,
    "MaxPoll": 1,
}
LOOKED_UP = "Assign, Poll, AnswerLookup, Poll"
READS = f"{LOOKED_UP}, Poll, Answer 1, Poll"
ARGUMENTS: dict[str, tuple[Value, ...]] = {"Assign": (frozenset({1}),), "AnswerLookup": (True,)}


def after(path: str, **changed: Value) -> ReadsSystem:
    """A system that has taken these steps."""
    system = create(CONSTANTS | changed)
    assert isinstance(system, ReadsSystem)
    system.reset({})
    for step in path.split(", "):
        name, *words = step.split()
        args = tuple(int(word) if word.isdigit() else word for word in words)
        system.apply(Action(name, args or ARGUMENTS.get(name, ())))
    return system


def test_it_offers_what_the_harness_can_use() -> None:
    for capability in (SystemUnderTest, Interruptible, Snapshots):
        assert isinstance(create(CONSTANTS), capability)


def requests(system: ReadsSystem) -> list[Value]:
    """Kinds of the requests in flight."""
    sent = system.observe()["sent"]
    assert isinstance(sent, tuple)
    return [each["kind"] for each in sent if isinstance(each, Fn)]


@pytest.mark.parametrize(
    ("path", "changed", "state", "kinds"),
    [
        pytest.param("Assign, Poll", {}, "INITIALIZING", [], id="looks-up"),
        pytest.param(LOOKED_UP, {}, "AWAIT_VALIDATION", [], id="committed"),
        pytest.param(f"{LOOKED_UP}, Poll", {}, "AWAIT_VALIDATION", ["epochs"], id="asks"),
        pytest.param(READS, {}, "FETCHING", ["fetch"], id="fetches"),
        pytest.param(
            f"{READS}, Elect 1 0, Answer 1, Poll, UpdateMetadata 0, Poll, Answer 2",
            {},
            "AWAIT_RESET",
            ["fetch"],
            id="truncated",
        ),
        pytest.param(
            LOOKED_UP,
            {"Committed": (Fn({"offset": -1, "epoch": 0}),)},
            "AWAIT_RESET",
            ["list"],
            id="policy",
        ),
    ],
)
def test_a_partition_comes_to_its_position(
    path: str, changed: dict[str, Value], state: str, kinds: list[str]
) -> None:
    system = after(path, **changed)
    (tps,) = system.observe()["tps"]  # type: ignore[misc]
    assert (tps["state"], requests(system)) == (state, kinds)


def test_a_poll_hands_out_what_was_fetched_once() -> None:
    system = after(f"{READS}, Answer 1, Poll")
    handed_out = Fn({"records": (Fn({"partition": 1, "offset": 1}),), "error": "none"})
    assert system.observe()["result"] == handed_out
    system.apply(Action("Poll", ()))
    assert system.observe()["result"] == Fn({"records": (), "error": "none"})


def test_without_position_and_policy_the_application_learns_it() -> None:
    system = after(LOOKED_UP, Policy="none", Committed=(Fn({"offset": -1, "epoch": 0}),))
    assert system.observe()["result"] == Fn({"records": (), "error": "NO_OFFSET"})


@pytest.mark.parametrize("step", ["Answer 1", "Fail 1 NETWORK_EXCEPTION", "AnswerLookup"])
def test_what_nobody_asked_for_is_refused(step: str) -> None:
    with pytest.raises(ActionRefused):
        after(f"Assign, {step}")
