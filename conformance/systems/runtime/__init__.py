"""spec/CoordinatorStore.tla and CoordinatorTransactions.tla meet impl/coordinator.

Each broker has a shard, of which actions name the events.
"""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.runtime.system import RuntimeSystem, create

__all__ = ["RuntimeSystem", "create"]
