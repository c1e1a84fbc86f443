"""The constants of a group model, as values, with what a test wants to be different."""

from __future__ import annotations

from conformance.systems.group import GroupSystem, create
from conformance.tla import Action, Fn, Value


def constants(**changed: Value) -> dict[str, Value]:
    """Two dynamic members with two ids each, for two partitions; nothing fails."""
    names = ("m1", "m2")
    given: dict[str, Value] = {
        "Members": frozenset(names),
        "InstanceOf": Fn(dict.fromkeys(names, "none")),
        "MemberIds": tuple(
            Fn({"id": f"{name}-{number}", "member": name}) for name in names for number in (1, 2)
        ),
        "Generations": frozenset(range(6)),
        "Partitions": frozenset({0, 1}),
        "Protocols": frozenset({"range"}),
        "ProtocolsOf": Fn(dict.fromkeys(names, frozenset({"range"}))),
        "MaxSize": 3,
        "InitialDelays": 0,
        "RequireKnownMemberId": False,
        "Heartbeats": True,
        "LateRequests": False,
    }
    assert changed.keys() <= given.keys()
    return {**given, **changed}


def started(**changed: Value) -> GroupSystem:
    """A system in its initial state."""
    system = create(constants(**changed))
    system.reset({})
    return system


def actions(text: str) -> list[Action]:
    """`SendJoinGroup m1, FailOver` as actions; an argument in braces is a set of strings."""
    return [_action(*step.split()) for step in text.split(",") if step.strip()]


def _action(name: str, *args: str) -> Action:
    values: list[Value] = [
        frozenset(arg.strip("{}").split("|")) if arg.startswith("{") else arg for arg in args
    ]
    return Action(name, tuple(values))


def alone(name: str = "m1") -> str:
    """How the first member of a group gets to consume."""
    return (
        f"SendJoinGroup {name}, HandleJoinGroup {name}, ExpireInitialDelay,"
        f"ProcessJoinGroup {name}, HandleSyncGroup {name}, ProcessSyncGroup {name},"
        f"CompleteJoin {name},"
    )
