"""What a group member raises: one class per error code that it handles, and failures of its own.

Source: org.apache.kafka.common.errors and org.apache.kafka.clients.consumer.
"""

from __future__ import annotations

from ...errors import ApiException, Errors, KafkaException


class UnknownMemberIdException(ApiException):
    """The coordinator does not know this member."""

    code = Errors.UNKNOWN_MEMBER_ID


class MemberIdRequiredException(ApiException):
    """A first join must be repeated with the id just given (KIP-394)."""

    code = Errors.MEMBER_ID_REQUIRED


class IllegalGenerationException(ApiException):
    """The request's generation is not the group's."""

    code = Errors.ILLEGAL_GENERATION


class RebalanceInProgressException(ApiException):
    """The group is rebalancing: join again."""

    code = Errors.REBALANCE_IN_PROGRESS


class FencedInstanceIdException(ApiException):
    """Another member has taken over this group.instance.id (KIP-345)."""

    code = Errors.FENCED_INSTANCE_ID


class GroupMaxSizeReachedException(ApiException):
    """The group is full (KIP-389)."""

    code = Errors.GROUP_MAX_SIZE_REACHED


class GroupAuthorizationException(ApiException):
    """The member may not use the group."""

    code = Errors.GROUP_AUTHORIZATION_FAILED


class AuthenticationException(KafkaException):
    """The brokers do not accept who the client says it is."""


class TopicAuthorizationException(ApiException):
    """The member may not use some topics."""

    code = Errors.TOPIC_AUTHORIZATION_FAILED


class InconsistentGroupProtocolException(ApiException):
    """The group's protocol type or protocol is another than the member's."""

    code = Errors.INCONSISTENT_GROUP_PROTOCOL


class CoordinatorLoadInProgressException(ApiException):
    """The coordinator is still reading the group from its log."""

    code = Errors.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailableException(ApiException):
    """No coordinator is known, or it is not up."""

    code = Errors.COORDINATOR_NOT_AVAILABLE


class NotCoordinatorException(ApiException):
    """The broker asked is not the group's coordinator any more."""

    code = Errors.NOT_COORDINATOR


class UnstableOffsetCommitException(ApiException):
    """A transaction on the offsets is still open (KIP-447)."""

    code = Errors.UNSTABLE_OFFSET_COMMIT


class DisconnectException(ApiException):
    """The connection broke, or the request timed out, before the answer came."""

    code = Errors.NETWORK_EXCEPTION


class NoAvailableBrokersException(KafkaException):
    """No broker can be asked for the coordinator."""


class UnjoinedGroupException(KafkaException):
    """The member left the group while its join was in flight."""


class CommitFailedException(KafkaException):
    """The member is out of the group: its partitions may have another owner."""


class RetriableCommitFailedException(KafkaException):
    """An asynchronous commit failed for a reason that may pass."""


class WakeupException(KafkaException):
    """Another thread called `wakeup` to end a blocking poll."""


_RETRIABLE_CODES = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNSTABLE_OFFSET_COMMIT,
        Errors.REQUEST_TIMED_OUT,
        Errors.NETWORK_EXCEPTION,
    }
)

_CLASS_OF: dict[Errors, type[ApiException]] = {
    cls.code: cls
    for cls in (
        UnknownMemberIdException,
        MemberIdRequiredException,
        IllegalGenerationException,
        RebalanceInProgressException,
        FencedInstanceIdException,
        GroupMaxSizeReachedException,
        GroupAuthorizationException,
        TopicAuthorizationException,
        InconsistentGroupProtocolException,
        CoordinatorLoadInProgressException,
        CoordinatorNotAvailableException,
        NotCoordinatorException,
        UnstableOffsetCommitException,
        DisconnectException,
    )
}


def exception_of(error: Errors, message: str = "") -> ApiException:
    """The exception that stands for an error code in an answer."""
    cls = _CLASS_OF.get(error)
    return cls(message or error.name) if cls is not None else error.exception(message)


def is_retriable(error: Exception) -> bool:
    """Whether the same request may succeed later (RetriableException)."""
    if isinstance(error, NoAvailableBrokersException | UnjoinedGroupException):
        return True
    return isinstance(error, ApiException) and error.error in _RETRIABLE_CODES
