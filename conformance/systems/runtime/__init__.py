"""spec/CoordinatorStore.tla and the modules beside it meet impl/coordinator.

Each broker has a shard, of which actions name the events.
"""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.runtime.system import RuntimeSystem
from conformance.systems.runtime.tasks import TasksSystem
from conformance.systems.runtime.timed_groups import TimedGroupsSystem
from conformance.tla import Value

__all__ = ["RuntimeSystem", "TasksSystem", "TimedGroupsSystem", "create"]


def create(constants: Mapping[str, Value]) -> RuntimeSystem:
    """The system for a model's constants: those of CoordinatorTasks.tla have `Sessions`, those of
    CoordinatorGroupTimers.tla `TimedMembers`."""
    if "Sessions" in constants:
        return TasksSystem(constants)
    return (TimedGroupsSystem if "TimedMembers" in constants else RuntimeSystem)(constants)
