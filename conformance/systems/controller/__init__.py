"""The adapter that lets spec/ControllerRequests.tla drive impl/controller and brokers."""

from conformance.systems.controller.system import ControllerSystem, create

__all__ = ["ControllerSystem", "create"]
