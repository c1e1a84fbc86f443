"""The controllers under test: real ones, whose threads stand still between actions."""

from __future__ import annotations

from dataclasses import dataclass, field

from conformance.systems.controller.connection import ControllerConnection
from conformance.systems.protocol import ActionRefused
from conformance.systems.threads import StartedThreads
from impl.clock import MockClock
from impl.control_requests import (
    ControlRequest,
    ControlResponse,
    StopReplicaRequest,
    UpdateMetadataBroker,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from impl.controller.channel_manager import ControllerBrokerStateInfo, ControllerChannelManager
from impl.controller.context import ControllerContext
from impl.controller.events import (
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    UpdateMetadataResponseReceived,
)
from impl.controller.kafka_controller import ControllerBrokerRequestBatch, KafkaController
from impl.controller.request_batch import ControllerConfig, ResponseCallback
from impl.controller.state_change_logger import StateChangeLogger
from impl.controller.zookeeper_state import ZooKeeperState
from impl.errors import IllegalStateException
from impl.replica_requests import LeaderAndIsrResponse

_CONTROLLER_BROKER = 1_000
"""The broker that every controller of a model is on; no replica is."""


def type_of(request: ControlRequest) -> str:
    """The spec's name of a request's kind."""
    match request:
        case StopReplicaRequest():
            return "StopReplica"
        case UpdateMetadataRequest():
            return "UpdateMetadata"
        case _:
            return "LeaderAndIsr"


class _Batch(ControllerBrokerRequestBatch):
    """A batch of which one request cannot be sent, where an action says so."""

    unsendable: tuple[str, int] | None = None

    def send_request(
        self, broker_id: int, request: ControlRequest, callback: ResponseCallback, /
    ) -> None:
        """Queue the request, or raise."""
        if self.unsendable == (type_of(request), broker_id):
            raise RuntimeError("this request cannot be sent")
        super().send_request(broker_id, request, callback)


@dataclass(slots=True)
class ElectedController:
    """One controller, from its election to its resignation."""

    kafka: KafkaController
    batch: _Batch
    connections: dict[int, ControllerConnection]
    threads: StartedThreads
    events: list[ControllerEvent] = field(default_factory=list)
    is_gathering: bool = False
    has_failed: bool = False

    @property
    def state(self) -> str:
        """The spec's word."""
        if self.has_failed:
            return "Failed"
        return "Active" if self.kafka.is_active else "Resigned"

    def begin(self) -> None:
        """A state change begins a batch, or goes into the one that there is."""
        if not self.is_gathering:
            self.kafka.begin()
            self.is_gathering = True

    def send(self, unsendable: tuple[str, int] | None = None) -> None:
        """Send the batch; with something that cannot be sent, that has to fail."""
        self.batch.unsendable = unsendable
        try:
            self.kafka.send()
        except IllegalStateException:
            self.has_failed = True
        finally:
            self.batch.unsendable = None
            self.is_gathering = False
        if self.has_failed is not (unsendable is not None):
            raise ActionRefused("the controller hears nothing of what was not sent")

    def resign(self) -> None:
        """Give up after a failure, which the next batch has to notice; or as one replaced."""
        if self.has_failed:
            self._give_up()
        else:
            self.batch.clear()
            self.kafka.resign()
        for connection in self.connections.values():
            connection.end()
        self.connections.clear()
        self.has_failed = self.is_gathering = False

    def _give_up(self) -> None:
        try:
            self.kafka.begin()
        except IllegalStateException as error:
            self.kafka.handle_illegal_state(error)
            return
        raise ActionRefused("a new batch begins although the last was not sent whole")

    def info(self, broker: int) -> ControllerBrokerStateInfo:
        """The queue and the thread for a broker."""
        info = self.kafka.channel_manager.broker_state_info.get(broker)
        if info is None:
            raise ActionRefused(f"the controller does not talk to broker {broker}")
        return info

    def requests(self, broker: int) -> tuple[ControlRequest, ...]:
        """What is under way to a broker and queued for it, oldest first."""
        info = self.kafka.channel_manager.broker_state_info.get(broker)
        if info is None:
            return ()
        first = self.connections[broker].request
        queued = tuple(item.request for item in info.queue.items())
        return queued if first is None else (first, *queued)

    def deliver(self, broker: int) -> None:
        """The answer arrives; its event, one for each answer that matters, is processed at once."""
        answer = self.connections[broker].response
        self.connections[broker].deliver()
        expected = _event_of(answer, broker)
        if expected is not None and self.events != [expected]:
            raise ActionRefused(f"of the answer {answer} the controller hears {self.events}")
        while self.events:
            self.kafka.process(self.events.pop(0))


def _event_of(answer: ControlResponse | None, broker: int) -> ControllerEvent | None:
    """What the controller has to hear of; a StopReplica matters only where a topic is deleted."""
    match answer:
        case LeaderAndIsrResponse():
            return LeaderAndIsrResponseReceived(answer, broker)
        case UpdateMetadataResponse():
            return UpdateMetadataResponseReceived(answer, broker)
        case _:
            return None


def elect(zookeeper: ZooKeeperState) -> ElectedController:
    """A new controller takes over; what it has to tell is in its batch."""
    config = ControllerConfig(_CONTROLLER_BROKER)
    context = ControllerContext()
    connections: dict[int, ControllerConnection] = {}
    events: list[ControllerEvent] = []

    def connect(broker: UpdateMetadataBroker) -> ControllerConnection:
        former = connections.get(broker.id)
        if former is not None:
            former.end()
        connections[broker.id] = ControllerConnection()
        return connections[broker.id]

    logger, threads = StateChangeLogger(_CONTROLLER_BROKER), StartedThreads()
    channels = ControllerChannelManager(
        config, lambda: context.epoch, connect, MockClock(), threads, logger
    )
    batch = _Batch(config, lambda: context, logger, channels, events.append)
    kafka = KafkaController(zookeeper, context, channels, batch)
    controller = ElectedController(kafka, batch, connections, threads, events)
    controller.begin()
    kafka.on_controller_failover()
    return controller
