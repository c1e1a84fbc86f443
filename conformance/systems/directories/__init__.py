"""spec/DirectoryMove.tla and DirectoryAssignment.tla meet impl: a replica that moves to another log
directory, and in KRaft asks the controller first.
"""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.directories.assignment_system import AssignmentSystem
from conformance.systems.directories.system import DirectoriesSystem
from conformance.tla import Value

__all__ = ["AssignmentSystem", "DirectoriesSystem", "create"]

_OF_FOLLOWERS = ("AppendAsFollowerInKRaft", "TruncateCurrentInKRaft", "MarkForTruncationInKRaft")
"""With elections and an assignment they need a model of 27,716 states, which the nightly tier has:
directories/assignment-followers."""


class DirectoriesFactory:
    """Makes the system for a model's constants: only DirectoryAssignment loses assignments."""

    def __call__(self, constants: Mapping[str, Value]) -> DirectoriesSystem:
        return AssignmentSystem() if "AssignmentFailures" in constants else DirectoriesSystem()

    def taken_elsewhere(self) -> Mapping[str, str]:
        """Steps of DirectoryMove that leave the assignment as it is."""
        return dict.fromkeys(_OF_FOLLOWERS, "DirectoryMove")


create = DirectoriesFactory()
