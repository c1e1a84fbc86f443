"""The adapter that lets spec/ControllerRequests.tla drive impl/controller and brokers."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.controller.system import ControllerSystem, create

__all__ = ["ControllerSystem", "create"]
