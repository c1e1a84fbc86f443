"""MixedGroup.tla's steps on a coordinator that is seen from inside, whatever runs it.

Time stands still, and every variable is seen after every step. Where the specification leaves the
target assignment open, the harness chooses it.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.shared.mixed.coordinator import ChoosingMixedCoordinator
from conformance.systems.shared.mixed.settings import MixedSettings, numbers_in
from conformance.systems.shared.mixed.system import MixedGroupSystem
from conformance.tla import Action, Fn, Value


class MixedGroupInside(MixedGroupSystem):
    """One coordinator, one group, and its consumers."""

    def __init__(self, settings: MixedSettings, coordinator: ChoosingMixedCoordinator) -> None:
        super().__init__(settings, coordinator)
        self._assigning = coordinator

    def _begin(self) -> None:
        self._assigning.choose(None)
        super()._begin()

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """The target that the next request is to lead to, if it leads to a new one."""
        target = wanted["target"]
        assert isinstance(target, Fn), "a function of the members"
        self._assigning.choose({str(name): numbers_in(given) for name, given in target.items()})

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the coordinator cannot."""
        super().apply(action)
        self._assigning.choose(None)
