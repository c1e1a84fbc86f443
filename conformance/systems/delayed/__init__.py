"""spec/DelayedOperations.tla meets impl/purgatory: its threads, section by section."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.delayed.system import DelayedOperationsSystem, create

__all__ = ["DelayedOperationsSystem", "create"]
