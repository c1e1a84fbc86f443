"""spec/CoordinatorStore.tla and CoordinatorTransactions.tla meet impl/coordinator.

Each broker has a shard, of which actions name the events.
"""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.runtime.system import RuntimeSystem
from conformance.systems.runtime.tasks import TasksSystem
from conformance.tla import Value

__all__ = ["RuntimeSystem", "TasksSystem", "create"]


def create(constants: Mapping[str, Value]) -> RuntimeSystem:
    """The system for a model's constants; those of CoordinatorTasks.tla have `Sessions`."""
    return TasksSystem(constants) if "Sessions" in constants else RuntimeSystem(constants)
