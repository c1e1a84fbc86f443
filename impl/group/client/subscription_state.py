"""What the application subscribes to, owns, and has consumed (SubscriptionState)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from ...concurrency import Lock, NoConcurrency
from ...errors import IllegalStateException, KafkaException
from ...types import (
    NO_PARTITION_LEADER_EPOCH,
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    BrokerEndPoint,
    EpochEndOffset,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed position: the next offset to read."""

    offset: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    metadata: str = ""


class OffsetResetStrategy(Enum):
    """Where to begin without a position (auto.offset.reset)."""

    LATEST = "latest"
    EARLIEST = "earliest"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class LeaderAndEpoch:
    """A partition's leader as the client's metadata has it; None: unknown."""

    leader: BrokerEndPoint | None = None
    epoch: int | None = None


NO_LEADER_OR_EPOCH = LeaderAndEpoch()


@dataclass(frozen=True, slots=True)
class FetchPosition:
    """The next offset to fetch; `offset_epoch` is that of the last batch before it, if known."""

    offset: int
    offset_epoch: int | None = None
    current_leader: LeaderAndEpoch = NO_LEADER_OR_EPOCH


class FetchState(Enum):
    """How a partition comes to a position that can be fetched from (FetchStates)."""

    INITIALIZING = "INITIALIZING"
    FETCHING = "FETCHING"
    AWAIT_RESET = "AWAIT_RESET"
    AWAIT_VALIDATION = "AWAIT_VALIDATION"

    @property
    def requires_position(self) -> bool:
        """Whether there is a position, valid or not."""
        return self in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)

    def is_valid_transition(self, new: FetchState) -> bool:
        """Whether `new` may follow; a partition that awaits a reset has nothing to validate."""
        if new is FetchState.INITIALIZING:
            return False
        return not (self is FetchState.AWAIT_RESET and new is FetchState.AWAIT_VALIDATION)


class LogTruncationException(KafkaException):
    """The log no longer has the consumer's position, and there is no reset policy (KIP-320)."""


class NoOffsetForPartitionException(KafkaException):
    """There is neither a committed position nor a reset policy."""


class TopicPartitionState:
    """The position of one partition that is owned."""

    __slots__ = ("fetch_state", "next_retry_time_ms", "paused", "position", "reset_strategy")

    def __init__(self) -> None:
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.paused = False
        self.reset_strategy: OffsetResetStrategy | None = None
        self.next_retry_time_ms: int | None = None

    @property
    def has_valid_position(self) -> bool:
        """Whether records may be fetched from the position, and handed out."""
        return self.fetch_state is FetchState.FETCHING

    def awaits_retry(self, now_ms: int) -> bool:
        """Whether a request is in flight, or has failed a short while ago."""
        return self.next_retry_time_ms is not None and now_ms < self.next_retry_time_ms

    def transition_state(self, new: FetchState, run: Callable[[], None]) -> None:
        """Go to a state; a transition that does not exist is left out."""
        if not self.fetch_state.is_valid_transition(new):
            return
        self.fetch_state = new
        run()
        if not new.requires_position:
            self.position = None
        elif self.position is None:
            raise IllegalStateException(f"{new.name} needs a position")

    def reset(self, strategy: OffsetResetStrategy) -> None:
        """Ask anew where to begin; what was asked before counts no more."""

        def run() -> None:
            self.reset_strategy = strategy
            self.next_retry_time_ms = None

        self.transition_state(FetchState.AWAIT_RESET, run)

    def seek_validated(self, position: FetchPosition) -> None:
        """Fetch from here."""

        def run() -> None:
            self.position = position
            self.reset_strategy = None
            self.next_retry_time_ms = None

        self.transition_state(FetchState.FETCHING, run)

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Fetch from here, once the leader was asked if the epochs are known."""
        self.seek_validated(position)
        self._validate_position(position)

    def maybe_validate_position(self, current: LeaderAndEpoch) -> None:
        """Ask a leader that is new to the position. Nothing while the leader is unknown."""
        if self.fetch_state is FetchState.AWAIT_RESET or current.leader is None:
            return
        position = self.position
        if position is not None and position.current_leader != current:
            self._validate_position(FetchPosition(position.offset, position.offset_epoch, current))

    def complete_validation(self) -> None:
        """The leader has the position."""

        def run() -> None:
            self.next_retry_time_ms = None

        if self.position is not None:
            self.transition_state(FetchState.FETCHING, run)

    def _validate_position(self, position: FetchPosition) -> None:
        def run() -> None:
            self.position = position
            self.next_retry_time_ms = None

        known = position.offset_epoch is not None and position.current_leader.epoch is not None
        state = FetchState.AWAIT_VALIDATION if known else FetchState.FETCHING
        self.transition_state(state, run)


class SubscriptionState:
    """Either a subscription, for which the group assigns, or a manual assignment.

    What answers change is one section of `lock`: another thread may call them back. All else is
    the application's thread's.
    """

    def __init__(
        self,
        default_reset_strategy: OffsetResetStrategy = OffsetResetStrategy.LATEST,
        lock: Lock | None = None,
    ) -> None:
        self._default_reset_strategy = default_reset_strategy
        self._lock = NoConcurrency().lock("subscriptions") if lock is None else lock
        self.unsubscribe()

    def unsubscribe(self) -> None:
        """Want and own nothing."""
        self._subscription: frozenset[str] = frozenset()
        self._group_subscription: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._auto_assigned = False
        self._has_subscription = False
        self._assignment: dict[TopicPartition, TopicPartitionState] = {}
        self._pending_revocation: set[TopicPartition] = set()

    # What is wanted, and what is owned.

    @property
    def has_auto_assigned_partitions(self) -> bool:
        """Whether the group assigns (subscribe), not the application (assign)."""
        return self._auto_assigned

    @property
    def has_subscription(self) -> bool:
        """Whether there is a subscription or an assignment by hand."""
        return self._has_subscription

    @property
    def subscription(self) -> frozenset[str]:
        """The topics subscribed to."""
        return self._subscription

    @property
    def group_subscription(self) -> frozenset[str]:
        """Topics whose metadata this member must watch: as the leader, every member's."""
        return self._group_subscription | self._subscription

    @property
    def assigned_partitions(self) -> frozenset[TopicPartition]:
        """The partitions owned."""
        return frozenset(self._assignment)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Let the group assign partitions of `topics`. Raises after a manual `assign`."""
        if self._has_subscription and not self._auto_assigned:
            raise IllegalStateException("partitions are assigned by hand: unsubscribe first")
        if self._pattern is not None:
            raise IllegalStateException("a pattern is subscribed to: unsubscribe first")
        self._auto_assigned = self._has_subscription = True
        self._subscription = frozenset(topics)

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Let the group assign partitions of all topics that match.

        Raises after `subscribe` and after `assign`. Which topics match is for `match_topics`.
        """
        if self._has_subscription and self._pattern is None:
            raise IllegalStateException("topics or partitions are subscribed to: unsubscribe first")
        self._auto_assigned = self._has_subscription = True
        self._pattern = pattern

    @property
    def has_pattern_subscription(self) -> bool:
        """Whether a pattern says which topics are subscribed to."""
        return self._pattern is not None

    def matches_subscribed_pattern(self, topic: str) -> bool:
        """Whether there is a pattern, and the topic matches it as a whole."""
        return self._pattern is not None and self._pattern.fullmatch(topic) is not None

    def match_topics(self, known: Iterable[str]) -> None:
        """The topics subscribed to are those of `known` that match (subscribeFromPattern)."""
        self._subscription = frozenset(filter(self.matches_subscribed_pattern, known))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Own `partitions` without a group. Raises after `subscribe`."""
        if self._auto_assigned:
            raise IllegalStateException("topics are subscribed to: unsubscribe first")
        self._has_subscription = True
        self._take(partitions)

    def group_subscribe(self, topics: Iterable[str]) -> None:
        """The leader watches every member's topics."""
        self._group_subscription = frozenset(topics)

    def reset_group_subscription(self) -> None:
        """No longer the leader."""
        self._group_subscription = frozenset()

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> None:
        """Own what the group gave; positions of partitions that stay are kept."""
        self._take(partitions)

    def matches_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether every partition is of a topic still subscribed to, or matches the pattern."""
        if self._pattern is not None:
            return all(self.matches_subscribed_pattern(partition.topic) for partition in partitions)
        return all(partition.topic in self._subscription for partition in partitions)

    def _take(self, partitions: Iterable[TopicPartition]) -> None:
        known = self._assignment
        self._assignment = {tp: known.get(tp) or TopicPartitionState() for tp in partitions}
        self._pending_revocation = set()

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out no more records of partitions about to be given up (KAFKA-14024)."""
        self._pending_revocation = set(partitions)

    def is_pending_revocation(self, partition: TopicPartition) -> bool:
        """Whether the partition is about to be given up."""
        return partition in self._pending_revocation

    # Positions.

    def state(self, partition: TopicPartition) -> TopicPartitionState | None:
        """None: not owned."""
        return self._assignment.get(partition)

    def _assigned_state(self, partition: TopicPartition) -> TopicPartitionState:
        state = self._assignment.get(partition)
        if state is None:
            raise IllegalStateException(f"no position for {partition}: it is not assigned")
        return state

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The next record to read. Raises IllegalStateException if the partition is not owned."""
        self._assigned_state(partition).seek_validated(FetchPosition(offset))

    def seek_unvalidated(self, partition: TopicPartition, position: FetchPosition) -> None:
        """As `seek`, to a position that the leader is asked about if its epoch is known."""
        with self._lock:
            self._assigned_state(partition).seek_unvalidated(position)

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        """Where the partition is read. Raises IllegalStateException if it is not owned."""
        return self._assigned_state(partition).position

    def set_position(self, partition: TopicPartition, position: FetchPosition) -> None:
        """Records were handed out."""
        self._assigned_state(partition).position = position

    def pause(self, partition: TopicPartition) -> None:
        """Hand out nothing; keep what was fetched."""
        self._assigned_state(partition).paused = True

    def resume(self, partition: TopicPartition) -> None:
        """Go on where it was paused."""
        self._assigned_state(partition).paused = False

    def is_paused(self, partition: TopicPartition) -> bool:
        """Whether the application has paused it."""
        state = self._assignment.get(partition)
        return state is not None and state.paused

    def has_valid_position(self, partition: TopicPartition) -> bool:
        """Whether it is owned, and its position can be fetched from."""
        state = self._assignment.get(partition)
        return state is not None and state.has_valid_position

    def is_fetchable(self, partition: TopicPartition) -> bool:
        """Whether records of the partition may be handed to the application."""
        return (
            self.has_valid_position(partition)
            and not self.is_paused(partition)
            and partition not in self._pending_revocation
        )

    def fetchable_partitions(self) -> tuple[TopicPartition, ...]:
        """Those from which records may be fetched now."""
        return tuple(filter(self.is_fetchable, self._assignment))

    def has_all_fetch_positions(self) -> bool:
        """Whether nothing has to be looked up, reset or validated."""
        return all(state.has_valid_position for state in self._assignment.values())

    def all_consumed(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The positions to commit: only those that are valid."""
        return {
            tp: OffsetAndMetadata(state.position.offset, _commit_epoch(state.position))
            for tp, state in self._assignment.items()
            if state.has_valid_position and state.position is not None
        }

    # Where to begin.

    @property
    def has_default_reset_strategy(self) -> bool:
        """Whether auto.offset.reset says where to begin."""
        return self._default_reset_strategy is not OffsetResetStrategy.NONE

    def initializing_partitions(self) -> frozenset[TopicPartition]:
        """Those whose committed position is not yet known."""
        return frozenset(self._in_state(FetchState.INITIALIZING))

    def request_offset_reset(
        self, partition: TopicPartition, strategy: OffsetResetStrategy | None = None
    ) -> None:
        """Begin anew, by default where auto.offset.reset says."""
        with self._lock:
            self._assigned_state(partition).reset(strategy or self._default_reset_strategy)

    def reset_initializing_positions(self) -> None:
        """Nothing was committed. Raises NoOffsetForPartitionException without a policy."""
        initializing = self._in_state(FetchState.INITIALIZING)
        if initializing and not self.has_default_reset_strategy:
            raise NoOffsetForPartitionException(", ".join(map(str, initializing)))
        for partition in initializing:
            self.request_offset_reset(partition)

    def partitions_needing_reset(self, now_ms: int) -> tuple[TopicPartition, ...]:
        """Those to ask ListOffsets for."""
        return self._to_ask(FetchState.AWAIT_RESET, now_ms)

    def partitions_needing_validation(self, now_ms: int) -> tuple[TopicPartition, ...]:
        """Those to ask OffsetsForLeaderEpoch for."""
        return self._to_ask(FetchState.AWAIT_VALIDATION, now_ms)

    def set_next_allowed_retry(self, partition: TopicPartition, retry_time_ms: int) -> None:
        """Ask not again before. Of what is no longer owned nothing is asked."""
        state = self._assignment.get(partition)
        if state is not None:
            state.next_retry_time_ms = retry_time_ms

    def maybe_seek_unvalidated(
        self, partition: TopicPartition, position: FetchPosition, strategy: OffsetResetStrategy
    ) -> None:
        """Begin where ListOffsets says, if that is still what is wanted (KAFKA-7703)."""
        with self._lock:
            state = self._assignment.get(partition)
            if (
                state is not None
                and state.fetch_state is FetchState.AWAIT_RESET
                and state.reset_strategy is strategy
            ):
                state.seek_unvalidated(position)

    # Whether the log is still the one that was read (KIP-320).

    def maybe_validate_position_for_current_leader(
        self, partition: TopicPartition, current: LeaderAndEpoch
    ) -> None:
        """The metadata names a leader."""
        with self._lock:
            state = self._assignment.get(partition)
            if state is not None:
                state.maybe_validate_position(current)

    def maybe_complete_validation(
        self, partition: TopicPartition, asked: FetchPosition, end: EpochEndOffset
    ) -> LogTruncationException | None:
        """Go on, go back, or begin anew; nothing if the position is another by now (KAFKA-8429).

        Without a reset policy a truncation is the application's to decide.
        """
        with self._lock:
            state = self._assignment.get(partition)
            if state is None or state.fetch_state is not FetchState.AWAIT_VALIDATION:
                return None
            if state.position != asked:
                return None
            is_undefined = (
                end.end_offset == UNDEFINED_EPOCH_OFFSET or end.leader_epoch == UNDEFINED_EPOCH
            )
            if not is_undefined and end.end_offset >= asked.offset:
                state.complete_validation()
            elif not self.has_default_reset_strategy:
                return LogTruncationException(f"{partition} was truncated below {asked.offset}")
            elif is_undefined:
                state.reset(self._default_reset_strategy)
            else:
                state.seek_validated(
                    FetchPosition(end.end_offset, end.leader_epoch, asked.current_leader)
                )
            return None

    def _in_state(self, wanted: FetchState) -> tuple[TopicPartition, ...]:
        return tuple(tp for tp, state in self._assignment.items() if state.fetch_state is wanted)

    def _to_ask(self, wanted: FetchState, now_ms: int) -> tuple[TopicPartition, ...]:
        partitions: Collection[TopicPartition] = self._in_state(wanted)
        return tuple(tp for tp in partitions if not self._assignment[tp].awaits_retry(now_ms))


def _commit_epoch(position: FetchPosition) -> int:
    return NO_PARTITION_LEADER_EPOCH if position.offset_epoch is None else position.offset_epoch
