"""The leader's side of fetch sessions: what a follower asked for last, so that it need not repeat.

Source: FetchSession, FetchManager (KIP-227). Session ids count from 1 instead of being random, so
that runs can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

from .concurrency import Lock
from .errors import Errors
from .network import FINAL_EPOCH, INVALID_SESSION_ID, FetchMetadata, FetchRequest, FetchResponse
from .types import ZERO_UUID, FetchPartitionData, FetchPartitionRequest, TopicPartition

_FIRST_VERSION_WITH_SESSIONS = 7


class FetchSession:
    """One follower's session: its partitions in the order in which they are served."""

    __slots__ = ("_sent", "epoch", "partitions", "session_id")

    def __init__(self, session_id: int, request: FetchRequest) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.partitions: dict[TopicPartition, FetchPartitionRequest] = dict(request.to_send)
        self._sent: dict[TopicPartition, tuple[int, int]] = {}

    def update(self, request: FetchRequest) -> None:
        """Take over what an incremental request changes."""
        for partition, data in request.to_send.items():
            # KAFKA-9338: with the leader epoch, or later fetches would not be validated.
            self.partitions[partition] = data
        for removed in request.removed:
            self.partitions.pop(removed.topic_partition, None)
            self._sent.pop(removed.topic_partition, None)

    def note_full(self, answer: Mapping[TopicPartition, FetchPartitionData]) -> None:
        """Remember what the first, full answer said."""
        for partition, data in answer.items():
            self._sent[partition] = (data.high_watermark, data.log_start_offset)

    def changed(
        self, answer: Mapping[TopicPartition, FetchPartitionData]
    ) -> dict[TopicPartition, FetchPartitionData]:
        """The partitions that the follower must hear of; those with records go to the end."""
        told = {}
        for partition, data in answer.items():
            offsets = (data.high_watermark, data.log_start_offset)
            has_records = data.records.size_in_bytes > 0
            news = has_records or data.diverging_epoch is not None or data.error is not Errors.NONE
            if news or self._sent.get(partition) != offsets:
                told[partition] = data
                self._sent[partition] = offsets
            if data.error is not Errors.NONE:
                self._sent.pop(partition, None)  # told again once the error is gone
            if has_records:
                self.partitions[partition] = self.partitions.pop(partition)
        return told


class FetchContext:
    """One request's view of its session, if it has one."""

    __slots__ = ("_is_new", "_session", "partitions")

    def __init__(
        self,
        partitions: Mapping[TopicPartition, FetchPartitionRequest],
        session: FetchSession | None = None,
        is_new: bool = False,
    ) -> None:
        self.partitions = partitions
        self._session = session
        self._is_new = is_new

    def respond(self, answer: dict[TopicPartition, FetchPartitionData]) -> FetchResponse:
        """The answer in the session's form: whole, or only what has changed."""
        session = self._session
        if session is None:
            return FetchResponse(answer)
        if self._is_new:
            session.note_full(answer)
            return FetchResponse(answer, session_id=session.session_id)
        return FetchResponse(session.changed(answer), session_id=session.session_id)


class FetchSessionCache:
    """All sessions of a broker; when it is full, new followers get none."""

    def __init__(self, lock: Lock, max_sessions: int = 1_000) -> None:
        self._lock = lock
        self._max_sessions = max_sessions
        self._sessions: dict[int, FetchSession] = {}
        self._last_id = INVALID_SESSION_ID

    def new_context(self, request: FetchRequest) -> FetchContext | Errors:
        """The request's context, or the error of its session."""
        if request.version < _FIRST_VERSION_WITH_SESSIONS:
            return FetchContext(request.to_send)
        with self._lock:
            if request.metadata.is_full:
                return self._new_full_context(request)
            return self._incremental_context(request)

    def _new_full_context(self, request: FetchRequest) -> FetchContext:
        self._sessions.pop(request.metadata.session_id, None)
        closing = request.metadata.epoch == FINAL_EPOCH
        if closing or not request.to_send or len(self._sessions) >= self._max_sessions:
            return FetchContext(request.to_send)
        self._last_id += 1
        session = self._sessions[self._last_id] = FetchSession(self._last_id, request)
        return FetchContext(request.to_send, session, is_new=True)

    def _incremental_context(self, request: FetchRequest) -> FetchContext | Errors:
        session = self._sessions.get(request.metadata.session_id)
        if session is None:
            return Errors.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.metadata.epoch:
            return Errors.INVALID_FETCH_SESSION_EPOCH
        if _mixes_topic_ids(session, request):
            return Errors.FETCH_SESSION_TOPIC_ID_ERROR
        session.update(request)
        session.epoch = FetchMetadata(session.session_id, session.epoch).next_incremental().epoch
        if not session.partitions:
            del self._sessions[session.session_id]
            return FetchContext({})
        return FetchContext(dict(session.partitions), session)


def _mixes_topic_ids(session: FetchSession, request: FetchRequest) -> bool:
    known = {data.topic_id != ZERO_UUID for data in session.partitions.values()}
    asked = {data.topic_id != ZERO_UUID for data in request.to_send.values()}
    return len(known | asked) > 1
