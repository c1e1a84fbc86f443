"""spec/DelayedOperations.tla meets impl/purgatory: its threads, section by section."""

from conformance.systems.delayed.system import DelayedOperationsSystem, create

__all__ = ["DelayedOperationsSystem", "create"]
