"""spec/TransactionalLog.tla meets impl: the transactions of a partition, and what is read of it."""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.protocol import SystemUnderTest
from conformance.systems.transaction.log_system import TransactionalLogSystem
from conformance.tla import Value

__all__ = ["TransactionalLogSystem", "create"]


def create(constants: Mapping[str, Value]) -> SystemUnderTest:
    """The system for a model's constants."""
    return TransactionalLogSystem(constants)
