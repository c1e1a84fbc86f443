"""Kafka's own CoordinatorTimer and CoordinatorExecutor in its runtime: CoordinatorTasks.tla.

The clock of the timers and the pool of the executor are in the harness's hand (java/runtime,
LaterEvents): each of their events runs when an action names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgeSteps
from conformance.systems.kafka.runtime import (
    KEYS,
    STEPS,
    BridgedShards,
    BridgeRuntime,
    KafkaRuntimeSystem,
    ReadBroker,
)
from conformance.systems.kafka.runtime_timers import TIMER_STEPS, reader_of_timers
from conformance.tla import Fn, Value

_STEPS: BridgeSteps = MappingProxyType(
    {
        **TIMER_STEPS,
        "Delete": STEPS["DeleteTopic"],
        "RunTask": ("runtime_run_task", ("broker",)),
        "CompleteTask": ("runtime_complete_task", ("broker", "result")),
        "CompleteLateTask": ("runtime_complete_late_task", ("broker",)),
    }
)


def _executor(_shards: BridgedShards, broker: BridgeRuntime) -> Value:
    kind, value, late = broker.executor
    return Fn({"task": Fn({"kind": kind, "input": value}), "late": late})


_OF_TASKS: Mapping[str, ReadBroker] = MappingProxyType(
    {"timers": reader_of_timers(KEYS, KEYS), "executor": _executor}
)


class KafkaTasksSystem(KafkaRuntimeSystem):
    """The same brokers, whose timers and tasks are seen too."""

    variables = (*KafkaRuntimeSystem.variables, *_OF_TASKS)

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, _OF_TASKS)
