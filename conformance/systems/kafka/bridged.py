"""A system in the bridge's JVM of which each action is one command, and all is seen after each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from conformance.errors import UserError
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.protocol import Observation, step_of
from conformance.tla import Action, Fn, Value

BridgeSteps = Mapping[str, tuple[str, tuple[str, ...]]]
"""By action, the bridge's command and the members that take the action's arguments."""


def record(names: Sequence[str], values: Sequence[Value]) -> Fn:
    """A record of the specification, by the names of its fields."""
    return Fn(dict(zip(names, values, strict=True)))


class BridgedSystem:
    """Brokers or producers in a JVM, numbered from 1 in the order of their names.

    `observed` reads the answer to `view`, the command that says all, given the names.
    """

    numbered: ClassVar[str] = "Brokers"
    """The constant whose members the bridge knows by their numbers; empty: there is only one."""

    def __init__(
        self,
        channel: AdapterChannel,
        constants: Mapping[str, Value],
        steps: BridgeSteps,
        view: str,
        observed: Callable[[tuple[str, ...], bytes], Observation],
    ) -> None:
        names = constants[self.numbered] if self.numbered else frozenset()
        if not isinstance(names, frozenset):
            raise UserError(f"{self.numbered} must be a set.")
        self._channel = channel
        self._names = tuple(sorted(map(str, names)))
        self._steps = steps
        self._view = view
        self._observed = observed

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def apply(self, action: Action) -> None:
        """Let what the action names take one step."""
        command, members = step_of(self._steps, action)
        self._run(command, dict(zip(members, map(self._argument, action.args), strict=True)))

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return self._observation

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)

    def _argument(self, value: Value) -> object:
        """An action's argument as the bridge takes it."""
        return self._names.index(value) + 1 if value in self._names else value

    def _run(self, command: str, members: Mapping[str, object]) -> None:
        steps: list[Mapping[str, object]] = [
            {"command": command, **members},
            {"command": self._view},
        ]
        self._observation = self._observed(self._names, bytes(self._channel.call(steps)[-1]))
