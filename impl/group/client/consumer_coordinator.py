"""A consumer as a member: assignors, subscription, automatic commit (ConsumerCoordinator)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from impl.errors import IllegalStateException, KafkaException
from impl.group.client.assignors.assignor import PartitionAssignor, PartitionCounts
from impl.group.client.buffer import ByteBuffer
from impl.group.client.committing_consumer import CommittingConsumer
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig
from impl.group.client.consumer_protocol import (
    Assignment,
    Subscription,
    deserialize_assignment,
    deserialize_subscription,
    serialize_assignment,
    serialize_subscription,
)
from impl.group.client.errors import WakeupException
from impl.group.client.network_client import ConsumerNetworkClient
from impl.group.client.subscription_state import SubscriptionState
from impl.group.client.timer import Timer
from impl.group.messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_GENERATION_ID,
    UNKNOWN_MEMBER_ID,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
)
from impl.types import TopicPartition

_log = logging.getLogger(__name__)


class ConsumerCoordinator(CommittingConsumer):
    """Eager rebalance protocol: every partition is given up before each join.

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
        super().__init__(config, consumer, network, runtime, subscriptions)
        self._listener = consumer.listener
        self._assignors = {assignor.name: assignor for assignor in consumer.assignors}
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
            if not self.ensure_coordinator_ready(timer):
                return False
            if self.rejoin_needed_or_pending() and not self.ensure_active_group(timer):
                return False
        else:
            self.ensure_coordinator_ready_async()
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
        """Commit, then give every partition up; False while the commit is not through."""
        if not self.commit_before_join(timer):
            return False
        owned = self.subscriptions.assigned_partitions
        is_lost = generation_id == UNKNOWN_GENERATION_ID or member_id == UNKNOWN_MEMBER_ID
        listener = self._listener
        callback = listener.on_partitions_lost if is_lost else listener.on_partitions_revoked
        failure = _call_listener(callback, owned) if owned else None
        self.subscriptions.assign_from_subscribed(())
        self.is_leader = False
        self.subscriptions.reset_group_subscription()
        self.commit_before_join_done()
        timer.update()
        _raise_listener_failure(failure)
        return True

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
        assignor.on_assignment(assigned, generation_id)
        self.restart_auto_commit_interval()
        self.subscriptions.assign_from_subscribed(assigned.partitions)
        listener = self._listener.on_partitions_assigned
        _raise_listener_failure(_call_listener(listener, frozenset(assigned.partitions)))

    def on_leave_prepare(self) -> None:
        """Give every partition up."""
        owned = self.subscriptions.assigned_partitions
        if not self.subscriptions.has_auto_assigned_partitions or not owned:
            return
        listener = self._listener
        is_lost = self.has_generation_reset(self.generation)
        callback = listener.on_partitions_lost if is_lost else listener.on_partitions_revoked
        failure = _call_listener(callback, owned)
        self.subscriptions.assign_from_subscribed(())
        _raise_listener_failure(failure)

    def _assignor(self, name: str) -> PartitionAssignor:
        assignor = self._assignors.get(name)
        if assignor is None:
            raise IllegalStateException(f"the coordinator chose the unknown assignor {name!r}")
        return assignor


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


def _call_listener(
    callback: Callable[[frozenset[TopicPartition]], None], partitions: frozenset[TopicPartition]
) -> Exception | None:
    """What the application's callback raised; wake-ups pass, to be delivered again."""
    try:
        callback(partitions)
    except WakeupException:
        raise
    except Exception as error:  # noqa: BLE001 - the application's code: the poll raises it
        return error
    return None


def _raise_listener_failure(error: Exception | None) -> None:
    if error is not None:
        raise KafkaException("User rebalance callback throws an error") from error
