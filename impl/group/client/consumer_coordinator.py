"""A consumer as a member: assignors, subscription, commits (ConsumerCoordinator).

Source: also its OffsetCommitResponseHandler (KAFKA-8487) and OffsetFetchResponseHandler.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ...errors import Errors, IllegalStateException, KafkaException
from ...purgatory.atomic import AtomicInteger
from ...types import TopicPartition
from ..messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_GENERATION_ID,
    UNKNOWN_MEMBER_ID,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
)
from .abstract_coordinator import AbstractCoordinator, coordinator_not_available
from .assignors.assignor import PartitionAssignor, PartitionCounts, RebalanceProtocol
from .buffer import ByteBuffer
from .config import GroupRebalanceConfig, MemberRuntime
from .consumer_config import ConsumerConfig
from .consumer_protocol import (
    Assignment,
    Subscription,
    deserialize_assignment,
    deserialize_subscription,
    serialize_assignment,
    serialize_subscription,
)
from .coordinator_metrics import ConsumerCoordinatorMetrics
from .errors import (
    CommitFailedException,
    FencedInstanceIdException,
    RebalanceInProgressException,
    RetriableCommitFailedException,
    TopicAuthorizationException,
    UnstableOffsetCommitException,
    WakeupException,
    exception_of,
    is_retriable,
)
from .generation import NO_GENERATION, Generation, MemberState
from .network_client import ConsumerNetworkClient
from .request_future import RequestFuture
from .sensors import Sensor
from .subscription_state import OffsetAndMetadata, SubscriptionState
from .timer import Timer

_log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_MAY_HAVE_ANOTHER_OWNER = (
    "the commit cannot be completed: the member is not part of an active group, and its "
    "partitions may have another owner. Poll more often or raise max.poll.interval.ms"
)
_REBALANCING = "the commit cannot be completed: the group rebalances. Poll, then commit again"

CommitCallback = Callable[[Offsets, Exception | None], None]


@dataclass(frozen=True, slots=True)
class OffsetCommitCompletion:
    """An asynchronous commit that is over, for the application's thread to call back."""

    callback: CommitCallback
    offsets: Offsets
    error: Exception | None


@dataclass(frozen=True, slots=True)
class PendingCommittedOffsetRequest:
    """Committed positions that were asked for, and in which stable generation, if in any."""

    partitions: frozenset[TopicPartition]
    generation: Generation | None
    response: RequestFuture[Offsets]

    def is_same(self, partitions: frozenset[TopicPartition], generation: Generation | None) -> bool:
        """Whether its answer is what is wanted now."""
        return self.partitions == partitions and self.generation == generation


ResultT = TypeVar("ResultT")


class ConsumerCoordinator(AbstractCoordinator):
    """The member's side of a rebalance, eager or cooperative (KIP-429).

    Eager: every partition is given up before each join. Cooperative: what is no longer subscribed
    to before it, and what another member is to have after it; then the member joins once more.
    `partition_counts` answers which topics there are, as the client's metadata would.
    """

    def __init__(
        self,
        config: GroupRebalanceConfig,
        consumer: ConsumerConfig,
        network: ConsumerNetworkClient,
        runtime: MemberRuntime,
        subscriptions: SubscriptionState,
        partition_counts: Callable[[], PartitionCounts],
    ) -> None:
        super().__init__(config, network, runtime)
        self.subscriptions = subscriptions
        self._consumer = consumer
        self._join_prepare_timer: Timer | None = None
        self._auto_commit_future: RequestFuture[None] | None = None
        self._next_auto_commit = runtime.timer(consumer.auto_commit_interval_ms)
        self._completed_commits: deque[OffsetCommitCompletion] = deque()
        counters = runtime.concurrency.lock("asynchronous commits")
        self._in_flight_async_commits = AtomicInteger(counters)
        self._pending_async_commits = AtomicInteger(counters)
        """Those that wait for a look-up of the coordinator."""
        self._is_async_commit_fenced = False
        self._pending_committed_offset_request: PendingCommittedOffsetRequest | None = None
        self._listener = consumer.listener
        self._own_sensors = ConsumerCoordinatorMetrics(
            self.metrics, lambda: len(subscriptions.assigned_partitions)
        )
        self._assignors = {assignor.name: assignor for assignor in consumer.assignors}
        self.protocol = _common_protocol(consumer.assignors)
        self._partition_counts = partition_counts
        self._joined_subscription: frozenset[str] | None = None
        self._assignment_snapshot: Mapping[str, int] | None = None
        self.is_leader = False

    # One turn of the application's loop.

    def poll(self, timer: Timer) -> bool:
        """Stay in the group; False if the coordinator or the assignment is not there in time."""
        self.invoke_completed_offset_commit_callbacks()
        if self.subscriptions.has_auto_assigned_partitions:
            timer.update()
            # Before all else: an application that polls is alive, coordinator or not.
            self.poll_heartbeat(timer.current_time_ms)
            self.update_pattern_subscription()
            if not self.ensure_coordinator_ready(timer):
                return False
            if self.rejoin_needed_or_pending() and not self.ensure_active_group(timer):
                return False
        else:
            # Only commits look for the coordinator.
            self.poll_no_wakeup()
        self.maybe_auto_commit_offsets_async()
        return True

    def rejoin_needed_or_pending(self) -> bool:
        """Also when the subscription, or as the leader the partitions, have changed since."""
        if not self.subscriptions.has_auto_assigned_partitions:
            return False
        if self._assignment_snapshot not in (None, self._metadata_snapshot()):
            self.request_rejoin_if_necessary("cached metadata has changed")
        if self._joined_subscription not in (None, self.subscriptions.subscription):
            self.request_rejoin_if_necessary("subscription has changed")
        return super().rejoin_needed_or_pending()

    def update_pattern_subscription(self) -> None:
        """Subscribe to the known topics that match the pattern, if there is one."""
        if self.subscriptions.has_pattern_subscription:
            self.subscriptions.match_topics(self._partition_counts())

    def _metadata_snapshot(self) -> Mapping[str, int]:
        counts = self._partition_counts()
        topics = self.subscriptions.group_subscription
        return {topic: counts[topic] for topic in topics if topic in counts}

    # The coordinator's contract.

    @property
    def protocol_type(self) -> str:
        """`consumer`."""
        return CONSUMER_PROTOCOL_TYPE

    def metadata(self) -> tuple[JoinGroupRequestProtocol, ...]:
        """One protocol per assignor, in the order of preference."""
        self._joined_subscription = self.subscriptions.subscription
        version = self._consumer.subscription_version
        return tuple(
            JoinGroupRequestProtocol(
                assignor.name, serialize_subscription(self._wish(assignor), version)
            )
            for assignor in self._consumer.assignors
        )

    def _wish(self, assignor: PartitionAssignor) -> Subscription:
        return Subscription(
            tuple(sorted(self.subscriptions.subscription)),
            assignor.subscription_user_data(),
            tuple(sorted(self.subscriptions.assigned_partitions)),
            self.generation.generation_id,
        )

    def on_join_prepare(self, timer: Timer, generation_id: int, member_id: str) -> bool:
        """Commit, then give partitions up; False while the commit is not through."""
        if not self.commit_before_join(timer):
            return False
        is_lost = generation_id == UNKNOWN_GENERATION_ID or member_id == UNKNOWN_MEMBER_ID
        failure = self._give_up_before_join(is_lost=is_lost)
        self.is_leader = False
        self.subscriptions.reset_group_subscription()
        self.commit_before_join_done()
        timer.update()
        _raise_listener_failure(failure)
        return True

    def _give_up_before_join(self, *, is_lost: bool) -> Exception | None:
        """Only an eager member that is in a generation hears that nothing is revoked."""
        owned = self.subscriptions.assigned_partitions
        given = owned
        if not is_lost and self.protocol is RebalanceProtocol.COOPERATIVE:
            topics = self.subscriptions.subscription
            given = frozenset(each for each in owned if each.topic not in topics)
        if not given and (is_lost or self.protocol is RebalanceProtocol.COOPERATIVE):
            return None
        failure = self._give_up(given, is_lost=is_lost)
        self.subscriptions.assign_from_subscribed(owned - given)
        return failure

    def perform_assignment(
        self,
        _leader_id: str,
        protocol: str,
        members: tuple[JoinGroupResponseMember, ...],
        skip_assignment: bool,
    ) -> Mapping[str, bytes]:
        """Let the chosen assignor divide the partitions; nothing if told to skip (KIP-814)."""
        assignor = self._assignor(protocol)
        self.is_leader = True
        wishes = {member.member_id: _wish_of(member) for member in members}
        self.subscriptions.group_subscribe({t for wish in wishes.values() for t in wish.topics})
        self.update_pattern_subscription()
        self._assignment_snapshot = self._metadata_snapshot()
        if skip_assignment:
            return {}
        assigned = assignor.assign(self._partition_counts(), wishes)
        return {
            member: serialize_assignment(Assignment(tuple(partitions)))
            for member, partitions in assigned.items()
        }

    def on_join_complete(
        self, generation_id: int, _member_id: str, protocol: str, assignment: ByteBuffer
    ) -> None:
        """Take the assignment; ask for another if it no longer fits the subscription."""
        if not self.is_leader:
            self._assignment_snapshot = None
        assignor = self._assignor(protocol)
        if assignment.remaining < 2:
            raise IllegalStateException("the assignment is empty: the leader left this member out")
        assigned = deserialize_assignment(assignment)
        if not self.subscriptions.matches_subscription(assigned.partitions):
            self.request_rejoin("received assignment does not match the current subscription")
            return
        owned = self.subscriptions.assigned_partitions
        failure = self._give_up_after_join(owned - frozenset(assigned.partitions))
        assignor.on_assignment(assigned, generation_id)
        self.restart_auto_commit_interval()
        self.subscriptions.assign_from_subscribed(assigned.partitions)
        last = self._call_listener(
            self._listener.on_partitions_assigned,
            frozenset(assigned.partitions) - owned,
            self._own_sensors.partitions_assigned,
        )
        _raise_listener_failure(failure or last)

    def _give_up_after_join(self, revoked: frozenset[TopicPartition]) -> Exception | None:
        """Others get what a cooperative member has given up when it joins once more."""
        if not revoked or self.protocol is RebalanceProtocol.EAGER:
            return None
        failure = self._give_up(revoked, is_lost=False)
        self.request_rejoin("need to revoke partitions and re-join")
        return failure

    def on_leave_prepare(self) -> None:
        """Give every partition up."""
        owned = self.subscriptions.assigned_partitions
        if not self.subscriptions.has_auto_assigned_partitions or not owned:
            return
        is_lost = self.has_generation_reset(self.generation) or self.rebalance_in_progress
        failure = self._give_up(owned, is_lost=is_lost)
        self.subscriptions.assign_from_subscribed(())
        _raise_listener_failure(failure)

    def _give_up(self, owned: frozenset[TopicPartition], *, is_lost: bool) -> Exception | None:
        listener, sensors = self._listener, self._own_sensors
        if is_lost:
            return self._call_listener(listener.on_partitions_lost, owned, sensors.partitions_lost)
        return self._call_listener(
            listener.on_partitions_revoked, owned, sensors.partitions_revoked
        )

    def _call_listener(
        self,
        callback: Callable[[frozenset[TopicPartition]], None],
        partitions: frozenset[TopicPartition],
        latency: Sensor,
    ) -> Exception | None:
        """What the application's callback raised; wake-ups pass, to be delivered again.

        A callback that raises has no latency (ConsumerRebalanceListenerInvoker).
        """
        started_ms = self.now_ms()
        try:
            callback(partitions)
        except WakeupException:
            raise
        except Exception as error:  # noqa: BLE001 - the application's code: the poll raises it
            return error
        latency.record(self.now_ms() - started_ms)
        return None

    def _assignor(self, name: str) -> PartitionAssignor:
        assignor = self._assignors.get(name)
        if assignor is None:
            raise IllegalStateException(f"the coordinator chose the unknown assignor {name!r}")
        return assignor

    # When it commits: on call, at intervals, before each join and as it closes.

    def commit_before_join(self, timer: Timer) -> bool:
        """True: go on with the join, the offsets are committed or cannot be (KAFKA-14024).

        One commit at a time over all calls, and for at most the rebalance time-out.
        """
        if self._join_prepare_timer is None:
            self._join_prepare_timer = self._runtime.timer(self.config.rebalance_timeout_ms)
        limit = self._join_prepare_timer
        limit.update()
        if self._consumer.enable_auto_commit and self._auto_commit_future is None:
            if self.protocol is RebalanceProtocol.EAGER:
                self.subscriptions.mark_pending_revocation(self.subscriptions.assigned_partitions)
            self._auto_commit_future = self._auto_commit()
        commit = self._auto_commit_future
        if commit is None:
            return True
        shorter = min(timer, limit, key=lambda each: each.remaining_ms)
        self.network.poll(commit, shorter)
        limit.update()
        if limit.is_expired or (commit.is_done and not (commit.failed and commit.is_retriable)):
            return True
        if commit.is_done:
            self._auto_commit_future = None
        shorter.sleep(self.config.retry_backoff_ms)
        timer.update()
        return False

    def commit_before_join_done(self) -> None:
        """The next rebalance starts with a new commit and a new time limit."""
        self._join_prepare_timer = None
        self._auto_commit_future = None

    def restart_auto_commit_interval(self) -> None:
        """New partitions are committed after a whole interval."""
        self._next_auto_commit.update_and_reset(self._consumer.auto_commit_interval_ms)

    def maybe_auto_commit_offsets_async(self) -> None:
        """Commit the positions if the interval is over."""
        if not self._consumer.enable_auto_commit:
            return
        self._next_auto_commit.update()
        if self._next_auto_commit.is_expired:
            self._next_auto_commit.reset(self._consumer.auto_commit_interval_ms)
            self._auto_commit()

    def _auto_commit(self) -> RequestFuture[None] | None:
        return self.commit_offsets_async(self.subscriptions.all_consumed(), self._on_auto_commit)

    def _on_auto_commit(self, _offsets: Offsets, error: Exception | None) -> None:
        if isinstance(error, RetriableCommitFailedException):
            # Soon again, not only after a whole interval.
            self._next_auto_commit.update_and_reset(self.config.retry_backoff_ms)
        elif error is not None:
            _log.warning("Asynchronous auto-commit of offsets failed: %s", error)

    def commit_offsets_async(
        self, offsets: Offsets, callback: CommitCallback | None = None
    ) -> RequestFuture[None] | None:
        """Commit without waiting; `callback` runs in a later call of the application's thread.

        None: the commit waits for the look-up of the coordinator. Positions of nothing need none.
        """
        self.invoke_completed_offset_commit_callbacks()
        future = None
        if not offsets or self._is_coordinator_ready_async():
            future = self._do_commit_offsets_async(offsets, callback)
        else:
            self._pending_async_commits.add(1)
            self.lookup_coordinator().add_listener(
                lambda done: self._commit_once_looked_up(done, offsets, callback)
            )
        self.network.poll_no_wakeup()
        return future

    def _is_coordinator_ready_async(self) -> bool:
        """Try once, without waiting, to know the coordinator; that forgets a look-up of before."""
        return not self.coordinator_unknown() or self.ensure_coordinator_ready_async()

    def _do_commit_offsets_async(
        self, offsets: Offsets, callback: CommitCallback | None
    ) -> RequestFuture[None]:
        future = self.send_offset_commit_request(offsets)
        self._in_flight_async_commits.add(1)
        future.add_listener(lambda done: self._on_async_commit_done(done, offsets, callback))
        return future

    def _on_async_commit_done(
        self, done: RequestFuture[None], offsets: Offsets, callback: CommitCallback | None
    ) -> None:
        self._in_flight_async_commits.add(-1)
        if done.failed and isinstance(done.exception, FencedInstanceIdException):
            self._is_async_commit_fenced = True
        self._queue_callback(done, offsets, callback)

    def _commit_once_looked_up(
        self, done: RequestFuture[None], offsets: Offsets, callback: CommitCallback | None
    ) -> None:
        self._pending_async_commits.add(-1)
        if done.failed:
            # Whatever it failed of, the commit may be tried again.
            error = RetriableCommitFailedException(str(done.exception))
            self._queue_callback(RequestFuture.failure(error), offsets, callback)
        else:
            self._do_commit_offsets_async(offsets, callback)
            self.network.poll_no_wakeup()

    def _queue_callback(
        self, done: RequestFuture[None], offsets: Offsets, callback: CommitCallback | None
    ) -> None:
        if callback is not None:
            self._completed_commits.append(
                OffsetCommitCompletion(callback, offsets, _commit_error(done))
            )

    def invoke_completed_offset_commit_callbacks(self) -> None:
        """Call back for asynchronous commits that are through, in their order.

        Raises, for ever, FencedInstanceIdException once such a commit was fenced.
        """
        if self._is_async_commit_fenced:
            raise FencedInstanceIdException(
                f"another member has the instance {self.config.group_instance_id}"
            )
        while self._completed_commits:
            completion = self._completed_commits.popleft()
            completion.callback(completion.offsets, completion.error)

    def commit_offsets_sync(self, offsets: Offsets, timer: Timer) -> bool:
        """Commit and wait; False if time ran out. Raises what another try would not cure.

        Asynchronous commits in flight are called back before it returns (KAFKA-5730), also with
        nothing to commit.
        """
        self.invoke_completed_offset_commit_callbacks()
        if not offsets:
            return self._invoke_pending_async_commits(timer)
        attempts = 0
        while True:
            if not self.ensure_coordinator_ready(timer):
                return False
            future = self.send_offset_commit_request(offsets)
            self.network.poll(future, timer)
            self.invoke_completed_offset_commit_callbacks()
            if future.succeeded:
                return True
            _raise_unless_retriable(future)
            timer.sleep(self.retry_backoff.backoff(attempts))
            attempts += 1
            if timer.is_expired:
                return False

    def _invoke_pending_async_commits(self, timer: Timer) -> bool:
        """Wait until no asynchronous commit is in flight; those before a look-up do not count."""
        attempts = 0
        while self._in_flight_async_commits.get():
            if attempts and timer.is_expired:
                return False
            self.ensure_coordinator_ready(timer)
            self.network.poll_until_answered(timer)
            self.invoke_completed_offset_commit_callbacks()
            if self._in_flight_async_commits.get():
                timer.sleep(self.retry_backoff.backoff(attempts))
            attempts += 1
        return True

    def fetch_committed_offsets(
        self, partitions: Iterable[TopicPartition], timer: Timer
    ) -> Offsets | None:
        """The committed positions; None if time ran out. Raises what another try cannot cure.

        A request without an answer is waited for by the next call that asks the same, in the same
        generation; otherwise it is forgotten.
        """
        wanted = frozenset(partitions)
        if not wanted:
            return {}
        generation = self.generation if self.state is MemberState.STABLE else None
        pending = self._pending_committed_offset_request
        if pending is not None and not pending.is_same(wanted, generation):
            self._pending_committed_offset_request = None
        attempts = 0
        while self.ensure_coordinator_ready(timer):
            future = self._committed_offsets(wanted, generation)
            self.network.poll(future, timer)
            if not future.is_done:
                return None
            self._pending_committed_offset_request = None
            if future.succeeded:
                return future.value
            _raise_unless_retriable(future)
            timer.sleep(self.retry_backoff.backoff(attempts))
            attempts += 1
            if timer.is_expired:
                return None
        return None

    def _committed_offsets(
        self, partitions: frozenset[TopicPartition], generation: Generation | None
    ) -> RequestFuture[Offsets]:
        pending = self._pending_committed_offset_request
        if pending is None:
            response = self.send_offset_fetch_request(sorted(partitions))
            pending = PendingCommittedOffsetRequest(partitions, generation, response)
            self._pending_committed_offset_request = pending
        return pending.response

    def close(self, timer: Timer) -> None:
        """Commit what was consumed, send what waits for a look-up, leave, await what is in flight.

        Whoever closes is not woken up any more.
        """
        self.network.disable_wakeups()
        try:
            if self._consumer.enable_auto_commit:
                self._commit_on_close(timer)
            while self._pending_async_commits.get() and timer.not_expired:
                self.ensure_coordinator_ready(timer)
                self.network.poll_until_answered(timer)
                self.invoke_completed_offset_commit_callbacks()
        finally:
            super().close(timer)
            self.invoke_completed_offset_commit_callbacks()

    def _commit_on_close(self, timer: Timer) -> None:
        try:
            self.commit_offsets_sync(self.subscriptions.all_consumed(), timer)
        except KafkaException as error:
            _log.warning("Synchronous auto-commit of offsets failed: %s", error)

    # Requests for offsets, and every error code of their answers.

    def send_offset_commit_request(self, offsets: Offsets) -> RequestFuture[None]:
        """Commit positions in the current generation; fails at once outside a stable one."""
        if not offsets:
            return RequestFuture.of(None)
        if self.coordinator_unknown():
            return RequestFuture.failure(coordinator_not_available())
        generation, instance_id = NO_GENERATION, None
        if self.subscriptions.has_auto_assigned_partitions:
            with self.lock:
                # One section: a reset in between would give the failure another name.
                if self.state is not MemberState.STABLE:
                    return RequestFuture.failure(self._commit_failure())
                generation, instance_id = self.generation, self.config.group_instance_id
        request = OffsetCommitRequest(
            self.config.group_id,
            tuple(
                OffsetCommitRequestPartition(tp, o.offset, o.leader_epoch, o.metadata)
                for tp, o in offsets.items()
            ),
            generation.generation_id,
            generation.member_id,
            instance_id,
        )
        return self.send_to_coordinator(
            request,
            OffsetCommitResponse,
            self.on_offset_commit_response,
            generation,
            timed=lambda _, latency_ms: self._own_sensors.commit.record(latency_ms),
        )

    def _commit_failure(self) -> Exception:
        if self.rebalance_in_progress:
            return RebalanceInProgressException(_REBALANCING)
        return CommitFailedException(_MAY_HAVE_ANOTHER_OWNER)

    def on_offset_commit_response(
        self, response: OffsetCommitResponse, sent: Generation, future: RequestFuture[None]
    ) -> None:
        """Complete, or fail with the first error; missing authorisations are collected."""
        unauthorized = []
        for partition in response.partitions:
            if partition.error_code == Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.append(partition.topic_partition.topic)
            elif partition.error_code != Errors.NONE:
                future.fail(self._on_commit_error(partition.error_code, sent))
                return
        if unauthorized:
            future.fail(TopicAuthorizationException(", ".join(sorted(set(unauthorized)))))
        else:
            future.complete(None)

    def _on_commit_error(self, error: Errors, sent: Generation) -> Exception:
        match error:
            case (
                Errors.COORDINATOR_NOT_AVAILABLE | Errors.NOT_COORDINATOR | Errors.REQUEST_TIMED_OUT
            ):
                self.mark_coordinator_unknown(error.name)
                return exception_of(error)
            case Errors.FENCED_INSTANCE_ID:
                return self._on_commit_fenced(sent)
            case Errors.REBALANCE_IN_PROGRESS:
                # The member is still in its generation: join again, reset nothing (KAFKA-8487).
                self.request_rejoin("offset commit failed since group is already rebalancing")
                return RebalanceInProgressException(_REBALANCING)
            case Errors.UNKNOWN_MEMBER_ID | Errors.ILLEGAL_GENERATION:
                return self._on_commit_of_old_generation(error, sent)
            case _ if error in _PLAIN_COMMIT_ERRORS:
                return exception_of(error)
            case _:
                return KafkaException(f"Unexpected error in commit: {error.name}")

    def _on_commit_fenced(self, sent: Generation) -> Exception:
        if self.generation_unchanged(sent):
            return exception_of(Errors.FENCED_INSTANCE_ID)
        if self.state is MemberState.PREPARING_REBALANCE:
            return RebalanceInProgressException(_REBALANCING)
        return CommitFailedException(_MAY_HAVE_ANOTHER_OWNER)

    def _on_commit_of_old_generation(self, error: Errors, sent: Generation) -> Exception:
        with self.lock:
            if (
                not self.generation_unchanged(sent)
                and self.state is MemberState.PREPARING_REBALANCE
            ):
                return RebalanceInProgressException(_REBALANCING)
            self.reset_generation_on_response_error("OffsetCommit", error)
            return CommitFailedException(_MAY_HAVE_ANOTHER_OWNER)

    def send_offset_fetch_request(
        self, partitions: Iterable[TopicPartition]
    ) -> RequestFuture[Offsets]:
        """Ask for committed positions; those never committed are missing from the value."""
        request = OffsetFetchRequest(self.config.group_id, tuple(partitions), require_stable=True)
        return self.send_to_coordinator(
            request, OffsetFetchResponse, self.on_offset_fetch_response, self.generation
        )

    def on_offset_fetch_response(
        self,
        response: OffsetFetchResponse,
        _sent: Generation,
        future: RequestFuture[Offsets],
    ) -> None:
        """Complete with the positions, or fail."""
        error = response.error_code
        if error != Errors.NONE:
            future.fail(self._on_fetch_error(error))
            return
        failure = _partition_failure(response.partitions)
        if failure is not None:
            future.fail(failure)
            return
        future.complete(
            {
                p.topic_partition: OffsetAndMetadata(
                    p.committed_offset, p.committed_leader_epoch, p.metadata
                )
                for p in response.partitions
                if p.committed_offset >= 0
            }
        )

    def _on_fetch_error(self, error: Errors) -> Exception:
        if error in (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE):
            self.mark_coordinator_unknown(error.name)
            return exception_of(error)
        if error in (Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.GROUP_AUTHORIZATION_FAILED):
            return exception_of(error)
        return KafkaException(f"Unexpected error in fetch offset response: {error.name}")


def _common_protocol(assignors: Iterable[PartitionAssignor]) -> RebalanceProtocol:
    """The latest one that all assignors support. Raises IllegalStateException if there is none."""
    common = frozenset(RebalanceProtocol).intersection(
        *(assignor.supported_protocols for assignor in assignors)
    )
    if not common:
        raise IllegalStateException("the assignors have no rebalance protocol in common")
    return max(common)


def _wish_of(member: JoinGroupResponseMember) -> Subscription:
    wish = deserialize_subscription(ByteBuffer(member.metadata))
    return Subscription(
        wish.topics,
        wish.user_data,
        wish.owned_partitions,
        wish.generation_id,
        wish.rack_id,
        member.group_instance_id,
    )


def _raise_listener_failure(error: Exception | None) -> None:
    if error is not None:
        raise KafkaException("User rebalance callback throws an error") from error


def _commit_error(done: RequestFuture[None]) -> Exception | None:
    if not done.failed:
        return None
    if is_retriable(done.exception):
        return RetriableCommitFailedException(str(done.exception))
    return done.exception


def _raise_unless_retriable(future: RequestFuture[ResultT]) -> None:
    if future.failed and not future.is_retriable:
        raise future.exception


_PLAIN_COMMIT_ERRORS = frozenset(
    {
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.OFFSET_METADATA_TOO_LARGE,
        Errors.INVALID_COMMIT_OFFSET_SIZE,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def _partition_failure(partitions: Iterable[OffsetFetchResponsePartition]) -> Exception | None:
    """The failure of a whole fetch by its partitions: missing rights before open transactions."""
    unauthorized, unstable = set(), set()
    for partition in partitions:
        match partition.error_code:
            case Errors.NONE:
                pass
            case Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(partition.topic_partition.topic)
            case Errors.UNSTABLE_OFFSET_COMMIT:
                unstable.add(str(partition.topic_partition))
            case Errors.UNKNOWN_TOPIC_OR_PARTITION:
                return KafkaException(f"{partition.topic_partition} does not exist")
            case error:
                return KafkaException(f"Unexpected error in fetch offset response: {error.name}")
    if unauthorized:
        return TopicAuthorizationException(", ".join(sorted(unauthorized)))
    if unstable:
        return UnstableOffsetCommitException(", ".join(sorted(unstable)))
    return None
