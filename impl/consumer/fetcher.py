"""Fetches records, buffers them, and hands them out where the application stands.

Source: Fetcher with AbstractFetch, FetchBuffer and FetchCollector. One fetch is on its way to a
leader at a time; sessions are the replicas' (impl.fetcher.fetch_session_handler).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from ..errors import Errors, KafkaException, OffsetOutOfRangeException
from ..group.client.errors import exception_of
from ..group.client.network_client import ConsumerNetworkClient
from ..group.client.request_future import RequestFuture
from ..group.client.subscription_state import FetchPosition, SubscriptionState
from ..network import LEGACY_METADATA, FetchRequest, FetchResponse
from ..records import Record
from ..types import (
    UNKNOWN_BROKER_EPOCH,
    BrokerEndPoint,
    FetchPartitionData,
    FetchPartitionRequest,
    TopicPartition,
)
from .completed_fetch import CompletedFetch
from .consumer_metadata import ConsumerMetadata
from .offset_fetcher import CONSUMER_REPLICA_ID, STALE_METADATA_ERRORS

_FETCH_VERSION = 12
_MAX_BYTES = 50 * 1024 * 1024
_PARTITION_MAX_BYTES = 1024 * 1024
_LOG_START_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    """A record as the application gets it."""

    topic_partition: TopicPartition
    offset: int
    record: Record


@dataclass(slots=True)
class BufferedFetch:
    """The answer for a partition. `completed` is there once it was found to fit the position."""

    partition: TopicPartition
    fetch_offset: int
    data: FetchPartitionData
    completed: CompletedFetch | None = None


class Fetcher:
    """The application's thread sends and collects; an answer may come in any thread."""

    def __init__(
        self,
        network: ConsumerNetworkClient,
        metadata: ConsumerMetadata,
        subscriptions: SubscriptionState,
        max_poll_records: int = 500,
    ) -> None:
        self._network = network
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._max_poll_records = max_poll_records
        self._buffer: deque[BufferedFetch] = deque()
        self._nodes_with_pending_fetch_requests: set[BrokerEndPoint] = set()

    # Fetching.

    def send_fetches(self) -> None:
        """Fetch what is not in the buffer from each leader that is not asked already."""
        for node, positions in self._prepare_fetch_requests().items():
            self._nodes_with_pending_fetch_requests.add(node)
            request = FetchRequest(
                _FETCH_VERSION,
                CONSUMER_REPLICA_ID,
                UNKNOWN_BROKER_EPOCH,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=_MAX_BYTES,
                metadata=LEGACY_METADATA,
                to_send={tp: _partition_request(position) for tp, position in positions.items()},
            )
            self._network.send(node, request, FetchResponse).add_listener(
                lambda done, node=node, positions=positions: (  # type: ignore[misc]
                    self._on_fetch(node, positions, done)
                )
            )

    def _prepare_fetch_requests(self) -> dict[BrokerEndPoint, dict[TopicPartition, FetchPosition]]:
        requests: dict[BrokerEndPoint, dict[TopicPartition, FetchPosition]] = {}
        buffered = {fetch.partition for fetch in self._buffer}
        for partition in self._subscriptions.fetchable_partitions():
            position = self._subscriptions.position(partition)
            if position is None or partition in buffered:
                continue
            node = position.current_leader.leader
            if node is None:
                self._metadata.request_update()
            elif node not in self._nodes_with_pending_fetch_requests:
                requests.setdefault(node, {})[partition] = position
        return requests

    def _on_fetch(
        self,
        node: BrokerEndPoint,
        positions: dict[TopicPartition, FetchPosition],
        done: RequestFuture[FetchResponse],
    ) -> None:
        self._nodes_with_pending_fetch_requests.discard(node)
        if done.failed:
            return
        for partition, data in done.value.partitions.items():
            self._buffer.append(BufferedFetch(partition, positions[partition].offset, data))

    @property
    def buffer(self) -> tuple[BufferedFetch, ...]:
        """What was fetched and not handed out, in the order in which it will be looked at."""
        return tuple(self._buffer)

    def clear_buffered_data_for_unassigned_partitions(
        self, assigned: Collection[TopicPartition]
    ) -> None:
        """The application reads other partitions from now on."""
        self._buffer = deque(fetch for fetch in self._buffer if fetch.partition in assigned)

    # Handing out.

    def collect_fetch(self) -> list[ConsumerRecord]:
        """At most max.poll.records, each where the position is.

        Raises what a fetch failed of, unless records before it are to be handed out first
        (KAFKA-5075); then the next call raises. Paused partitions keep their data (KAFKA-7548).
        """
        records: list[ConsumerRecord] = []
        paused: list[BufferedFetch] = []
        try:
            while self._buffer and len(records) < self._max_poll_records:
                fetch = self._buffer[0]
                if not self._initialize(fetch, is_first=not records):
                    self._buffer.popleft()
                elif self._subscriptions.is_paused(fetch.partition):
                    paused.append(self._buffer.popleft())
                else:
                    records += self._fetch_records(fetch, self._max_poll_records - len(records))
                    if fetch.completed is None or fetch.completed.is_consumed:
                        self._buffer.popleft()
        except KafkaException:
            if not records:
                raise
        finally:
            self._buffer.extend(paused)
        return records

    def _initialize(self, fetch: BufferedFetch, *, is_first: bool) -> bool:
        """Whether there is something to hand out. Raises what the application must learn."""
        if fetch.completed is not None:
            return True
        if not self._subscriptions.has_valid_position(fetch.partition):
            return False
        if fetch.data.error is not Errors.NONE:
            self._handle_initialize_errors(fetch, is_first=is_first)
            return False
        if not self._is_at_position(fetch):
            return False
        fetch.completed = CompletedFetch(fetch.fetch_offset, fetch.data.records.batches(), None)
        return True

    def _is_at_position(self, fetch: BufferedFetch) -> bool:
        position = self._subscriptions.position(fetch.partition)
        return position is not None and position.offset == fetch.fetch_offset

    def _handle_initialize_errors(self, fetch: BufferedFetch, *, is_first: bool) -> None:
        error, partition = fetch.data.error, fetch.partition
        if error is Errors.OFFSET_OUT_OF_RANGE:
            if not self._is_at_position(fetch):
                return
            if self._subscriptions.has_default_reset_strategy:
                self._subscriptions.request_offset_reset(partition)
                return
            failure: KafkaException = OffsetOutOfRangeException(
                f"{partition} has no offset {fetch.fetch_offset}, and there is no reset policy"
            )
        elif error in STALE_METADATA_ERRORS:
            self._metadata.request_update()
            return
        else:
            failure = exception_of(error)
        if is_first:
            self._buffer.popleft()
        raise failure

    def _fetch_records(self, fetch: BufferedFetch, max_records: int) -> list[ConsumerRecord]:
        """The records where the position is; a fetch that does not go on there is dropped."""
        partition, completed = fetch.partition, fetch.completed
        assert completed is not None
        position = self._position_of_fetchable(partition)
        if position is None or position.offset != completed.next_fetch_offset:
            fetch.completed = None
            return []
        records = completed.fetch_records(max_records)
        if completed.next_fetch_offset > position.offset:
            self._subscriptions.set_position(
                partition,
                FetchPosition(
                    completed.next_fetch_offset, completed.last_epoch, position.current_leader
                ),
            )
        return [ConsumerRecord(partition, offset, record) for offset, record in records]

    def _position_of_fetchable(self, partition: TopicPartition) -> FetchPosition | None:
        if not self._subscriptions.is_fetchable(partition):
            return None
        return self._subscriptions.position(partition)


def _partition_request(position: FetchPosition) -> FetchPartitionRequest:
    return FetchPartitionRequest(
        topic_id="",
        fetch_offset=position.offset,
        log_start_offset=_LOG_START_UNKNOWN,
        max_bytes=_PARTITION_MAX_BYTES,
        current_leader_epoch=position.current_leader.epoch,
        last_fetched_epoch=None,
    )
