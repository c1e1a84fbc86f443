"""A controller of brokers 1, 2 and 3 with topics foo and bar, as ControllerChannelManagerTest."""

from __future__ import annotations

from impl.control_requests import (
    ControlRequest,
    ControlResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataBroker,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from impl.controller.context import (
    ControllerContext,
    LeaderIsrAndControllerEpoch,
    ReplicaAssignment,
)
from impl.controller.events import ControllerEvent
from impl.controller.metadata_version import MetadataVersion
from impl.controller.request_batch import (
    AbstractControllerBrokerRequestBatch,
    ControllerConfig,
    ResponseCallback,
)
from impl.controller.state_change_logger import StateChangeLogger
from impl.errors import Errors
from impl.replica_requests import LeaderAndIsrRequest, LeaderAndIsrResponse
from impl.types import TopicPartition

CONTROLLER = 1
CONTROLLER_EPOCH = 1
FOO_0, FOO_1 = TopicPartition("foo", 0), TopicPartition("foo", 1)
BAR_0, BAR_1 = TopicPartition("bar", 0), TopicPartition("bar", 1)
LATEST = MetadataVersion.IBP_3_8_IV0


def leadership(
    leader: int, isr: tuple[int, ...], leader_epoch: int = 0
) -> LeaderIsrAndControllerEpoch:
    """A decision of this controller."""
    return LeaderIsrAndControllerEpoch(leader, leader_epoch, isr, 0, CONTROLLER_EPOCH)


def new_context() -> ControllerContext:
    """Three live brokers, each with its epoch, and two topics of two partitions."""
    context = ControllerContext(epoch=CONTROLLER_EPOCH)
    for broker in (1, 2, 3):
        context.add_live_broker(UpdateMetadataBroker(broker), 100 + broker)
    for partition in (FOO_0, FOO_1, BAR_0, BAR_1):
        context.partition_assignments[partition] = ReplicaAssignment((1, 2, 3))
    context.topic_ids = {"foo": "id-foo", "bar": "id-bar"}
    return context


class Batch(AbstractControllerBrokerRequestBatch):
    """Keeps what is sent, and answers when the test says so."""

    def __init__(self, context: ControllerContext, version: MetadataVersion = LATEST) -> None:
        config = ControllerConfig(CONTROLLER, version)
        super().__init__(config, lambda: context, StateChangeLogger(CONTROLLER))
        self.sent: list[tuple[int, ControlRequest, ResponseCallback]] = []
        self.events: list[ControllerEvent] = []
        self.refuses: type[ControlRequest] | None = None

    def send_request(
        self, broker_id: int, request: ControlRequest, callback: ResponseCallback, /
    ) -> None:
        if self.refuses is not None and isinstance(request, self.refuses):
            raise RuntimeError("cannot be sent")
        self.sent.append((broker_id, request, callback))

    def send_event(self, event: ControllerEvent, /) -> None:
        self.events.append(event)

    def leader_and_isr(self, broker: int) -> list[LeaderAndIsrRequest]:
        return [
            one for to, one, _ in self.sent if to == broker and isinstance(one, LeaderAndIsrRequest)
        ]

    def update_metadata(self, broker: int) -> list[UpdateMetadataRequest]:
        return [
            one
            for to, one, _ in self.sent
            if to == broker and isinstance(one, UpdateMetadataRequest)
        ]

    def stop_replica(self, broker: int) -> list[StopReplicaRequest]:
        return [
            one for to, one, _ in self.sent if to == broker and isinstance(one, StopReplicaRequest)
        ]

    def answer(self, error: Errors = Errors.NONE) -> None:
        """Answer everything that was sent, in its order."""
        for _, request, callback in self.sent:
            callback(answer_to(request, error))


def answer_to(request: ControlRequest, error: Errors) -> ControlResponse:
    """The broker's answer; every partition gets the request's error."""
    match request:
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error)
        case StopReplicaRequest():
            return StopReplicaResponse(error, dict.fromkeys(request.partition_states, error))
        case _:
            states = request.partition_states
            return LeaderAndIsrResponse(error, {one.topic_partition: error for one in states})
