"""A consumer behind the group's protocol meets impl: spec/ConsumerCommits.tla."""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.positions.commits import CommitsSystem
from conformance.tla import Value

__all__ = ["CommitsSystem", "create"]


def create(constants: Mapping[str, Value]) -> CommitsSystem:
    """The system for a model's constants."""
    return CommitsSystem(auto_commit=constants["AutoCommit"] is True)
