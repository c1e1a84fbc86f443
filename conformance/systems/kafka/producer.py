"""The system under test: Kafka's TransactionManager, driven by TransactionManager.tla's actions.

The producer's states, its requests and what it makes of their answers are Kafka's. The
application, the sender's loop, the coordinator and the leader are played (java/producer).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.bridged import BridgeSteps
from conformance.systems.protocol import Observation, step_of
from conformance.tla import Action, Fn, Value

_VIEW = "producer_view"
_STEPS: BridgeSteps = MappingProxyType(
    {
        "InitTransactions": ("producer_init", ()),
        "BeginTransaction": ("producer_begin", ()),
        "Send": ("producer_send", ()),
        "FailSend": ("producer_fail_send", ("error",)),
        "SendOffsets": ("producer_send_offsets", ()),
        "CommitTransaction": ("producer_commit", ()),
        "AbortTransaction": ("producer_abort", ()),
        "StopWaiting": ("producer_stop_waiting", ()),
        "NextRequest": ("producer_next_request", ()),
        "Answer": ("producer_answer", ("error",)),
        "SendBatch": ("producer_send_batch", ()),
        "CompleteBatch": ("producer_complete_batch", ()),
        "FailBatch": ("producer_fail_batch", ("error",)),
        # The producer learns of them by the answers that follow.
        "Fence": (_VIEW, ()),
        "ExpireId": (_VIEW, ()),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""


class _TransactionManagerView(msgspec.Struct, frozen=True, array_like=True):
    """A producer as the bridge writes it: TransactionalProducer.java."""

    state: str
    last_error: str
    epoch: int
    started: bool
    bump: bool
    added: str
    requests: tuple[str, ...]
    flight: str
    batch: str
    call: tuple[str, bool, str]
    thrown: str


_as_view = msgspec.json.Decoder(_TransactionManagerView).decode


def _observed(text: bytes) -> Observation:
    view = _as_view(text)
    return Observation(
        {
            "state": view.state,
            "lastError": view.last_error,
            "epoch": view.epoch,
            "started": view.started,
            "bump": view.bump,
            "added": view.added,
            "requests": frozenset(view.requests),
            "flight": view.flight,
            "batch": view.batch,
            "call": Fn(dict(zip(("does", "waits", "result"), view.call, strict=True))),
            "thrown": view.thrown,
        }
    )


class KafkaProducerSystem:
    """A transactional producer in a JVM, without its threads."""

    variables = (
        *("state", "lastError", "epoch", "started", "bump", "added"),
        *("requests", "flight", "batch", "call", "thrown"),
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        self._channel = channel
        self._settings = {"version2": constants["Version2"]}

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A producer that has called nothing."""
        self._run("producer_reset", self._settings)

    def apply(self, action: Action) -> None:
        """Let the application, the sender or who answers take one step."""
        command, members = step_of(_STEPS, action)
        self._run(command, dict(zip(members, action.args, strict=True)))

    def observe(self) -> Observation:
        """The observed variables as the producer has them now."""
        return self._observation

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)

    def _run(self, command: str, members: Mapping[str, object]) -> None:
        steps: list[Mapping[str, object]] = [{"command": command, **members}, {"command": _VIEW}]
        self._observation = _observed(bytes(self._channel.call(steps)[-1]))
