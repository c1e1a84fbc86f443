"""What the answers of brokers become: events for the controller's one thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..control_requests import UpdateMetadataResponse
from ..errors import Errors
from ..replica_requests import LeaderAndIsrResponse
from ..types import TopicPartition


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived:
    """A broker has answered LeaderAndIsr."""

    response: LeaderAndIsrResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived:
    """A broker has answered UpdateMetadata."""

    response: UpdateMetadataResponse
    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived:
    """A broker has answered for replicas that it was to delete with their topic."""

    replica_id: int
    request_error: Errors
    partition_errors: Mapping[TopicPartition, Errors]


ControllerEvent = (
    LeaderAndIsrResponseReceived
    | UpdateMetadataResponseReceived
    | TopicDeletionStopReplicaResponseReceived
)
