"""Fetch as a server reads it: what the cache of fetch sessions wants to know (KIP-227)."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from ..network import LEGACY_METADATA, FetchMetadata, FetchRequest, TopicIdPartition
from ..types import ZERO_UUID, FetchPartitionRequest, TopicPartition
from .entities import Received, in_milliseconds

_NO_BROKER = -1
_ZERO = UUID(int=0)


class NamedTopic(NamedTuple):
    """How the request named a topic: by its name, or from version 13 on by its id (KIP-516)."""

    topic: str | None
    topic_id: UUID


def topic_of(key: TopicPartition, asked: FetchPartitionRequest) -> NamedTopic:
    """The topic of a session's partition."""
    if asked.topic_id == ZERO_UUID:
        return NamedTopic(key.topic, _ZERO)
    return NamedTopic(None, UUID(asked.topic_id))


def from_entity(received: Received) -> FetchRequest:
    """The request. A topic that is named by its id has the id in place of a name."""
    body = received.body
    metadata = LEGACY_METADATA
    if hasattr(body, "session_id"):
        metadata = FetchMetadata(body.session_id, body.session_epoch)
    return FetchRequest(
        received.version,
        body.replica_state.replica_id if hasattr(body, "replica_state") else body.replica_id,
        _NO_BROKER,
        in_milliseconds(body.max_wait),
        body.min_bytes,
        body.max_bytes,
        metadata,
        {
            TopicPartition(_key(topic), one.partition): _partition(topic, one)
            for topic in body.topics
            for one in topic.partitions
        },
        tuple(
            TopicIdPartition(_id(topic), TopicPartition(_key(topic), index))
            for topic in getattr(body, "forgotten_topics_data", ())
            for index in topic.partitions
        ),
    )


def _id(topic: Any) -> str:
    return str(topic.topic_id) if hasattr(topic, "topic_id") else ZERO_UUID


def _key(topic: Any) -> str:
    return str(topic.topic_id) if hasattr(topic, "topic_id") else str(topic.topic)


def _partition(topic: Any, asked: Any) -> FetchPartitionRequest:
    """A negative leader epoch stands for none (FetchRequest.optionalEpoch)."""
    epoch = getattr(asked, "current_leader_epoch", _NO_BROKER)
    return FetchPartitionRequest(
        _id(topic),
        asked.fetch_offset,
        getattr(asked, "log_start_offset", _NO_BROKER),
        asked.partition_max_bytes,
        None if epoch < 0 else epoch,
    )
