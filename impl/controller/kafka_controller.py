"""A controller's state changes: what it decides, writes to ZooKeeper and lets brokers know.

Source: KafkaController, PartitionStateMachine, ReplicaStateMachine, TopicDeletionManager, as far
as they send requests to brokers. All methods belong to the controller's one event thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..control_requests import ControlRequest, UpdateMetadataBroker
from ..errors import Errors, IllegalStateException
from ..types import NO_LEADER, TopicPartition
from .channel_manager import ControllerChannelManager
from .context import (
    ControllerContext,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
)
from .events import (
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from .request_batch import (
    AbstractControllerBrokerRequestBatch,
    ControllerConfig,
    ResponseCallback,
)
from .state_change_logger import StateChangeLogger
from .zookeeper_state import ZooKeeperState

_log = logging.getLogger(__name__)
INITIAL_LEADER_EPOCH = 0


class ControllerBrokerRequestBatch(AbstractControllerBrokerRequestBatch):
    """Sends through the channel manager; what is answered becomes an event."""

    def __init__(
        self,
        config: ControllerConfig,
        controller_context: Callable[[], ControllerContext],
        state_change_logger: StateChangeLogger,
        channel_manager: ControllerChannelManager,
        put_event: Callable[[ControllerEvent], None],
    ) -> None:
        super().__init__(config, controller_context, state_change_logger)
        self._channel_manager = channel_manager
        self._put_event = put_event

    def send_request(
        self, broker_id: int, request: ControlRequest, callback: ResponseCallback, /
    ) -> None:
        """Queue the request."""
        self._channel_manager.send_request(broker_id, request, callback)

    def send_event(self, event: ControllerEvent, /) -> None:
        """Queue the event."""
        self._put_event(event)


class KafkaController:
    """One controller, from its election to its resignation.

    `channel_manager` and `request_batch` are made by the caller and belong to this controller.
    Between `begin` and `send` any number of state changes may be made.
    """

    def __init__(
        self,
        zookeeper: ZooKeeperState,
        context: ControllerContext,
        channel_manager: ControllerChannelManager,
        request_batch: AbstractControllerBrokerRequestBatch,
    ) -> None:
        self.context = context
        self.channel_manager = channel_manager
        self.request_batch = request_batch
        self.is_active = False
        self._zookeeper = zookeeper
        self._deleted: dict[TopicPartition, set[int]] = {}

    # ---- one batch -------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a batch. Raises `IllegalStateException` if the last was not sent whole."""
        self.request_batch.new_batch()

    def send(self) -> None:
        """Send the batch. Raises `IllegalStateException`; then `handle_illegal_state` is due."""
        self.request_batch.send_requests_to_brokers(self.context.epoch)

    def handle_illegal_state(self, error: IllegalStateException) -> None:
        """Give up: a successor reads all from ZooKeeper and tells the brokers again."""
        _log.error("Forcing the controller to resign", exc_info=error)
        self.request_batch.clear()
        self.resign()

    def resign(self) -> None:
        """Stop talking to brokers (onControllerResignation)."""
        self.is_active = False
        self.channel_manager.shutdown()

    # ---- elections of controllers ----------------------------------------------------------

    def on_controller_failover(self) -> None:
        """Take over: read ZooKeeper, then tell every broker everything."""
        zookeeper, context = self._zookeeper, self.context
        context.epoch = zookeeper.register_controller_and_increment_controller_epoch()
        self.is_active = True
        for broker_id, epoch in sorted(zookeeper.broker_epochs.items()):
            context.add_live_broker(UpdateMetadataBroker(broker_id), epoch)
            self.channel_manager.add_broker(UpdateMetadataBroker(broker_id))
        context.partition_assignments.update(zookeeper.assignments)
        context.topic_ids.update(zookeeper.topic_ids)
        context.partition_leadership_info.update(zookeeper.partition_states)
        context.topics_to_be_deleted.update(zookeeper.topics_to_be_deleted)
        partitions = tuple(context.partition_leadership_info)
        self.request_batch.add_update_metadata_request_for_brokers(
            context.live_or_shutting_down_broker_ids, partitions
        )
        self._bring_replicas_online(context.live_broker_ids, partitions)

    # ---- brokers ---------------------------------------------------------------------------

    def on_broker_startup(self, broker_id: int) -> None:
        """The broker has registered, for the first time or again: tell it what it hosts."""
        context = self.context
        self.channel_manager.remove_broker(broker_id)
        context.remove_live_broker(broker_id)
        broker = UpdateMetadataBroker(broker_id)
        context.add_live_broker(broker, self._zookeeper.broker_epochs[broker_id])
        self.channel_manager.add_broker(broker)
        partitions = tuple(context.partition_leadership_info)
        self.request_batch.add_update_metadata_request_for_brokers(
            context.live_or_shutting_down_broker_ids, ()
        )
        self.request_batch.add_update_metadata_request_for_brokers([broker_id], partitions)
        self._bring_replicas_online([broker_id], partitions)

    def _bring_replicas_online(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition]
    ) -> None:
        """ReplicaStateMachine: OnlineReplica; offline partitions get a leader, deletions go on."""
        brokers = sorted(broker_ids)
        for topic_partition in partitions:
            if self.context.is_topic_queued_up_for_deletion(topic_partition.topic):
                self._stop_and_delete(brokers, topic_partition)
                continue
            for broker_id in brokers:
                if broker_id in self.context.partition_replica_assignment(topic_partition):
                    self.request_batch.add_leader_and_isr_request_for_brokers(
                        [broker_id],
                        topic_partition,
                        self.context.partition_leadership_info[topic_partition],
                        is_new=False,
                    )
            self._trigger_online_partition_state_change(topic_partition)

    def _trigger_online_partition_state_change(self, topic_partition: TopicPartition) -> None:
        leadership = self.context.partition_leadership_info[topic_partition]
        leader = self._first_live(topic_partition, leadership.isr)
        if leadership.leader == NO_LEADER and leader != NO_LEADER:
            self._change_leadership(topic_partition, leader, leadership.isr)

    def on_broker_failure(self, broker_id: int) -> None:
        """The broker's registration is gone: others lead what it led, and its ISRs shrink."""
        context = self.context
        self.channel_manager.remove_broker(broker_id)
        context.remove_live_broker(broker_id)
        self.request_batch.add_update_metadata_request_for_brokers(
            context.live_or_shutting_down_broker_ids, ()
        )
        for topic_partition, leadership in list(context.partition_leadership_info.items()):
            being_deleted = context.is_topic_queued_up_for_deletion(topic_partition.topic)
            if not being_deleted and broker_id in (leadership.leader, *leadership.isr):
                self._take_out(topic_partition, broker_id)

    def do_controlled_shutdown(self, broker_id: int) -> None:
        """The broker wants to stop: it follows no longer, and leads no longer (KIP-380).

        What it leads alone it goes on leading.
        """
        context = self.context
        context.shutting_down_broker_ids.add(broker_id)
        for topic_partition, leadership in list(context.partition_leadership_info.items()):
            if context.is_topic_queued_up_for_deletion(topic_partition.topic):
                continue
            if leadership.leader != broker_id:
                self.request_batch.add_stop_replica_request_for_brokers(
                    [broker_id], topic_partition, delete_partition=False
                )
            if set(leadership.isr) - {broker_id} and broker_id in leadership.isr:
                self._take_out(topic_partition, broker_id)

    def _take_out(self, topic_partition: TopicPartition, broker_id: int) -> None:
        """Out of the ISR, unless it is the last member; out of office, if it led.

        Who led learns that it follows now; who followed only hears that it is to stop
        (ReplicaStateMachine.removeReplicasFromIsr).
        """
        leadership = self.context.partition_leadership_info[topic_partition]
        isr = tuple(one for one in leadership.isr if one != broker_id) or leadership.isr
        if leadership.leader == broker_id:
            self._change_leadership(topic_partition, self._first_live(topic_partition, isr), isr)
        else:
            self._change_leadership(topic_partition, leadership.leader, isr, untold=broker_id)

    def _first_live(self, topic_partition: TopicPartition, isr: Iterable[int]) -> int:
        """The first replica of the assignment that is in sync and live, -1 if none is."""
        electable = self.context.live_broker_ids.intersection(isr)
        replicas = self.context.partition_replica_assignment(topic_partition)
        return next((one for one in replicas if one in electable), NO_LEADER)

    # ---- partitions ------------------------------------------------------------------------

    def on_new_partition_creation(self, topic: str) -> None:
        """A topic was created: its live replicas are the first ISRs."""
        context, zookeeper = self.context, self._zookeeper
        context.topic_ids[topic] = zookeeper.topic_ids[topic]
        created = [tp for tp in zookeeper.assignments if tp.topic == topic]
        for topic_partition in created:
            context.partition_assignments[topic_partition] = zookeeper.assignments[topic_partition]
            replicas = context.partition_replica_assignment(topic_partition)
            isr = tuple(one for one in replicas if one in context.live_broker_ids)
            leadership = LeaderIsrAndControllerEpoch(
                isr[0], INITIAL_LEADER_EPOCH, isr, 0, context.epoch
            )
            self._write(topic_partition, leadership)
            self.request_batch.add_leader_and_isr_request_for_brokers(
                isr, topic_partition, leadership, is_new=True
            )

    def elect_leader(self, topic_partition: TopicPartition, leader: int) -> None:
        """Let a member of the ISR lead, be it the one that leads already."""
        isr = self.context.partition_leadership_info[topic_partition].isr
        self._change_leadership(topic_partition, leader, isr)

    # ---- reassignment ----------------------------------------------------------------------

    def on_partition_reassignment(
        self, topic_partition: TopicPartition, target: tuple[int, ...]
    ) -> None:
        """Let these brokers have the replicas: the new ones first, then without the old ones.

        `target` in the order of preference. A leader without a replica hands over to the first live
        member of the ISR that keeps its own.
        """
        current = self.context.partition_replica_assignment(topic_partition)
        removed = [one for one in current if one not in target]
        added = [one for one in target if one not in current]
        if added:
            self._begin_reassignment(topic_partition, current, added)
        if target != current:
            self._assign(topic_partition, ReplicaAssignment(target))
        for broker_id in removed:
            self._stop_removed_replica(topic_partition, broker_id)

    def _begin_reassignment(
        self, topic_partition: TopicPartition, current: tuple[int, ...], added: list[int]
    ) -> None:
        """Phase A: present replicas hear of the next leader epoch, the others that they are new.

        Source: updateLeaderEpochAndSendRequest, startNewReplicasForReassignedPartition.
        """
        known = self.context.partition_leadership_info[topic_partition]
        self._change_leadership(topic_partition, known.leader, known.isr)
        live = self.context.live_or_shutting_down_broker_ids
        self._assign(topic_partition, ReplicaAssignment((*current, *added), tuple(added)))
        self.request_batch.add_leader_and_isr_request_for_brokers(
            [one for one in added if one in live],
            topic_partition,
            self.context.partition_leadership_info[topic_partition],
            is_new=True,
        )

    def _stop_removed_replica(self, topic_partition: TopicPartition, broker_id: int) -> None:
        """Phase B: out of office and out of the ISR, then OfflineReplica, ReplicaDeletionStarted.

        The request names the leader epoch, so that one which comes late deletes no replica that
        the broker was given since (KIP-570).
        """
        leadership = self.context.partition_leadership_info[topic_partition]
        isr = tuple(one for one in leadership.isr if one != broker_id)
        if len(isr) < len(leadership.isr):
            leads = leadership.leader == broker_id
            leader = self._first_live(topic_partition, isr) if leads else leadership.leader
            self._change_leadership(topic_partition, leader, isr, untold=broker_id)
        for delete in (False, True):
            self.request_batch.add_stop_replica_request_for_brokers(
                [broker_id], topic_partition, delete
            )

    def _assign(self, topic_partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        self._zookeeper.set_assignment(topic_partition, assignment, self.context.epoch)
        self.context.partition_assignments[topic_partition] = assignment

    def _change_leadership(
        self,
        topic_partition: TopicPartition,
        leader: int,
        isr: tuple[int, ...],
        untold: int | None = None,
    ) -> None:
        """Write the next leader epoch, and tell all replicas but `untold`."""
        known = self.context.partition_leadership_info[topic_partition]
        leadership = replace(
            known,
            leader=leader,
            leader_epoch=known.leader_epoch + 1,
            isr=isr,
            partition_epoch=known.partition_epoch + 1,
            controller_epoch=self.context.epoch,
        )
        self._write(topic_partition, leadership)
        told = self.context.live_or_shutting_down_broker_ids - {untold}
        replicas = self.context.partition_replica_assignment(topic_partition)
        self.request_batch.add_leader_and_isr_request_for_brokers(
            [one for one in replicas if one in told], topic_partition, leadership, is_new=False
        )

    def _write(
        self, topic_partition: TopicPartition, leadership: LeaderIsrAndControllerEpoch
    ) -> None:
        """Write to ZooKeeper, then to the context, from which UpdateMetadata reads (KAFKA-9212)."""
        self._zookeeper.set_partition_state(topic_partition, leadership)
        self.context.partition_leadership_info[topic_partition] = leadership

    # ---- deletion of topics ----------------------------------------------------------------

    def delete_topic(self, topic: str) -> None:
        """Somebody has asked for it: clients hear that it is gone, brokers delete it."""
        context = self.context
        self._zookeeper.topics_to_be_deleted.add(topic)
        context.queue_topic_deletion(topic)
        partitions = context.partitions_for_topic(topic)
        self.request_batch.add_update_metadata_request_for_brokers(
            context.live_or_shutting_down_broker_ids, partitions
        )
        for topic_partition in partitions:
            self._stop_and_delete(sorted(context.live_broker_ids), topic_partition)

    def _stop_and_delete(self, broker_ids: list[int], topic_partition: TopicPartition) -> None:
        """OfflineReplica, then ReplicaDeletionStarted, of those that are not yet deleted."""
        self.context.begin_topic_deletion(topic_partition.topic)
        replicas = self.context.partition_replica_assignment(topic_partition)
        deleted = self.deleted_replicas(topic_partition)
        recipients = [one for one in replicas if one in broker_ids and one not in deleted]
        for delete in (False, True):
            self.request_batch.add_stop_replica_request_for_brokers(
                recipients, topic_partition, delete
            )

    def deleted_replicas(self, topic_partition: TopicPartition) -> frozenset[int]:
        """Brokers that have said that they deleted the replica."""
        return frozenset(self._deleted.get(topic_partition, ()))

    def complete_delete_topic(self, topic: str) -> None:
        """All replicas are deleted: so is the topic."""
        self._zookeeper.delete_topic(topic, self.context.epoch)
        for topic_partition in self.context.partitions_for_topic(topic):
            self._deleted.pop(topic_partition, None)
        self.context.remove_topic(topic)

    def is_deletion_complete(self, topic: str) -> bool:
        """Whether every replica of the topic is known to be deleted."""
        partitions = self.context.partitions_for_topic(topic)
        return self.context.is_topic_deletion_in_progress(topic) and all(
            self.deleted_replicas(tp) >= {*self.context.partition_replica_assignment(tp)}
            for tp in partitions
        )

    # ---- answers ---------------------------------------------------------------------------

    def process(self, event: ControllerEvent) -> None:
        """What a broker has answered."""
        match event:
            case TopicDeletionStopReplicaResponseReceived(broker_id, request_error, errors):
                self._process_topic_deletion(broker_id, request_error, errors.items())
            case LeaderAndIsrResponseReceived(response, broker_id):
                self._process_leader_and_isr(broker_id, response.error, response.partitions.items())
            case UpdateMetadataResponseReceived(response, broker_id):
                if response.error is not Errors.NONE:
                    _log.error("UpdateMetadata to broker %s: %s", broker_id, response.error.name)

    def _process_topic_deletion(
        self, broker_id: int, request_error: Errors, errors: Iterable[tuple[TopicPartition, Errors]]
    ) -> None:
        for topic_partition, error in errors:
            if request_error is Errors.NONE and error is Errors.NONE:
                self._deleted.setdefault(topic_partition, set()).add(broker_id)

    def _process_leader_and_isr(
        self, broker_id: int, request_error: Errors, errors: Iterable[tuple[TopicPartition, Errors]]
    ) -> None:
        """A replica whose directory failed is offline until the broker starts again."""
        if request_error is not Errors.NONE:
            _log.error("LeaderAndIsr to broker %s: %s", broker_id, request_error.name)
            return
        offline = {tp for tp, error in errors if error is Errors.KAFKA_STORAGE_ERROR}
        if offline:
            self.context.replicas_on_offline_dirs.setdefault(broker_id, set()).update(offline)
