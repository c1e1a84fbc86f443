"""Kafka's error codes, and one exception class for each code that replication raises.

Source: org.apache.kafka.common.protocol.Errors.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class Errors(IntEnum):
    """Error codes of the Kafka protocol, as sent on the wire."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    UNKNOWN_PRODUCER_ID = 59
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    INVALID_UPDATE_VERSION = 95
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    FENCED_STATE_EPOCH = 124
    INVALID_REGULAR_EXPRESSION = 128

    def exception(self, message: str = "") -> ApiException:
        """The exception of this code; a plain `ApiException` for codes without a class."""
        return _CLASS_OF.get(self, ApiException)(message or self.name, self)

    @staticmethod
    def for_exception(error: BaseException) -> Errors:
        """The code that an answer carries when handling it raised `error` (Errors.forException)."""
        return error.error if isinstance(error, ApiException) else Errors.UNKNOWN_SERVER_ERROR


class KafkaException(Exception):
    """Any failure of the broker; without a code of its own it becomes UNKNOWN_SERVER_ERROR."""


class IllegalStateException(KafkaException):
    """A rule of the protocol's own bookkeeping is broken (java.lang.IllegalStateException)."""


class RejectedExecutionException(KafkaException):
    """Nobody wants the task any more (java.util.concurrent.RejectedExecutionException)."""


class IllegalArgumentException(KafkaException):
    """A caller passed a value outside the method's domain (java.lang.IllegalArgumentException)."""


class ApiException(KafkaException):
    """A failure that has an error code; `error` is that code."""

    code: ClassVar[Errors] = Errors.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str = "", error: Errors | None = None) -> None:
        super().__init__(message)
        self.error = self.code if error is None else error


class OffsetOutOfRangeException(ApiException):
    """The offset lies outside [log start offset, log end offset]."""

    code = Errors.OFFSET_OUT_OF_RANGE


class CorruptRecordException(ApiException):
    """A batch's CRC or layout is wrong."""

    code = Errors.CORRUPT_MESSAGE


class InvalidRecordException(ApiException):
    """A batch is well formed but not acceptable."""

    code = Errors.INVALID_RECORD


class UnknownTopicOrPartitionException(ApiException):
    """This broker does not host the partition."""

    code = Errors.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicIdException(ApiException):
    """This broker does not host the topic id."""

    code = Errors.UNKNOWN_TOPIC_ID


class InconsistentTopicIdException(ApiException):
    """The topic id of the request is not the one of the log."""

    code = Errors.INCONSISTENT_TOPIC_ID


class NotLeaderOrFollowerException(ApiException):
    """This broker is not the replica (or not the leader) that the request needs."""

    code = Errors.NOT_LEADER_OR_FOLLOWER


class NotEnoughReplicasException(ApiException):
    """The in-sync replicas are fewer than min.insync.replicas."""

    code = Errors.NOT_ENOUGH_REPLICAS


class FencedLeaderEpochException(ApiException):
    """The request's leader epoch is older than this broker's (KIP-320)."""

    code = Errors.FENCED_LEADER_EPOCH


class UnknownLeaderEpochException(ApiException):
    """The request's leader epoch is newer than this broker's (KIP-320)."""

    code = Errors.UNKNOWN_LEADER_EPOCH


class OffsetNotAvailableException(ApiException):
    """A new leader does not yet know a high watermark of its own epoch (KIP-207)."""

    code = Errors.OFFSET_NOT_AVAILABLE


class KafkaStorageException(ApiException):
    """The log directory failed."""

    code = Errors.KAFKA_STORAGE_ERROR


class StaleBrokerEpochException(ApiException):
    """The broker epoch of the request is not the current one (KIP-380, KIP-903)."""

    code = Errors.STALE_BROKER_EPOCH


class OffsetMovedToTieredStorageException(ApiException):
    """The offset is no longer on the leader's local disk (KIP-405)."""

    code = Errors.OFFSET_MOVED_TO_TIERED_STORAGE


class FetchSessionTopicIdException(ApiException):
    """A fetch session mixes requests with and without topic ids (KIP-516)."""

    code = Errors.FETCH_SESSION_TOPIC_ID_ERROR


class OutOfOrderSequenceException(ApiException):
    """The batch's sequence does not follow the last one of its producer (KIP-98)."""

    code = Errors.OUT_OF_ORDER_SEQUENCE_NUMBER


class InvalidProducerEpochException(ApiException):
    """A newer epoch of the producer has written here."""

    code = Errors.INVALID_PRODUCER_EPOCH


class InvalidTxnStateException(ApiException):
    """The producer's transaction is not in a state for this batch or request."""

    code = Errors.INVALID_TXN_STATE


class TransactionCoordinatorFencedException(ApiException):
    """A newer coordinator has written a marker of the producer here."""

    code = Errors.TRANSACTION_COORDINATOR_FENCED


_CLASS_OF: dict[Errors, type[ApiException]] = {
    cls.code: cls
    for cls in (
        OffsetOutOfRangeException,
        CorruptRecordException,
        InvalidRecordException,
        UnknownTopicOrPartitionException,
        UnknownTopicIdException,
        InconsistentTopicIdException,
        NotLeaderOrFollowerException,
        NotEnoughReplicasException,
        FencedLeaderEpochException,
        UnknownLeaderEpochException,
        OffsetNotAvailableException,
        KafkaStorageException,
        StaleBrokerEpochException,
        OffsetMovedToTieredStorageException,
        FetchSessionTopicIdException,
        OutOfOrderSequenceException,
        InvalidProducerEpochException,
        InvalidTxnStateException,
        TransactionCoordinatorFencedException,
    )
}
