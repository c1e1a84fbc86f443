"""What the leader of a partition asks the coordinator before a transaction's first batch (KIP-890).

Source: AddPartitionsToTxnManager, and what ReplicaManager makes of its answers. The coordinator is
in the same process, so it answers at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from ..errors import Errors
from ..types import TopicPartition
from .transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator

_VERSION_2 = 2


class TransactionSupportedOperation(Enum):
    """What a client's request of a version supports."""

    DEFAULT_ERROR = "verification; the errors are those of before KIP-890"
    GENERIC_ERROR_SUPPORTED = "verification, and TRANSACTION_ABORTABLE"
    ADD_PARTITION = "the leader adds the partition"


_UNVERIFIED: Mapping[Errors, Errors] = MappingProxyType(
    {
        Errors.PRODUCER_FENCED: Errors.INVALID_PRODUCER_EPOCH,
        Errors.COORDINATOR_LOAD_IN_PROGRESS: Errors.NOT_ENOUGH_REPLICAS,
        Errors.COORDINATOR_NOT_AVAILABLE: Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_COORDINATOR: Errors.NOT_ENOUGH_REPLICAS,
    }
)
"""What a producer is answered: NOT_ENOUGH_REPLICAS makes it try again."""


class AddPartitionsToTxnManager:
    """Of the broker that leads the partitions."""

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    def add_or_verify_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partition: TopicPartition,
        operation: TransactionSupportedOperation,
    ) -> Errors:
        """NONE if the partition is in the producer's transaction; else what its client is told."""
        if operation is TransactionSupportedOperation.ADD_PARTITION:
            error = self._added(transactional_id, producer, partition)
            return _UNVERIFIED.get(error, error)
        errors = self._coordinator.handle_verify_partitions_in_transaction(
            transactional_id, producer, frozenset({partition})
        )
        error = errors[partition]
        if error is Errors.CONCURRENT_TRANSACTIONS:
            return Errors.NOT_ENOUGH_REPLICAS
        is_old = operation is TransactionSupportedOperation.DEFAULT_ERROR
        if error is Errors.TRANSACTION_ABORTABLE and is_old:
            return Errors.INVALID_TXN_STATE
        return _UNVERIFIED.get(error, error)

    def _added(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition
    ) -> Errors:
        answers: list[Errors] = []
        self._coordinator.handle_add_partitions_to_transaction(
            transactional_id, producer, frozenset({partition}), _VERSION_2, answers.append
        )
        (error,) = answers
        return error
