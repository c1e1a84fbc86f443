"""spec/CoordinatorStore.tla meets impl/coordinator: a shard on each broker, events by hand."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.runtime.system import RuntimeSystem, create

__all__ = ["RuntimeSystem", "create"]
