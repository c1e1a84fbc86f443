"""The follower's half of incremental fetch sessions (FetchSessionHandler, KIP-227).

A session lets a fetch name only the partitions whose request changed; the leader remembers the
others. The handler knows what the leader remembers and which session epoch comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import Errors
from ..network import (
    INITIAL_METADATA,
    INVALID_SESSION_ID,
    LEGACY_METADATA,
    FetchMetadata,
    FetchResponse,
    TopicIdPartition,
)
from ..types import ZERO_UUID, FetchPartitionRequest, TopicPartition


class FetchRequestData(NamedTuple):
    """What the next fetch says (FetchSessionHandler.FetchRequestData)."""

    to_send: Mapping[TopicPartition, FetchPartitionRequest]
    removed: tuple[TopicIdPartition, ...]
    replaced: tuple[TopicIdPartition, ...]
    session_partitions: Mapping[TopicPartition, FetchPartitionRequest]
    metadata: FetchMetadata


class FetchSessionHandler:
    """One session with one leader, or none ever if not `incremental`.

    Not synchronized: the fetcher thread owns it.
    """

    __slots__ = ("_incremental", "_metadata", "_session_partitions")

    def __init__(self, incremental: bool = True) -> None:
        self._incremental = incremental
        self._metadata = INITIAL_METADATA if incremental else LEGACY_METADATA
        self._session_partitions: dict[TopicPartition, FetchPartitionRequest] = {}

    @property
    def session_id(self) -> int:
        """The id of the session, 0 for none."""
        return self._metadata.session_id

    @property
    def session_partitions(self) -> Mapping[TopicPartition, FetchPartitionRequest]:
        """The partitions of the session and what was last asked of each."""
        return self._session_partitions

    def build(self, wanted: dict[TopicPartition, FetchPartitionRequest]) -> FetchRequestData:
        """The next fetch, which makes the session's partitions equal to `wanted`, in its order."""
        if self._metadata.is_full:
            # A copy: the request in flight must not change with the session.
            session = self._session_partitions = dict(wanted)
            return FetchRequestData(wanted, (), (), session, self._metadata)
        return self._build_incremental(wanted)

    def _build_incremental(
        self, wanted: dict[TopicPartition, FetchPartitionRequest]
    ) -> FetchRequestData:
        session = self._session_partitions
        to_send: dict[TopicPartition, FetchPartitionRequest] = {}
        removed: list[TopicIdPartition] = []
        replaced: list[TopicIdPartition] = []
        for partition, request in wanted.items():
            known = session.get(partition)
            if known == request:
                continue
            to_send[partition] = request
            if known is not None and _topic_was_recreated(known, request):
                replaced.append(TopicIdPartition(known.topic_id, partition))
        for partition in [known for known in session if known not in wanted]:
            removed.append(TopicIdPartition(session.pop(partition).topic_id, partition))
        session.update(to_send)
        return FetchRequestData(to_send, tuple(removed), tuple(replaced), session, self._metadata)

    def handle_response(self, response: FetchResponse) -> bool:
        """Take note of an answer; False if its partitions must be ignored."""
        if response.error is not Errors.NONE:
            self._session_failed(response.error)
            return False
        if self._metadata.is_full:
            return self._handle_full(response)
        return self._handle_incremental(response)

    def handle_error(self) -> None:
        """No answer came: the next fetch is a full one."""
        if self._incremental:
            self._metadata = self._metadata.next_close_existing_attempt_new()

    def _session_failed(self, error: Errors) -> None:
        if error is Errors.FETCH_SESSION_ID_NOT_FOUND and self._incremental:
            self._metadata = INITIAL_METADATA
        else:
            self.handle_error()

    def _handle_full(self, response: FetchResponse) -> bool:
        if not self._incremental:
            return True
        throttled = not response.partitions and response.throttle_time_ms > 0
        if throttled or response.partitions.keys() != self._session_partitions.keys():
            self._metadata = INITIAL_METADATA
            return False
        if response.session_id == INVALID_SESSION_ID:
            self._metadata = INITIAL_METADATA
        else:
            self._metadata = FetchMetadata(response.session_id, 1)
        return True

    def _handle_incremental(self, response: FetchResponse) -> bool:
        if not response.partitions.keys() <= self._session_partitions.keys():
            self._metadata = self._metadata.next_close_existing_attempt_new()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self._metadata = INITIAL_METADATA
        else:
            self._metadata = self._metadata.next_incremental()
        return True


def _topic_was_recreated(known: FetchPartitionRequest, wanted: FetchPartitionRequest) -> bool:
    return known.topic_id != wanted.topic_id and ZERO_UUID not in (known.topic_id, wanted.topic_id)
