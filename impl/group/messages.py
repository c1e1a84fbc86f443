"""Requests and answers of the group protocol, with Kafka's field names in snake case.

Source: the JSON schemas of org.apache.kafka.common.message. Nested topic/partition lists are flat:
one entry per topic partition. Timeouts are in ms, metadata and assignments are opaque bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Errors
from ..types import NO_PARTITION_LEADER_EPOCH, BrokerEndPoint, TopicPartition

UNKNOWN_MEMBER_ID = ""
"""Member id of a member that has none yet (JoinGroupRequest.UNKNOWN_MEMBER_ID)."""
UNKNOWN_GENERATION_ID = -1
"""Generation of a member that is in none (JoinGroupRequest.UNKNOWN_GENERATION_ID)."""
NO_LEADER_MEMBER = ""
INVALID_OFFSET = -1
"""OffsetFetch: nothing is committed."""
NO_EXPIRATION = -1
"""OffsetCommit: keep by the broker's retention (OffsetCommitRequest.DEFAULT_RETENTION_TIME)."""

CONSUMER_PROTOCOL_TYPE = "consumer"

JOIN_REQUIRES_KNOWN_MEMBER_VERSION = 4
"""From this JoinGroup version on, a new dynamic member must join again with its id (KIP-394)."""
JOIN_SKIP_ASSIGNMENT_VERSION = 9
"""From this JoinGroup version on, the answer may tell a leader to skip its assignment (KIP-814)."""


@dataclass(frozen=True, slots=True)
class JoinGroupRequestProtocol:
    """A protocol that the member supports; the order in the request is its preference."""

    name: str
    metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class JoinGroupRequest:
    """Enter the group or start a new round; `client_id`, `client_host`, `version`: the header."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    group_instance_id: str | None = None
    reason: str = ""
    client_id: str = ""
    client_host: str = ""
    version: int = JOIN_SKIP_ASSIGNMENT_VERSION


@dataclass(frozen=True, slots=True)
class JoinGroupResponseMember:
    """A member as the leader sees it: its metadata for the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """The generation; `members` is empty but for the leader, types are none on error."""

    error_code: Errors
    member_id: str
    generation_id: int = UNKNOWN_GENERATION_ID
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_LEADER_MEMBER
    skip_assignment: bool = False
    members: tuple[JoinGroupResponseMember, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupRequestAssignment:
    """One member's assignment; only the leader sends any."""

    member_id: str
    assignment: bytes


@dataclass(frozen=True, slots=True)
class SyncGroupRequest:
    """Ask for the assignment of a generation; protocol type and name are checked if given."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    """The member's assignment; types are none on error."""

    error_code: Errors
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """Keep the session, and learn whether a rebalance is under way."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """Answer to a heartbeat."""

    error_code: Errors


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member that leaves, named by id or by instance."""

    member_id: str
    group_instance_id: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest:
    """Remove members from the group (a batch: KIP-345)."""

    group_id: str
    members: tuple[MemberIdentity, ...]


@dataclass(frozen=True, slots=True)
class LeaveGroupMemberResponse:
    """What became of one member of a LeaveGroup request (LeaveGroupResponseData.MemberResponse)."""

    member_id: str
    group_instance_id: str | None
    error_code: Errors


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse:
    """`members` is empty if the request as a whole failed."""

    error_code: Errors
    members: tuple[LeaveGroupMemberResponse, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetCommitRequestPartition:
    """One partition of an OffsetCommit; `committed_leader_epoch` is -1 if unknown."""

    topic_partition: TopicPartition
    committed_offset: int
    committed_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    committed_metadata: str = ""


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """Commit positions; a consumer outside a group sends generation -1 and no member id."""

    group_id: str
    partitions: tuple[OffsetCommitRequestPartition, ...]
    generation_id: int = UNKNOWN_GENERATION_ID
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
    retention_time_ms: int = NO_EXPIRATION


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest:
    """Commit positions as part of a producer's transaction (KIP-447)."""

    group_id: str
    partitions: tuple[OffsetCommitRequestPartition, ...]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = UNKNOWN_GENERATION_ID
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class OffsetCommitResponsePartition:
    """What became of one partition's commit."""

    topic_partition: TopicPartition
    error_code: Errors


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """Answer to OffsetCommit and TxnOffsetCommit; errors are per partition only."""

    partitions: tuple[OffsetCommitResponsePartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """Ask for committed positions; no partitions at all (None) means every one of the group.

    `member_id`, `member_epoch`: of a member of KIP-848 that asks for itself.
    """

    group_id: str
    partitions: tuple[TopicPartition, ...] | None = None
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = UNKNOWN_GENERATION_ID


@dataclass(frozen=True, slots=True)
class OffsetFetchResponsePartition:
    """A committed position, or offset -1 if there is none."""

    topic_partition: TopicPartition
    committed_offset: int
    committed_leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    metadata: str = ""
    error_code: Errors = Errors.NONE


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """`partitions` is empty if the request as a whole failed."""

    error_code: Errors
    partitions: tuple[OffsetFetchResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest:
    """KIP-496."""

    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponsePartition:
    """What became of one position."""

    topic_partition: TopicPartition
    error_code: Errors


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse:
    """With an error of the group there are no partitions."""

    error_code: Errors
    partitions: tuple[OffsetDeleteResponsePartition, ...] = ()


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest:
    """Ask any broker which broker coordinates the group."""

    key: str


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """The group's coordinator, none on error."""

    error_code: Errors
    coordinator: BrokerEndPoint | None = None


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest:
    """Ask for the state of groups."""

    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DescribedGroupMember:
    """A member; metadata and assignment are empty unless the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group; an absent one is Dead, without an error. `protocol_data`: the chosen protocol."""

    error_code: Errors
    group_id: str
    group_state: str
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse:
    """One entry per group asked for."""

    groups: tuple[DescribedGroup, ...]


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest:
    """Delete groups that have no members, with their offsets."""

    groups_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeletableGroupResult:
    """What became of one group's deletion."""

    group_id: str
    error_code: Errors


@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse:
    """One entry per group named."""

    results: tuple[DeletableGroupResult, ...]
