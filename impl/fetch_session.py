"""The leader's side of fetch sessions: what a follower asked for last, so that it need not repeat.

Source: FetchSession, FetchManager (KIP-227). Session ids count from 1 instead of being random, so
that runs can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

from .clock import Clock
from .concurrency import Lock
from .errors import Errors
from .network import FINAL_EPOCH, INVALID_SESSION_ID, FetchMetadata, FetchRequest, FetchResponse
from .types import ZERO_UUID, FetchPartitionData, FetchPartitionRequest, TopicPartition

_FIRST_VERSION_WITH_SESSIONS = 7
MAX_SESSIONS = 1_000
"""max.incremental.fetch.session.cache.slots as delivered."""
MIN_EVICTION_MS = 120_000
"""KafkaBroker.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""


class FetchSession:
    """One client's session: its partitions in the order in which they are served. That of a
    follower is privileged."""

    __slots__ = (
        "_created_ms",
        "_sent",
        "epoch",
        "is_evictable",
        "is_privileged",
        "partitions",
        "session_id",
        "used_ms",
    )

    def __init__(self, session_id: int, request: FetchRequest, now_ms: int) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.partitions: dict[TopicPartition, FetchPartitionRequest] = dict(request.to_send)
        self._sent: dict[TopicPartition, tuple[int, int]] = {}
        self.is_privileged = request.is_from_follower
        self._created_ms = self.used_ms = now_ms
        self.is_evictable = False
        """Whether it may go for one of its kind: it was old when it was last used."""

    @property
    def rank(self) -> tuple[bool, int]:
        """What it is worth, beside another one (EvictableKey without the id)."""
        return self.is_privileged, len(self.partitions)

    def touch(self, now_ms: int) -> None:
        """It is used (FetchSessionCacheShard.touch)."""
        self.used_ms = now_ms
        self.is_evictable = now_ms - self._created_ms > MIN_EVICTION_MS

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
    """All sessions of a broker; when it is full, a new one may take the place of another."""

    def __init__(self, lock: Lock, clock: Clock, max_sessions: int = MAX_SESSIONS) -> None:
        self._lock = lock
        self._clock = clock
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
        now_ms = self._clock.milliseconds()
        if closing or not request.to_send or not self._has_room(request, now_ms):
            return FetchContext(request.to_send)
        self._last_id += 1
        session = self._sessions[self._last_id] = FetchSession(self._last_id, request, now_ms)
        return FetchContext(request.to_send, session, is_new=True)

    def _has_room(self, request: FetchRequest, now_ms: int) -> bool:
        """Whether there is a slot; another session may be evicted for it
        (FetchSessionCacheShard.tryEvict)."""
        if len(self._sessions) < self._max_sessions:
            return True
        evicted = self._evicted(request, now_ms)
        if evicted is not None:
            del self._sessions[evicted.session_id]
        return evicted is not None

    def _evicted(self, request: FetchRequest, now_ms: int) -> FetchSession | None:
        sessions = self._sessions.values()
        unused = min(sessions, key=lambda session: session.used_ms, default=None)
        if unused is None or now_ms - unused.used_ms > MIN_EVICTION_MS:
            return unused
        privileged = request.is_from_follower
        may_go = [
            session
            for session in sessions
            if session.is_evictable or (privileged and not session.is_privileged)
        ]
        least = min(may_go, key=lambda session: session.rank, default=None)
        is_less = least is not None and least.rank < (privileged, len(request.to_send))
        return least if is_less else None

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
        session.touch(self._clock.milliseconds())
        return FetchContext(dict(session.partitions), session)


def _mixes_topic_ids(session: FetchSession, request: FetchRequest) -> bool:
    known = {data.topic_id != ZERO_UUID for data in session.partitions.values()}
    asked = {data.topic_id != ZERO_UUID for data in request.to_send.values()}
    return len(known | asked) > 1
