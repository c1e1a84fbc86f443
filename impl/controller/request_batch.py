"""What brokers must be told of state changes, gathered and then sent: one request of each kind.

Source: AbstractControllerBrokerRequestBatch, ControllerBrokerRequestBatch. Not thread safe: the
controller's event thread is the only one that uses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..control_requests import (
    LEADER_DURING_DELETE,
    ControlRequest,
    ControlResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ..errors import IllegalStateException
from ..partition_state import LeaderAndIsrPartitionState
from ..replica_requests import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaPartitionState,
)
from ..types import BrokerEndPoint, TopicPartition
from .context import ControllerContext, LeaderIsrAndControllerEpoch
from .events import (
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from .metadata_version import MetadataVersion
from .state_change_logger import StateChangeLogger

ResponseCallback: TypeAlias = Callable[[ControlResponse], None]

_MIXED_STOP_REPLICA_VERSION = 3
"""From here on a StopReplica request mixes delete flags and carries leader epochs (KIP-570)."""
_TOPIC_ID_VERSION = 5
"""LeaderAndIsr carries topic ids (KIP-516)."""
_METADATA_TOPIC_ID_VERSION = 7


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """A controller's settings; times in ms."""

    broker_id: int
    inter_broker_protocol_version: MetadataVersion = MetadataVersion.IBP_3_8_IV0
    controller_socket_timeout_ms: int = 30_000
    retry_back_off_ms: int = 100


class AbstractControllerBrokerRequestBatch(ABC):
    """The registries of one batch; who sends them is a subclass's business."""

    def __init__(
        self,
        config: ControllerConfig,
        controller_context: Callable[[], ControllerContext],
        state_change_logger: StateChangeLogger,
    ) -> None:
        self._config = config
        self._controller_context = controller_context
        self._log = state_change_logger
        self.leader_and_isr_request_map: dict[
            int, dict[TopicPartition, LeaderAndIsrPartitionState]
        ] = {}
        self.stop_replica_request_map: dict[
            int, dict[TopicPartition, StopReplicaPartitionState]
        ] = {}
        self.update_metadata_request_broker_set: set[int] = set()
        self.update_metadata_request_partition_info_map: dict[
            TopicPartition, UpdateMetadataPartitionState
        ] = {}

    @abstractmethod
    def send_request(
        self, broker_id: int, request: ControlRequest, callback: ResponseCallback, /
    ) -> None:
        """Hand a request over for sending."""

    @abstractmethod
    def send_event(self, event: ControllerEvent, /) -> None:
        """Put an event into the controller's queue."""

    # ---- gathering -------------------------------------------------------------------------

    def new_batch(self) -> None:
        """Begin. Raises `IllegalStateException` if the last batch was not sent whole."""
        unsent = "Controller to broker state change requests batch is not empty while creating"
        if self.leader_and_isr_request_map:
            raise IllegalStateException(
                f"{unsent} a new one. Some LeaderAndIsr state changes"
                f" {self.leader_and_isr_request_map} might be lost"
            )
        if self.stop_replica_request_map:
            raise IllegalStateException(
                f"{unsent} a new one. Some StopReplica state changes"
                f" {self.stop_replica_request_map} might be lost"
            )
        if self.update_metadata_request_broker_set:
            raise IllegalStateException(
                f"{unsent} a new one. Some UpdateMetadata state changes to brokers"
                f" {self.update_metadata_request_broker_set} with partition info"
                f" {self.update_metadata_request_partition_info_map} might be lost"
            )

    def clear(self) -> None:
        """Forget all that was gathered."""
        self.leader_and_isr_request_map.clear()
        self.stop_replica_request_map.clear()
        self.update_metadata_request_broker_set.clear()
        self.update_metadata_request_partition_info_map.clear()

    def add_leader_and_isr_request_for_brokers(
        self,
        broker_ids: Iterable[int],
        topic_partition: TopicPartition,
        leadership: LeaderIsrAndControllerEpoch,
        is_new: bool,
    ) -> None:
        """Tell these brokers who leads, and all brokers' clients with them.

        A replica that is new stays so, whatever else is told of it in this batch.
        """
        context = self._controller_context()
        assignment = context.partition_assignments[topic_partition]
        state = LeaderAndIsrPartitionState(
            topic_partition,
            leadership.leader,
            leadership.leader_epoch,
            leadership.isr,
            leadership.partition_epoch,
            assignment.replicas,
            assignment.adding_replicas,
            assignment.removing_replicas,
            self._topic_id(topic_partition),
            leadership.controller_epoch,
            is_new,
        )
        for broker_id in _known(broker_ids):
            states = self.leader_and_isr_request_map.setdefault(broker_id, {})
            known = states.get(topic_partition)
            was_new = known is not None and known.is_new
            states[topic_partition] = replace(state, is_new=is_new or was_new)
        self.add_update_metadata_request_for_brokers(
            context.live_or_shutting_down_broker_ids, [topic_partition]
        )

    def add_stop_replica_request_for_brokers(
        self, broker_ids: Iterable[int], topic_partition: TopicPartition, delete_partition: bool
    ) -> None:
        """Stop these replicas. One that shall be deleted is, whatever else is told of it."""
        for broker_id in _known(broker_ids):
            states = self.stop_replica_request_map.setdefault(broker_id, {})
            known = states.get(topic_partition)
            was_deleted = known is not None and known.delete_partition
            states[topic_partition] = StopReplicaPartitionState(
                self._epoch_to_stop(topic_partition), delete_partition or was_deleted
            )

    def add_update_metadata_request_for_brokers(
        self, broker_ids: Iterable[int], topic_partitions: Iterable[TopicPartition]
    ) -> None:
        """Tell these brokers of the partitions; without any, of the live brokers (KAFKA-1867)."""
        self.update_metadata_request_broker_set.update(_known(broker_ids))
        for topic_partition in topic_partitions:
            state = self._metadata_of(topic_partition)
            if state is not None:
                self.update_metadata_request_partition_info_map[topic_partition] = state

    def _epoch_to_stop(self, topic_partition: TopicPartition) -> int:
        """The leader epoch by which a broker tells a StopReplica that is too late (KIP-570)."""
        context = self._controller_context()
        if context.is_topic_queued_up_for_deletion(topic_partition.topic):
            return EPOCH_DURING_DELETE
        leadership = context.partition_leadership_info.get(topic_partition)
        return NO_EPOCH if leadership is None else leadership.leader_epoch

    def _metadata_of(self, topic_partition: TopicPartition) -> UpdateMetadataPartitionState | None:
        context = self._controller_context()
        leadership = context.partition_leadership_info.get(topic_partition)
        if leadership is None:
            self._log.info(
                context.epoch,
                "Leader not yet assigned for partition %s. Skip sending UpdateMetadataRequest.",
                topic_partition,
            )
            return None
        being_deleted = context.is_topic_queued_up_for_deletion(topic_partition.topic)
        replicas = context.partition_replica_assignment(topic_partition)
        return UpdateMetadataPartitionState(
            topic_partition,
            leadership.controller_epoch,
            LEADER_DURING_DELETE if being_deleted else leadership.leader,
            leadership.leader_epoch,
            leadership.isr,
            leadership.partition_epoch,
            replicas,
            tuple(one for one in replicas if not context.is_replica_online(one, topic_partition)),
        )

    def _topic_id(self, topic_partition: TopicPartition) -> str | None:
        if self._leader_and_isr_version < _TOPIC_ID_VERSION:
            return None
        return self._controller_context().topic_ids.get(topic_partition.topic)

    # ---- sending ---------------------------------------------------------------------------

    def send_requests_to_brokers(self, controller_epoch: int) -> None:
        """Send what was gathered: LeaderAndIsr, UpdateMetadata, StopReplica.

        Raises `IllegalStateException` if that fails in between; what was not sent stays here, and
        the next `new_batch` says so.
        """
        try:
            self._send_leader_and_isr_requests(controller_epoch)
            self._send_update_metadata_requests(controller_epoch)
            self._send_stop_replica_requests(controller_epoch)
        except Exception as error:
            self._log_unsent(controller_epoch)
            raise IllegalStateException("the batch of requests was not sent whole") from error

    def _log_unsent(self, controller_epoch: int) -> None:
        unsent = {
            "LeaderAndIsr": self.leader_and_isr_request_map,
            "UpdateMetadata": self.update_metadata_request_partition_info_map,
            "StopReplica": self.stop_replica_request_map,
        }
        for name, registry in unsent.items():
            if registry:
                self._log.error(
                    controller_epoch,
                    "Haven't been able to send %s requests, current state of the map is %s",
                    name,
                    registry,
                )

    def _reachable(self, broker_ids: Iterable[int]) -> list[int]:
        """Those that are live or shutting down; requests to others are dropped."""
        live = self._controller_context().live_or_shutting_down_broker_ids
        return sorted(live.intersection(broker_ids))

    def _broker_epoch(self, broker_id: int) -> int:
        return self._controller_context().live_broker_epochs[broker_id]

    @property
    def _leader_and_isr_version(self) -> int:
        return self._config.inter_broker_protocol_version.leader_and_isr_request_version()

    def _send_leader_and_isr_requests(self, controller_epoch: int) -> None:
        for broker_id in self._reachable(self.leader_and_isr_request_map):
            states = tuple(self.leader_and_isr_request_map[broker_id].values())
            self._log_leader_and_isr(controller_epoch, broker_id, states)
            request = LeaderAndIsrRequest(
                self._config.broker_id,
                controller_epoch,
                states,
                self._broker_epoch(broker_id),
                self._leader_and_isr_version,
                self._live_leaders(states),
            )
            self.send_request(broker_id, request, self._on_leader_and_isr(broker_id))
        self.leader_and_isr_request_map.clear()

    def _live_leaders(
        self, states: tuple[LeaderAndIsrPartitionState, ...]
    ) -> tuple[BrokerEndPoint, ...]:
        live = self._controller_context().live_or_shutting_down_brokers
        leaders = sorted({state.leader for state in states} & live.keys())
        return tuple(BrokerEndPoint(one, live[one].host, live[one].port) for one in leaders)

    def _log_leader_and_isr(
        self, epoch: int, broker_id: int, states: tuple[LeaderAndIsrPartitionState, ...]
    ) -> None:
        leads = sum(state.leader == broker_id for state in states)
        self._log.info(
            epoch,
            "Sending LeaderAndIsr request to broker %s with %s become-leader and %s"
            " become-follower partitions",
            broker_id,
            leads,
            len(states) - leads,
        )
        for state in states:
            self._log.trace(
                epoch,
                "Sending %s LeaderAndIsr request %s to broker %s for partition %s",
                "become-leader" if state.leader == broker_id else "become-follower",
                state,
                broker_id,
                state.topic_partition,
            )

    def _on_leader_and_isr(self, broker_id: int) -> ResponseCallback:
        def received(response: ControlResponse) -> None:
            if isinstance(response, LeaderAndIsrResponse):
                self.send_event(LeaderAndIsrResponseReceived(response, broker_id))

        return received

    def _send_update_metadata_requests(self, controller_epoch: int) -> None:
        context = self._controller_context()
        version = self._config.inter_broker_protocol_version.update_metadata_request_version()
        states = tuple(self.update_metadata_request_partition_info_map.values())
        topics = frozenset(state.topic_partition.topic for state in states)
        topic_ids = context.topic_ids_of(topics) if version >= _METADATA_TOPIC_ID_VERSION else {}
        brokers = tuple(
            broker for _, broker in sorted(context.live_or_shutting_down_brokers.items())
        )
        reachable = self._reachable(self.update_metadata_request_broker_set)
        self._log_update_metadata(controller_epoch, reachable, states)
        for broker_id in reachable:
            request = UpdateMetadataRequest(
                self._config.broker_id,
                controller_epoch,
                states,
                brokers,
                topic_ids,
                self._broker_epoch(broker_id),
                version,
            )
            self.send_request(broker_id, request, self._on_update_metadata(broker_id))
        self.update_metadata_request_broker_set.clear()
        self.update_metadata_request_partition_info_map.clear()

    def _log_update_metadata(
        self, epoch: int, brokers: list[int], states: tuple[UpdateMetadataPartitionState, ...]
    ) -> None:
        self._log.info(
            epoch,
            "Sending UpdateMetadata request to brokers %s for %s partitions",
            brokers,
            len(states),
        )
        for state in states:
            self._log.trace(
                epoch,
                "Sending UpdateMetadata request %s to brokers %s for partition %s",
                state,
                brokers,
                state.topic_partition,
            )

    def _on_update_metadata(self, broker_id: int) -> ResponseCallback:
        def received(response: ControlResponse) -> None:
            if isinstance(response, UpdateMetadataResponse):
                self.send_event(UpdateMetadataResponseReceived(response, broker_id))

        return received

    def _send_stop_replica_requests(self, controller_epoch: int) -> None:
        version = self._config.inter_broker_protocol_version.stop_replica_request_version()
        for broker_id in self._reachable(self.stop_replica_request_map):
            states = self.stop_replica_request_map[broker_id]
            if version >= _MIXED_STOP_REPLICA_VERSION:
                self._log.info(
                    controller_epoch,
                    "Sending StopReplica request for %s replicas to broker %s",
                    len(states),
                    broker_id,
                )
                self._send_stop_replica(broker_id, controller_epoch, version, states)
            else:
                self._send_stop_replica_by_flag(broker_id, controller_epoch, version, states)
        self.stop_replica_request_map.clear()

    def _send_stop_replica_by_flag(
        self,
        broker_id: int,
        controller_epoch: int,
        version: int,
        states: Mapping[TopicPartition, StopReplicaPartitionState],
    ) -> None:
        """As before KIP-570: those to delete in a request of their own, which goes first."""
        for delete in (True, False):
            of_flag = {
                tp: replace(state, leader_epoch=NO_EPOCH)
                for tp, state in states.items()
                if state.delete_partition is delete
            }
            if of_flag:
                self._log.info(
                    controller_epoch,
                    "Sending StopReplica request (delete = %s) for %s replicas to broker %s",
                    str(delete).lower(),
                    len(of_flag),
                    broker_id,
                )
                self._send_stop_replica(broker_id, controller_epoch, version, of_flag)

    def _send_stop_replica(
        self,
        broker_id: int,
        controller_epoch: int,
        version: int,
        states: Mapping[TopicPartition, StopReplicaPartitionState],
    ) -> None:
        for topic_partition, state in states.items():
            self._log.trace(
                controller_epoch,
                "Sending StopReplica request %s to broker %s for partition %s",
                state,
                broker_id,
                topic_partition,
            )
        request = StopReplicaRequest(
            self._config.broker_id,
            controller_epoch,
            dict(states),
            self._broker_epoch(broker_id),
            version,
        )
        self.send_request(broker_id, request, self._on_stop_replica(broker_id, request))

    def _on_stop_replica(self, broker_id: int, request: StopReplicaRequest) -> ResponseCallback:
        """Only the deletion of topics waits for an answer."""

        def is_topic_deletion(topic_partition: TopicPartition) -> bool:
            context = self._controller_context()
            state = request.partition_states.get(topic_partition)
            started = context.is_topic_deletion_in_progress(topic_partition.topic)
            return started and state is not None and state.delete_partition

        def received(response: ControlResponse) -> None:
            if not isinstance(response, StopReplicaResponse):
                return
            errors = {
                tp: error for tp, error in response.partitions.items() if is_topic_deletion(tp)
            }
            if errors:
                self.send_event(
                    TopicDeletionStopReplicaResponseReceived(broker_id, response.error, errors)
                )

        return received


def _known(broker_ids: Iterable[int]) -> list[int]:
    """Without the ids of brokers that there are not, such as that of no leader (-1)."""
    return [one for one in broker_ids if one >= 0]
