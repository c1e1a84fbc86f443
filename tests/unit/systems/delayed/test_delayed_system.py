"""The adapter of delayed operations: threads that are stepped from section to section."""

from __future__ import annotations

import pytest

from conformance.systems.delayed import DelayedOperationsSystem, create
from conformance.systems.delayed.sections import Role, SectionKind, ThreadState, kind_of
from conformance.systems.protocol import ActionRefused, Interruptible, Offers, SystemUnderTest
from conformance.tla import Action, Fn, Value

ONE_OPERATION: dict[str, Value] = {
    "Operations": frozenset({"o1"}),
    "Keys": frozenset({"k1", "k2"}),
    "KeysOf": Fn({"o1": ("k1", "k2")}),
    "Needs": Fn({"o1": 1}),
    "LockOf": Fn({"o1": "o1 lock"}),
    "Triggers": Fn({"o1": "no key"}),
    "Completers": Fn({"c1": "k2"}),
    "Cancellers": (),
    "PurgeInterval": 0,
}
REGISTERED = "Acquire o1, Look o1, Watch o1, Watch o1, Count o1, Look o1, Release o1, AddTimer o1"


def actions(path: str) -> list[Action]:
    """`Acquire o1, AdvanceClock 1` as actions."""
    steps = [step.split() for step in path.split(",")]
    return [Action(name, (int(of) if of.isdigit() else of,)) for name, of in steps]


def after(path: str) -> DelayedOperationsSystem:
    """A system that has taken these steps."""
    system = create(ONE_OPERATION)
    system.reset({})
    for action in actions(path) if path else []:
        system.apply(action)
    return system


def test_it_offers_what_the_harness_can_use() -> None:
    system = create(ONE_OPERATION)
    assert isinstance(system, SystemUnderTest)
    assert isinstance(system, Offers)
    assert isinstance(system, Interruptible)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", {"ready": frozenset(), "watched": 0, "present": ()}),
        (REGISTERED, {"watched": 2, "timer": ("o1",), "estimate": 1, "present": ("k1", "k2")}),
        (
            f"{REGISTERED}, Event c1, Snapshot c1, Acquire c1, Look c1, Claim c1",
            {"completed": frozenset({"o1"}), "called": Fn({"o1": 0}), "timer": ("o1",)},
        ),
        (
            f"{REGISTERED}, Event c1, Snapshot c1, Acquire c1, Look c1, Claim c1, Finish c1,"
            "Drop c1",
            {"called": Fn({"o1": 1}), "timer": (), "lists": Fn({"k1": ("o1",), "k2": ()})},
        ),
        (
            f"{REGISTERED}, AdvanceClock 1, TakeDue executor, SetEstimate reaper, Claim executor,"
            "Finish executor, OnExpiration executor",
            {"called": Fn({"o1": 1}), "expired": Fn({"o1": 1}), "estimate": 0},
        ),
    ],
    ids=["new", "registered", "claimed", "answered", "expired"],
)
def test_what_is_observed(path: str, shown: dict[str, Value]) -> None:
    observed = after(path).observe()
    assert {variable: observed[variable] for variable in shown} == shown


@pytest.mark.parametrize(
    ("path", "action", "why"),
    [
        ("", "Watch o1", "would take Acquire next"),
        ("Acquire o1, Look o1", "AddTimer o1", "would take Watch next"),
        ("", "TakeDue executor", "nothing is due"),
        ("", "AdvanceClock 1", "0 operations wait"),
        (f"{REGISTERED}, Event c1, Snapshot c1, Acquire c1", "Release c1", "would take Look next"),
        (REGISTERED, "Acquire o1", "has ended"),
    ],
)
def test_a_thread_that_stands_elsewhere_refuses(path: str, action: str, why: str) -> None:
    system = after(path)
    with pytest.raises(ActionRefused, match=why):
        system.apply(actions(action)[0])


def test_offered_is_what_no_other_thread_holds_up() -> None:
    system = after("Acquire o1, Look o1, Watch o1, Watch o1, Count o1, Event c1, Snapshot c1")
    assert system.offers() == {Action("Look", ("o1",))}  # c1 waits for the lock that o1 holds
    with pytest.raises(ActionRefused, match="another thread holds"):
        system.apply(Action("Acquire", ("c1",)))


def test_an_interrupted_section_goes_on_where_the_other_needs_its_lock() -> None:
    """Watch stands before the list, with the shard locked, which Snapshot needs."""
    system = after("Acquire o1, Look o1, Watch o1, Event c1")
    stood_at = system.interrupt(Action("Watch", ("o1",)), 1, Action("Snapshot", ("c1",)))
    assert stood_at == "lock watchers of k2"
    assert system.observe()["watched"] == 2


@pytest.mark.parametrize(
    ("point", "kind"),
    [
        ("lock o1 lock", SectionKind.OPERATION),
        ("lock o1 completed", SectionKind.COMPLETED),
        ("lock watchers of k1", SectionKind.LIST),
        ("lock delayed shard 0", SectionKind.SHARD),
        ("finished", SectionKind.FINISHED),
    ],
)
def test_points_have_kinds(point: str, kind: SectionKind) -> None:
    assert kind_of(point) is kind


def test_the_same_lock_begins_other_actions_of_other_threads() -> None:
    completer = ThreadState("c1", Role.COMPLETER)
    assert completer.next_action(SectionKind.STATE) == "Event"
    completer.begin("Event", "lock state")
    assert completer.next_action(SectionKind.SHARD) == "Snapshot"
    completer.begin("Snapshot", "lock delayed shard 0")
    assert completer.next_action(SectionKind.SHARD) == "Forget"
    assert ThreadState("o1", Role.REQUEST).next_action(SectionKind.SHARD) == "Watch"
    assert ThreadState("x1", Role.CANCELLER).next_action(SectionKind.SHARD) == "RemoveList"
