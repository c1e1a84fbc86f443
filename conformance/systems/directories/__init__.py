"""spec/DirectoryMove.tla and DirectoryAssignment.tla meet impl: a replica that moves to another log
directory, and in KRaft asks the controller first.
"""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.directories.assignment_system import AssignmentSystem
from conformance.systems.directories.system import DirectoriesSystem
from conformance.tla import Value

__all__ = ["AssignmentSystem", "DirectoriesSystem", "create"]


def create(constants: Mapping[str, Value]) -> DirectoriesSystem:
    """The system for a model's constants: only DirectoryAssignment loses assignments."""
    return AssignmentSystem() if "AssignmentFailures" in constants else DirectoriesSystem()
