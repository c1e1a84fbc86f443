"""spec/Transactions.tla and TransactionalLog.tla meet impl: coordinators, partitions, consumers."""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.protocol import SystemUnderTest
from conformance.systems.transaction.expiring_log import ExpiringLogSystem
from conformance.systems.transaction.log_system import TransactionalLogSystem
from conformance.systems.transaction.stored_log import StoredLogSystem
from conformance.systems.transaction.system import ChoosingTransactionSystem, TransactionSystem
from conformance.tla import Value

__all__ = [
    "ChoosingTransactionSystem",
    "ExpiringLogSystem",
    "StoredLogSystem",
    "TransactionSystem",
    "TransactionalLogSystem",
    "create",
]


def create(constants: Mapping[str, Value]) -> SystemUnderTest:
    """The system for a model's constants: only Transactions has coordinators."""
    if "Coordinators" in constants:
        chooses = bool(constants["OffsetsPartitions"])
        return (ChoosingTransactionSystem if chooses else TransactionSystem)(constants)
    if "MaxRestarts" in constants:
        return StoredLogSystem(constants)
    if "ProducersExpire" in constants:
        return ExpiringLogSystem(constants)
    return TransactionalLogSystem(constants)
