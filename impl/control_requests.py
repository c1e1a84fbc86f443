"""The controller's StopReplica and UpdateMetadata requests, and their answers.

LeaderAndIsr is in `replica_requests`. Source: StopReplicaRequest, UpdateMetadataRequest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import Errors
from .replica_requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartitionState,
)
from .types import UNKNOWN_BROKER_EPOCH, TopicPartition

LEADER_DURING_DELETE = -2
"""The leader of a partition whose topic is being deleted, in UpdateMetadata."""


@dataclass(frozen=True, slots=True)
class StopReplicaRequest:
    """Stop replicas, and delete those that say so.

    Before version 3 (KIP-570) a request has one delete flag for all of its partitions, and no
    leader epochs.
    """

    controller_id: int
    controller_epoch: int
    partition_states: Mapping[TopicPartition, StopReplicaPartitionState]
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    version: int = 4


@dataclass(frozen=True, slots=True)
class StopReplicaResponse:
    """What became of a StopReplica request."""

    error: Errors
    partitions: Mapping[TopicPartition, Errors]


@dataclass(frozen=True, slots=True)
class UpdateMetadataPartitionState:
    """What clients may know of a partition; `leader` may be `LEADER_DURING_DELETE`."""

    topic_partition: TopicPartition
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateMetadataBroker:
    """A live broker, as clients find it."""

    id: int
    host: str = "localhost"
    port: int = 9092
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest:
    """What a broker shall tell clients. `live_brokers` is whole, `partition_states` are changes."""

    controller_id: int
    controller_epoch: int
    partition_states: tuple[UpdateMetadataPartitionState, ...]
    live_brokers: tuple[UpdateMetadataBroker, ...]
    topic_ids: Mapping[str, str]
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    version: int = 8


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponse:
    """What became of an UpdateMetadata request."""

    error: Errors


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
ControlResponse = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse
