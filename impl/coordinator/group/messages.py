"""Requests and answers of KIP-848, with Kafka's field names in snake case.

Source: ConsumerGroupHeartbeat 1 and ConsumerGroupDescribe 1. Lists of partitions are flat: one
entry per topic partition. A field that is None was not sent. Times are in ms.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Errors
from ...types import TopicIdPartition
from .member import Partitions


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatRequest:
    """A sign of life, and what has changed since the last one; `client_*`: of the header."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: tuple[TopicIdPartition, ...] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, as of who does not know what was answered before."""
        return (
            self.rebalance_timeout_ms != -1
            and (self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None)
            and self.topic_partitions is not None
        )


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch; `assignment` is None where the member knows it."""

    error_code: Errors
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Partitions | None = None
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroupMember:
    """A member as ConsumerGroupDescribe shows it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str
    assignment: Partitions
    target_assignment: Partitions


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """A group as ConsumerGroupDescribe shows it."""

    error_code: Errors
    group_id: str
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[DescribedConsumerGroupMember, ...] = ()
