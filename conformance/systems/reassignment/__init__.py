"""spec/Reassignment.tla meets impl: a leader whose replicas leave, and the controller."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.reassignment.system import ReassignmentSystem, create

__all__ = ["ReassignmentSystem", "create"]
