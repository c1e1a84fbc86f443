"""The system under test: controllers and brokers, driven by ControllerRequests.tla's actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from conformance.errors import UserError
from conformance.systems.controller.cluster import ControllerCluster
from conformance.systems.controller.cluster_view import ControllerView
from conformance.systems.controller.observation import VARIABLES, ControllerNames
from conformance.systems.controller.steps import STEPS
from conformance.systems.protocol import CannotSnapshot, Observation, step_of
from conformance.systems.rewinding import Rewinder, Snapshot
from conformance.systems.threads import interrupted
from conformance.tla import Action, Value

_HANDLERS = frozenset({"HandleRequest", "HandleLateRequest"})
"""Steps of a broker's request handlers, each of which may have a thread of its own."""


class ControllerSystem:
    """Controllers, named by their epochs, and brokers; nothing moves but by an action."""

    variables = VARIABLES
    repeatable = True
    voluntary: frozenset[str] = frozenset()
    """None: what is handled was sent."""
    unconditional: frozenset[str] = frozenset()
    """None: no bound of a model disables a handler."""

    def __init__(self, constants: Mapping[str, Value]) -> None:
        replicas = constants["Replicas"]
        epochs = constants["ControllerEpochs"]
        if not isinstance(replicas, tuple) or not isinstance(epochs, frozenset):
            raise UserError("Replicas must be a sequence of brokers, ControllerEpochs a set.")
        self._names = ControllerNames(tuple(str(name) for name in replicas))
        self._cluster = ControllerCluster(
            tuple(self._names.ids.values()), late_requests=constants["LateRequests"] is True
        )
        self._view = ControllerView(
            self._cluster, self._names, sorted(cast("int", epoch) for epoch in epochs)
        )
        self._rewinder = Rewinder(self, apart=(self._view.observer, self._names))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """As `ControllerCluster.reset`."""
        self._rewinder.forget()
        self._view.begin()
        self._cluster.reset()

    def close(self) -> None:
        """End the threads that wait for an answer."""
        self._cluster.end_threads()

    def apply(self, action: Action) -> None:
        """Make the controllers, their threads or the brokers take one step."""
        step = step_of(STEPS, action)
        arguments = [self._names.ids.get(str(value), value) for value in action.args]
        self._view.forget(action.name, arguments)
        step(self._cluster, *arguments)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return self._view.observe()

    # ---- Snapshots -------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Controllers, brokers, ZooKeeper and what is under way between them."""
        controllers = self._cluster.controllers.values()
        connections = [item for each in controllers for item in each.connections.values()]
        if any(connection.waits for connection in connections):
            raise CannotSnapshot("a sending thread waits for an answer")
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self._cluster.end_threads()
        self._rewinder.restore(snapshot)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What sending threads do by themselves."""
        return frozenset({"SendRequest"})

    def offers(self) -> frozenset[Action]:
        """The requests that would be sent now."""
        return frozenset(
            Action("SendRequest", (epoch, name))
            for epoch, controller in self._cluster.controllers.items()
            for name, broker in self._names.ids.items()
            if self._cluster.online[broker]
            and controller.requests(broker)
            and not controller.connections[broker].is_sent
        )

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on brokers have locks at which their handlers can be stopped."""
        self._cluster.is_interruptible = True
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two handlers of one broker take these."""
        both = {running.name, between.name} <= _HANDLERS and running != between
        return both and running.args[-1] == between.args[-1]

    def in_parts(self, _running: Action, _between: Action) -> bool:
        """Nothing that a broker makes of these requests is known to be seen in parts."""
        return False

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one handler of a broker stand still while another takes its action."""
        return interrupted(self._cluster.concurrency, self.apply, running, point, between)


def create(constants: Mapping[str, Value]) -> ControllerSystem:
    """The system for a model's constants."""
    return ControllerSystem(constants)
