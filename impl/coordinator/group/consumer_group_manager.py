"""Heartbeats, departures and time-outs of consumer groups: each makes records, and replays them.

Source: the consumer groups' half of GroupMetadataManager. An operation reads the state and returns
records; only `replay` changes the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ...clock import Clock
from ...errors import Errors, IllegalStateException
from ...types import TopicIdPartition
from ..coordinator_executor import CoordinatorExecutor
from ..coordinator_shard import CoordinatorRecord, CoordinatorResult
from ..coordinator_timer import KeyedTimer
from ..timeline import LATEST_EPOCH, SnapshotRegistry, TimelineHashMap
from .assignors import PartitionAssignor, TopicsImage
from .config import ConsumerGroupConfig
from .consumer_group import ConsumerGroup
from .current_assignment_builder import CurrentAssignmentBuilder
from .member import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    NO_PARTITIONS,
    ConsumerGroupMember,
    MemberState,
    Partitions,
    since,
)
from .messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
)
from .metadata_hash import metadata_hash
from .records import (
    ConsumerGroupKey,
    ConsumerGroupMetadataValue,
    RecordType,
    TargetAssignmentMetadataValue,
    new_consumer_group_epoch_record,
    new_current_assignment_record,
    new_member_subscription_record,
    new_target_assignment_metadata_record,
    new_target_assignment_record,
    tombstone_of_regular_expression,
    tombstones_of_group,
    tombstones_of_member,
)
from .regular_expression_manager import RegularExpressionManager, UpdateRegularExpressionStatus
from .regular_expressions import (
    ResolvedRegularExpression,
    names_read_by,
)
from .target_assignment_builder import TargetAssignmentBuilder, topic_ids

_ADMIN_ASSIGNMENT_EPOCH = -1
"""Of a group whose target's metadata has a tombstone."""


@dataclass(frozen=True, slots=True)
class _Subscription:
    """Whose heartbeat it is, as it was before; `replaced`: the static member whose place it takes.

    `records` put it there.
    """

    member: ConsumerGroupMember
    target: Partitions
    replaced: ConsumerGroupMember | None = None
    records: tuple[CoordinatorRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class _Reconciliation:
    """What a heartbeat leads to, but for the member itself."""

    records: tuple[CoordinatorRecord, ...]
    assignment_epoch: int
    target: Partitions
    has_subscription_changed: bool


class ConsumerGroupManager:
    """All consumer groups of one partition of the offsets topic."""

    def __init__(
        self,
        registry: SnapshotRegistry,
        config: ConsumerGroupConfig,
        topics: TopicsImage,
        assignors: Sequence[PartitionAssignor],
        timer: KeyedTimer,
        clock: Clock,
        executor: CoordinatorExecutor,
    ) -> None:
        self._registry = registry
        self._config = config
        self._topics = topics
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._timer = timer
        self._clock = clock
        self._groups: TimelineHashMap[str, ConsumerGroup] = TimelineHashMap(registry)
        self._regexes = RegularExpressionManager(config, topics, clock, executor, self.group)

    # ---- groups ------------------------------------------------------------------------------

    def group(self, group_id: str, committed_offset: int = LATEST_EPOCH) -> ConsumerGroup | None:
        """The group with this id; None if there is none."""
        return self._groups.get(group_id, committed_offset)

    def groups(self, committed_offset: int = LATEST_EPOCH) -> dict[str, ConsumerGroup]:
        """By group id."""
        return self._groups.entries(committed_offset)

    def group_or_raise(self, group_id: str, committed_offset: int = LATEST_EPOCH) -> ConsumerGroup:
        """The group with this id. Raises GROUP_ID_NOT_FOUND."""
        group = self.group(group_id, committed_offset)
        if group is None:
            raise Errors.GROUP_ID_NOT_FOUND.exception(f"there is no consumer group {group_id}")
        return group

    def _get_or_maybe_create(self, group_id: str, *, create: bool) -> ConsumerGroup:
        """A group that is new is nobody's until its records are replayed."""
        group = self.group(group_id)
        if group is None and create:
            return ConsumerGroup(SnapshotRegistry(), group_id)
        return group or self.group_or_raise(group_id)

    # ---- heartbeats --------------------------------------------------------------------------

    def consumer_group_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> CoordinatorResult:
        """Join, go on, or leave. Raises what the answer says otherwise."""
        if request.member_epoch < JOIN_GROUP_MEMBER_EPOCH:
            return self._consumer_group_leave(request)
        joins = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        group = self._get_or_maybe_create(request.group_id, create=joins)
        self._throw_if_consumer_group_is_full(group, request)
        subscription = self._subscription(group, request)
        updated = _updated(subscription.member, request)
        step = self._update_group(group, subscription, updated)
        reconciled = self._maybe_reconcile(group, updated, step, request.topic_partitions)
        records = [*subscription.records, *step.records]
        if reconciled != updated:
            records.append(new_current_assignment_record(group.group_id, reconciled))
        self._schedule_session_timeout(group.group_id, updated.member_id)
        return CoordinatorResult(tuple(records), self._answer(request, updated, reconciled))

    def _answer(
        self,
        request: ConsumerGroupHeartbeatRequest,
        before: ConsumerGroupMember,
        after: ConsumerGroupMember,
    ) -> ConsumerGroupHeartbeatResponse:
        """The assignment is there if the member may not know it."""
        is_news = (
            request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
            or request.is_full
            or before.assigned_partitions != after.assigned_partitions
        )
        return ConsumerGroupHeartbeatResponse(
            Errors.NONE,
            after.member_id,
            after.member_epoch,
            self._config.heartbeat_interval_ms,
            frozenset(after.assigned_partitions) if is_news else None,
        )

    def _throw_if_consumer_group_is_full(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
    ) -> None:
        """Who is there already stays, and so does a static member's place (KAFKA-20601)."""
        is_there = group.member(request.member_id) is not None or (
            request.instance_id is not None and group.static_member(request.instance_id) is not None
        )
        if not is_there and len(group.members()) >= self._config.max_size:
            raise Errors.GROUP_MAX_SIZE_REACHED.exception(
                f"group {group.group_id} has {self._config.max_size} members already"
            )

    # ---- who it is ---------------------------------------------------------------------------

    def _subscription(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
    ) -> _Subscription:
        joins = request.member_epoch == JOIN_GROUP_MEMBER_EPOCH
        if request.instance_id is None:
            member = group.member(request.member_id)
            if member is None and joins:
                member = ConsumerGroupMember(request.member_id)
            member = member or group.member_or_raise(request.member_id)
            _throw_if_member_epoch_is_invalid(member, request)
        elif joins:
            return self._static_join(group, request.member_id, request.instance_id)
        else:
            member = self._static_member(group, request.member_id, request.instance_id)
            _throw_if_member_epoch_is_invalid(member, request)
        return _Subscription(member, group.target_of(member.member_id))

    def _static_join(self, group: ConsumerGroup, member_id: str, instance_id: str) -> _Subscription:
        existing = group.static_member(instance_id)
        if existing is None:
            member = group.member(member_id) or ConsumerGroupMember(member_id, instance_id)
            return _Subscription(member, group.target_of(member_id))
        if existing.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            raise Errors.UNRELEASED_INSTANCE_ID.exception(
                f"{existing.member_id} has instance id {instance_id} and has not left"
            )
        member = replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0)
        target = group.target_of(existing.member_id)
        # Its timers stay, as the append may fail; afterwards they find nobody (replaceMember).
        return _Subscription(
            member, target, existing, _replace_member(group.group_id, existing, member, target)
        )

    @staticmethod
    def _static_member(
        group: ConsumerGroup, member_id: str, instance_id: str
    ) -> ConsumerGroupMember:
        """The member with this instance id. Raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
        member = group.static_member(instance_id)
        if member is None:
            raise Errors.UNKNOWN_MEMBER_ID.exception(f"nobody has instance id {instance_id}")
        if member.member_id != member_id:
            raise Errors.FENCED_INSTANCE_ID.exception(
                f"{member.member_id} has taken instance id {instance_id}"
            )
        return member

    # ---- the group's epoch and its target ----------------------------------------------------

    def _update_group(
        self,
        group: ConsumerGroup,
        subscription: _Subscription,
        updated: ConsumerGroupMember,
    ) -> _Reconciliation:
        """The records of the member, of a new group epoch and of a new target."""
        before, records = subscription.member, []
        is_new = group.member(before.member_id) is None and subscription.replaced is None
        if is_new or updated != before:
            records.append(new_member_subscription_record(group.group_id, updated))
        members = {**group.members(), updated.member_id: updated}
        target = group.target_assignment()
        if subscription.replaced:
            target[updated.member_id] = subscription.target
        if subscription.replaced and subscription.replaced.member_id != updated.member_id:
            del members[subscription.replaced.member_id]
            target.pop(subscription.replaced.member_id, None)
        status, of_regex = self._regexes.maybe_update_regular_expressions(group, before, updated)
        have_names_changed = before.subscribed_topic_names != updated.subscribed_topic_names
        has_changed = have_names_changed or status is not UpdateRegularExpressionStatus.NO_CHANGE
        is_another = (
            have_names_changed
            or status is UpdateRegularExpressionStatus.REGEX_UPDATED_AND_RESOLVED
            or self._preferred(group.members().values()) != self._preferred(members.values())
        )
        epoch, of_epoch = self._update_epoch(group, members.values(), is_another=is_another)
        records += [*of_regex, *of_epoch]
        if not self._is_target_due(group, epoch):
            return _Reconciliation(
                tuple(records), group.assignment_epoch, subscription.target, has_changed
            )
        computed, parts = TargetAssignmentBuilder(
            group.group_id,
            epoch,
            members,
            target,
            self._preferred(members.values()),
            self._topics,
            group.resolved_regular_expressions(),
        ).build(self._clock.milliseconds())
        return _Reconciliation((*records, *computed), epoch, parts[updated.member_id], has_changed)

    def _update_epoch(
        self, group: ConsumerGroup, members: Collection[ConsumerGroupMember], *, is_another: bool
    ) -> tuple[int, list[CoordinatorRecord]]:
        """The group's epoch, and the record of a new one; its topics are looked at on request."""
        epoch = group.group_epoch
        if not (is_another or group.has_metadata_expired):
            return epoch, []
        group.has_metadata_expired = False
        of_topics = metadata_hash(members, group.resolved_regular_expressions(), self._topics)
        if not is_another and of_topics == group.metadata().metadata_hash:
            return epoch, []
        epoch += 1
        return epoch, [new_consumer_group_epoch_record(group.group_id, epoch, of_topics)]

    def _is_target_due(self, group: ConsumerGroup, group_epoch: int) -> bool:
        """A target of an older epoch is kept until the assignment interval is over."""
        if group.assignment_epoch >= group_epoch:
            return False
        computed_at = group.target_metadata().assignment_timestamp
        due_at = computed_at + self._config.assignment_interval_ms
        return not computed_at or self._clock.milliseconds() >= due_at

    def _preferred(self, members: Collection[ConsumerGroupMember]) -> PartitionAssignor:
        """The assignor that most members ask for, else the first of the settings."""
        names = Counter(
            member.server_assignor_name for member in members if member.server_assignor_name
        )
        return max(self._assignors.values(), key=lambda assignor: names[assignor.name])

    # ---- reconciliation ----------------------------------------------------------------------

    def _maybe_reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        step: _Reconciliation,
        owned: Collection[TopicIdPartition] | None,
    ) -> ConsumerGroupMember:
        """The member after this heartbeat. Its rebalance timer runs while it is to revoke."""
        reconciled = CurrentAssignmentBuilder(
            member,
            step.assignment_epoch,
            step.target,
            group.current_partition_epoch,
            None if owned is None else frozenset(owned),
            topic_ids(names_read_by(member, group.resolved_regular_expressions()), self._topics),
            step.has_subscription_changed,
        ).build()
        if reconciled != member:
            key = rebalance_timeout_key(group.group_id, member.member_id)
            if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
                self._schedule_rebalance_timeout(group.group_id, reconciled)
            else:
                self._timer.cancel(key)
        return reconciled

    # ---- departures --------------------------------------------------------------------------

    def _consumer_group_leave(self, request: ConsumerGroupHeartbeatRequest) -> CoordinatorResult:
        """The epoch of who leaves is not compared."""
        group = self.group_or_raise(request.group_id)
        answer = ConsumerGroupHeartbeatResponse(
            Errors.NONE, request.member_id, request.member_epoch
        )
        if request.instance_id is None:
            return self._fence(group, group.member_or_raise(request.member_id), answer)
        member = self._static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            return _static_leave(group, member, answer)
        return self._fence(group, member, answer)

    def _fence(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        answer: ConsumerGroupHeartbeatResponse | None = None,
    ) -> CoordinatorResult:
        """consumerGroupFenceMembers: the member is gone, and the group is another one."""
        left = [other for other in group.members().values() if other is not member]
        epoch = group.group_epoch + 1
        of_topics = metadata_hash(left, group.resolved_regular_expressions(), self._topics)
        regex = member.subscribed_topic_regex
        records = [*tombstones_of_member(group.group_id, member.member_id)]
        if regex and group.num_subscribed_members(regex) == 1:
            records.append(tombstone_of_regular_expression(group.group_id, regex))
        records.append(new_consumer_group_epoch_record(group.group_id, epoch, of_topics))
        if not left:
            # An empty group waits for no assignment (KAFKA-20442), the next one for no interval.
            records.append(new_target_assignment_metadata_record(group.group_id, epoch, 0))
        self._cancel_timers(group.group_id, member.member_id)
        return CoordinatorResult(tuple(records), answer)

    def delete_group(self, group_id: str) -> tuple[CoordinatorRecord, ...]:
        """Raises GROUP_ID_NOT_FOUND, or NON_EMPTY_GROUP while it has members."""
        if self.group_or_raise(group_id).members():
            raise Errors.NON_EMPTY_GROUP.exception(f"group {group_id} has members")
        return tombstones_of_group(group_id)

    # ---- timers ------------------------------------------------------------------------------

    def on_loaded(self) -> None:
        """Whoever is in a group has to be heard of from now on."""
        for group in self.groups().values():
            for member in group.members().values():
                self._schedule_session_timeout(group.group_id, member.member_id)
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._schedule_rebalance_timeout(group.group_id, member)

    def on_unloaded(self) -> None:
        """Nobody is watched any more."""
        self._timer.cancel_all()
        self._regexes.on_unloaded()

    def _schedule_session_timeout(self, group_id: str, member_id: str) -> None:
        self._timer.schedule(
            session_timeout_key(group_id, member_id),
            self._config.session_timeout_ms,
            lambda: self._expire(group_id, member_id, None),
        )

    def _schedule_rebalance_timeout(self, group_id: str, member: ConsumerGroupMember) -> None:
        member_id, epoch = member.member_id, member.member_epoch
        self._timer.schedule(
            rebalance_timeout_key(group_id, member_id),
            member.rebalance_timeout_ms,
            lambda: self._expire(group_id, member_id, epoch),
        )

    def _expire(self, group_id: str, member_id: str, epoch: int | None) -> CoordinatorResult:
        """Fence the member, if it is still there and still in the epoch."""
        group = self.group(group_id)
        member = None if group is None else group.member(member_id)
        if group is None or member is None or epoch not in (None, member.member_epoch):
            return CoordinatorResult()
        return self._fence(group, member)

    def _cancel_timers(self, group_id: str, member_id: str) -> None:
        self._timer.cancel(session_timeout_key(group_id, member_id))
        self._timer.cancel(rebalance_timeout_key(group_id, member_id))

    # ---- topics ------------------------------------------------------------------------------

    def on_metadata_update(self, topic_names: Collection[str], *, has_new_topics: bool) -> None:
        """Topics with these names have changed: whoever reads them looks again, at a heartbeat.

        Those that are created may match regular expressions: these are resolved again.
        """
        if has_new_topics:
            self._regexes.on_new_topics()
        for group in self.groups().values():
            if not group.subscribed_topic_names().isdisjoint(topic_names):
                group.has_metadata_expired = True

    # ---- descriptions ------------------------------------------------------------------------

    def describe(self, group_id: str, committed_offset: int) -> DescribedConsumerGroup:
        """The group as it is committed."""
        group = self.group(group_id, committed_offset)
        if group is None:
            return DescribedConsumerGroup(Errors.GROUP_ID_NOT_FOUND, group_id)
        members = group.members(committed_offset)
        target = group.target_assignment(committed_offset)
        return DescribedConsumerGroup(
            Errors.NONE,
            group_id,
            group.state(committed_offset).value,
            group.metadata(committed_offset).epoch,
            group.target_metadata(committed_offset).assignment_epoch,
            self._preferred(members.values()).name,
            tuple(
                _described(member, target.get(member_id, NO_PARTITIONS), self._topics)
                for member_id, member in members.items()
            ),
        )

    # ---- replay ------------------------------------------------------------------------------

    def replay(self, key: ConsumerGroupKey, value: object) -> None:
        """Change the state as a record says; `value` is None for a tombstone."""
        if value is None:
            self._replay_tombstone(key)
            return
        group = self._persisted(key.group_id)
        match value:
            case ConsumerGroupMetadataValue():
                group.set_metadata(value)
            case TargetAssignmentMetadataValue():
                group.set_target_metadata(value)
            case ResolvedRegularExpression():
                group.update_resolved_regular_expression(key.member_id, value)
            case frozenset():
                group.update_target_assignment(key.member_id, value)
            case ConsumerGroupMember():
                former = group.member(key.member_id) or ConsumerGroupMember(key.member_id)
                group.update_member(_merged(key.type, former, value))

    def _persisted(self, group_id: str) -> ConsumerGroup:
        group = self.group(group_id)
        if group is None:
            group = ConsumerGroup(self._registry, group_id)
            self._groups.put(group_id, group)
        return group

    def _replay_tombstone(self, key: ConsumerGroupKey) -> None:
        """Of what is not there it says nothing: a log that was compacted may begin with it."""
        group = self.group(key.group_id)
        if group is None:
            return
        if key.type is RecordType.CONSUMER_GROUP_METADATA:
            _throw_unless_dissolved(group)
            self._groups.remove(key.group_id)
        elif key.type is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
            if group.target_assignment():
                raise IllegalStateException(f"members of {key.group_id} still have targets")
            group.set_target_metadata(TargetAssignmentMetadataValue(_ADMIN_ASSIGNMENT_EPOCH))
        elif key.type is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            group.remove_target_assignment(key.member_id)
        elif key.type is RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
            group.remove_resolved_regular_expression(key.member_id)
        elif key.type is RecordType.CONSUMER_GROUP_PARTITION_METADATA:
            return  # the hash of the topics takes its place (KAFKA-17747)
        elif (member := group.member(key.member_id)) is not None:
            _replay_departure(group, member, key.type)


def session_timeout_key(group_id: str, member_id: str) -> str:
    """The key of a member's session timer (consumerGroupSessionTimeoutKey)."""
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_timeout_key(group_id: str, member_id: str) -> str:
    """The key of a member's rebalance timer (consumerGroupRebalanceTimeoutKey)."""
    return f"rebalance-timeout-{group_id}-{member_id}"


def _throw_if_member_epoch_is_invalid(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest
) -> None:
    """Raises FENCED_MEMBER_EPOCH. Who is in the group may always join again (KAFKA-19233); the
    previous epoch is taken if the answer with the newer one may have been lost."""
    epoch, known = request.member_epoch, member.member_epoch
    if epoch in (JOIN_GROUP_MEMBER_EPOCH, known):
        return
    owned = request.topic_partitions
    missed_an_answer = (
        epoch < known
        and epoch == member.previous_member_epoch
        and owned is not None
        and member.assigned_partitions.keys() >= frozenset(owned)
    )
    if not missed_an_answer:
        raise Errors.FENCED_MEMBER_EPOCH.exception(
            f"{member.member_id} is in epoch {known}, not in {epoch}: it has to give up its "
            "partitions and join again"
        )


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupMember:
    """The member with what the request says; a field that it does not have stays."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        subscribed_topic_names=(
            member.subscribed_topic_names if names is None else frozenset(names)
        ),
        server_assignor_name=request.server_assignor or member.server_assignor_name,
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
    )


def _replace_member(
    group_id: str, former: ConsumerGroupMember, member: ConsumerGroupMember, target: Partitions
) -> tuple[CoordinatorRecord, ...]:
    """What the static member had is the new one's."""
    return (
        *tombstones_of_member(group_id, former.member_id),
        new_member_subscription_record(group_id, member),
        new_target_assignment_record(group_id, member.member_id, target),
        new_current_assignment_record(group_id, member),
    )


def _static_leave(
    group: ConsumerGroup, member: ConsumerGroupMember, answer: ConsumerGroupHeartbeatResponse
) -> CoordinatorResult:
    """consumerGroupStaticMemberGroupLeave: its place and its partitions are kept for it."""
    left = replace(
        member,
        member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
        assigned_partitions=since(0, member.assigned_partitions),
        partitions_pending_revocation={},
    )
    return CoordinatorResult((new_current_assignment_record(group.group_id, left),), answer)


def _described(
    member: ConsumerGroupMember, target: Partitions, topics: TopicsImage
) -> DescribedConsumerGroupMember:
    """What is still to be revoked is shown as assigned (KAFKA-20431), but of topics that exist."""

    def existing(partitions: Partitions) -> Partitions:
        return frozenset(one for one in partitions if topics.num_partitions(one.topic_id))

    return DescribedConsumerGroupMember(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.member_epoch,
        member.client_id,
        member.client_host,
        tuple(sorted(member.subscribed_topic_names)),
        member.subscribed_topic_regex,
        existing(member.held_partitions),
        existing(target),
    )


_ASSIGNMENT = (
    "member_epoch",
    "previous_member_epoch",
    "state",
    "assigned_partitions",
    "partitions_pending_revocation",
)
"""The fields of a member that ConsumerGroupCurrentMemberAssignment has."""


def _merged(
    type: RecordType, member: ConsumerGroupMember, value: ConsumerGroupMember
) -> ConsumerGroupMember:
    """The member with what a record has of it: its assignment, or all but that."""
    if type is RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        member, value = value, member
    return replace(value, **{name: getattr(member, name) for name in _ASSIGNMENT})


def _replay_departure(group: ConsumerGroup, member: ConsumerGroupMember, type: RecordType) -> None:
    """A member's tombstones come in an order; others do not load."""
    if type is RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
        group.update_member(
            replace(
                member,
                member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
                previous_member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
                assigned_partitions={},
                partitions_pending_revocation={},
            )
        )
        return
    if member.member_epoch != LEAVE_GROUP_MEMBER_EPOCH:
        raise IllegalStateException(f"{member.member_id} still has an assignment")
    if member.member_id in group.target_assignment():
        raise IllegalStateException(f"{member.member_id} still has a target")
    group.remove_member(member.member_id)


def _throw_unless_dissolved(group: ConsumerGroup) -> None:
    rest: Mapping[str, object] = {**group.members(), **group.target_assignment()}
    if rest or group.assignment_epoch != _ADMIN_ASSIGNMENT_EPOCH:
        raise IllegalStateException(
            f"group {group.group_id} goes while it has members or a target: {sorted(rest)}"
        )
