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
from conformance.tla import Fn, Value, make_function

_STEPS: BridgeSteps = MappingProxyType(
    {
        "Operate": STEPS["Write"],
        "Flush": STEPS["FlushBatch"],
        "OperationTimeOut": STEPS["TimeOut"],
        "RaiseWatermark": STEPS["AdvanceWatermark"],
        "Fetch": STEPS["Replicate"],
        "TakeWatermark": STEPS["ApplyWatermark"],
        "BecomeLeader": STEPS["Elect"],
        "Delete": STEPS["DeleteTopic"],
        "HandleRole": STEPS["RunRole"],
        "EndLoad": STEPS["CompleteLoad"],
        "Fire": ("runtime_fire", ("broker", "key")),
        "RunTimeout": ("runtime_run_timeout", ("broker", "key", "result")),
        "RunLateTimeout": ("runtime_run_late_timeout", ("broker", "key")),
        "RunTask": ("runtime_run_task", ("broker",)),
        "CompleteTask": ("runtime_complete_task", ("broker", "result")),
        "CompleteLateTask": ("runtime_complete_late_task", ("broker",)),
    }
)


def _timers(_shards: BridgedShards, broker: BridgeRuntime) -> Value:
    running, late, expiries = broker.timers
    by_key = zip(KEYS, running, strict=True)
    return Fn(
        {
            "running": make_function({key: Fn({"kind": k, "of": of}) for key, (k, of) in by_key}),
            "late": make_function(dict(zip(KEYS, late, strict=True))),
            "expiries": frozenset(
                Fn({"write": write, "key": key, "of": of}) for write, key, of in expiries
            ),
        }
    )


def _executor(_shards: BridgedShards, broker: BridgeRuntime) -> Value:
    kind, value, late = broker.executor
    return Fn({"task": Fn({"kind": kind, "input": value}), "late": late})


_OF_TASKS: Mapping[str, ReadBroker] = MappingProxyType({"timers": _timers, "executor": _executor})


class KafkaTasksSystem(KafkaRuntimeSystem):
    """The same brokers, whose timers and tasks are seen too."""

    variables = (*KafkaRuntimeSystem.variables, *_OF_TASKS)

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, _OF_TASKS)
