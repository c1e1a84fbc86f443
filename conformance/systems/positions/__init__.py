"""A consumer behind the group's protocol meets impl.

spec/ConsumerCommits.tla has its commits, spec/ConsumerPositions.tla its positions, and
spec/ConsumerTopics.tla the topics that it knows.
"""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.positions.commits import CommitsSystem
from conformance.systems.positions.reads import ReadsSystem
from conformance.systems.positions.topics import TopicsSystem
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Value

__all__ = ["CommitsSystem", "ReadsSystem", "TopicsSystem", "create"]


def create(constants: Mapping[str, Value]) -> SystemUnderTest:
    """The system for a model's constants: each specification has one that the others lack."""
    if "AutoCommit" in constants:
        return CommitsSystem(auto_commit=constants["AutoCommit"] is True)
    return ReadsSystem(constants) if "Policy" in constants else TopicsSystem(constants)
