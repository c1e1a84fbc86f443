"""What a purgatory's objects hold, as the spec's values: the mapping of DelayedOperations.tla."""

from __future__ import annotations

from collections.abc import Callable

from conformance.systems.delayed.world import Operation, QueuedCheck, World
from conformance.systems.protocol import ActionRefused
from conformance.tla import Value, make_function


def _lists(world: World) -> Value:
    """Who waits for each key, in order."""
    watchers = {str(key): each for key, each in world.purgatory.watchers().items()}
    return make_function(
        {key: tuple(o.settings.name for o in watchers.get(key, ())) for key in world.keys}
    )


def _of_operations(world: World, show: Callable[[Operation], Value]) -> Value:
    return make_function({name: show(each) for name, each in world.operations.items()})


def _timer(world: World) -> Value:
    """Who waits for its time-out; the count that the purgatory tells has to agree."""
    names = {operation: name for name, operation in world.operations.items()}
    waiting = tuple(
        name
        for task in world.timer.pending()
        for operation, name in names.items()
        if operation is task
    )
    delayed = world.purgatory.num_delayed
    if delayed != len(waiting):
        raise ActionRefused(f"NumDelayedOperations is {delayed}, but {len(waiting)} wait")
    return waiting


OF_PURGATORY: dict[str, Callable[[World], Value]] = {
    "ready": lambda world: world.ready,
    "lists": _lists,
    "present": lambda world: tuple(map(str, world.purgatory.watchers())),
    "watched": lambda world: world.purgatory.watched,
    "timer": _timer,
    "estimate": lambda world: world.purgatory.estimated_total_operations,
    "completed": lambda world: frozenset(
        name for name, each in world.operations.items() if each.is_completed
    ),
    "called": lambda world: _of_operations(world, lambda each: each.called),
    "expired": lambda world: _of_operations(world, lambda each: each.expired),
    "actions": lambda world: tuple(
        action.key for action in world.actions.pending() if isinstance(action, QueuedCheck)
    ),
}
"""Each variable, and how the objects show it."""

VARIABLES = tuple(OF_PURGATORY)
"""Observed. Where threads stand and what they hold shows in the steps that they offer."""
