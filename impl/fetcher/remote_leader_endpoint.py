"""The leader on another broker, reached through an injected sender (RemoteLeaderEndPoint)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..clock import Clock
from ..errors import Errors, KafkaStorageException
from ..network import (
    BlockingSend,
    FetchConfig,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    RequestVersions,
)
from ..types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    BrokerEndPoint,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    OffsetAndEpoch,
    TopicPartition,
)
from .fetch_session_handler import FetchSessionHandler
from .leader_endpoint import BuiltFetch, ReplicaFetch
from .replicas import FollowerReplicas, ReplicaQuota
from .state import PartitionFetchState

_log = logging.getLogger(__name__)


def should_follower_throttle(
    quota: ReplicaQuota, state: PartitionFetchState, partition: TopicPartition
) -> bool:
    """Whether the quota keeps the partition out of a fetch; in-sync replicas never (KAFKA-4313)."""
    return (
        not state.is_replica_in_sync and quota.is_throttled(partition) and quota.is_quota_exceeded()
    )


class RemoteLeaderEndPoint:
    """Builds and sends the follower's requests, and keeps its fetch session."""

    def __init__(
        self,
        leader: BrokerEndPoint,
        blocking_sender: BlockingSend,
        session_handler: FetchSessionHandler,
        replicas: FollowerReplicas,
        quota: ReplicaQuota,
        clock: Clock,
        config: FetchConfig,
    ) -> None:
        self._leader = leader
        self._sender = blocking_sender
        self._session = session_handler
        self._replicas = replicas
        self._quota = quota
        self._clock = clock
        self._config = config
        self._truncation_on_fetch = config.protocol.truncation_on_fetch
        self.versions = RequestVersions.of(config.protocol)

    @property
    def is_truncation_on_fetch_supported(self) -> bool:
        """The protocol's switch (KIP-595)."""
        return self._truncation_on_fetch

    def broker_end_point(self) -> BrokerEndPoint:
        """The leader's address."""
        return self._leader

    def initiate_close(self) -> None:
        """Make a blocked send fail soon."""
        self._sender.initiate_close()

    def close(self) -> None:
        """Close the connection."""
        self._sender.close()

    def fetch(self, fetch_request: FetchRequest, /) -> Mapping[TopicPartition, FetchPartitionData]:
        """Send and wait. Raises what the sender raises; the next fetch is then a full one."""
        try:
            response = self._sender.fetch(fetch_request)
        except Exception:  # raised again: whatever failed, the session must start over
            self.handle_fetch_error()
            raise
        return self.handle_fetch_response(response)

    def handle_fetch_error(self) -> None:
        """No answer came to the last fetch: the next one is full."""
        self._session.handle_error()

    def handle_fetch_response(
        self, response: FetchResponse
    ) -> Mapping[TopicPartition, FetchPartitionData]:
        """The answer's partitions, none if the session rejects it. Raises on topic id errors."""
        if self._session.handle_response(response):
            return response.partitions
        if response.error is Errors.FETCH_SESSION_TOPIC_ID_ERROR:
            raise response.error.exception()
        return {}

    def fetch_earliest_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The leader's log start offset."""
        return self._fetch_offset(partition, current_leader_epoch, EARLIEST_TIMESTAMP)

    def fetch_earliest_local_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The first offset on the leader's local disk."""
        return self._fetch_offset(partition, current_leader_epoch, EARLIEST_LOCAL_TIMESTAMP)

    def fetch_latest_offset(
        self, partition: TopicPartition, current_leader_epoch: int, /
    ) -> OffsetAndEpoch:
        """The leader's log end offset."""
        return self._fetch_offset(partition, current_leader_epoch, LATEST_TIMESTAMP)

    def _fetch_offset(
        self, partition: TopicPartition, current_leader_epoch: int, timestamp: int
    ) -> OffsetAndEpoch:
        answer = self._sender.list_offsets(
            ListOffsetsRequest(
                self.versions.list_offsets,
                self._config.replica_id,
                partition,
                current_leader_epoch,
                timestamp,
            )
        )
        if answer.error is not Errors.NONE:
            raise answer.error.exception()
        return OffsetAndEpoch(answer.offset, answer.leader_epoch)

    def fetch_epoch_end_offsets(
        self, partitions: Mapping[TopicPartition, EpochData], /
    ) -> Mapping[TopicPartition, EpochEndOffset]:
        """Where the asked epochs end; no answer gives every partition the exception's code."""
        if not partitions:
            return {}
        try:
            request = self.build_epoch_request(partitions)
            return self._sender.offsets_for_leader_epoch(request).partitions
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the partitions ask again
            _log.info("Error when sending leader epoch request for %s", partitions, exc_info=error)
            code = Errors.for_exception(error)
            return dict.fromkeys(partitions, EpochEndOffset(code))

    def build_epoch_request(
        self, partitions: Mapping[TopicPartition, EpochData]
    ) -> OffsetsForLeaderEpochRequest:
        """The request by which `fetch_epoch_end_offsets` asks."""
        return OffsetsForLeaderEpochRequest(
            self.versions.offsets_for_leader_epoch, self._config.replica_id, partitions
        )

    def build_fetch(
        self, partitions: Mapping[TopicPartition, PartitionFetchState], /
    ) -> BuiltFetch:
        """A fetch of every ready, unthrottled partition; None if the session has nothing to say."""
        now_ms = self._clock.milliseconds()
        wanted: dict[TopicPartition, FetchPartitionRequest] = {}
        failed: list[TopicPartition] = []
        for partition, state in partitions.items():
            if not state.is_ready_for_fetch(now_ms):
                continue
            if should_follower_throttle(self._quota, state, partition):
                continue
            try:
                wanted[partition] = self._partition_request(partition, state)
            except KafkaStorageException:
                failed.append(partition)
        return BuiltFetch(self._replica_fetch(wanted), tuple(failed))

    def _partition_request(
        self, partition: TopicPartition, state: PartitionFetchState
    ) -> FetchPartitionRequest:
        return FetchPartitionRequest(
            state.topic_id_or_zero,
            state.fetch_offset,
            self._replicas.local_log_or_exception(partition).log_start_offset,
            self._config.partition_max_bytes,
            state.current_leader_epoch,
            state.last_fetched_epoch if self._truncation_on_fetch else None,
        )

    def _replica_fetch(
        self, wanted: dict[TopicPartition, FetchPartitionRequest]
    ) -> ReplicaFetch | None:
        data = self._session.build(wanted)
        if not data.session_partitions and not data.removed:
            return None
        config = self._config
        request = FetchRequest(
            self.versions.fetch,
            config.replica_id,
            config.broker_epoch,
            config.max_wait_ms,
            config.min_bytes,
            config.max_bytes,
            data.metadata,
            data.to_send,
            data.removed,
            data.replaced,
        )
        return ReplicaFetch(data.session_partitions, request)
