"""Kafka's own CoordinatorTimer in its runtime: what models with CoordinatorTimers.tla share.

The clock of the timers is in the harness's hand (java/runtime, LaterEvents): each of their events
runs when an action names it. CoordinatorGroupTimers.tla drives the timers of Kafka's group
coordinator here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgeSteps
from conformance.systems.kafka.runtime import (
    STEPS,
    BridgedShards,
    BridgeRuntime,
    KafkaRuntimeSystem,
    ReadBroker,
)
from conformance.systems.shared.shard import STEPS_WITH_TIMERS
from conformance.tla import Fn, Value, make_function

TIMER_STEPS: BridgeSteps = MappingProxyType(
    {
        **{name: STEPS[step] for name, step in STEPS_WITH_TIMERS.items()},
        "Fire": ("runtime_fire", ("broker", "key")),
        "RunTimeout": ("runtime_run_timeout", ("broker", "key", "result")),
        "RunLateTimeout": ("runtime_run_late_timeout", ("broker", "key")),
    }
)
_STEPS_OF_GROUPS: BridgeSteps = MappingProxyType(
    {**TIMER_STEPS, "DeleteOffsetsTopic": STEPS["DeleteTopic"]}
)
_MEMBERS = ("m1", "m2")


def reader_of_timers(names: Sequence[str], seen: Collection[str]) -> ReadBroker:
    """Reads the timers that a model has seen. `names`: those of the bridge, in its order."""

    def read(_shards: BridgedShards, broker: BridgeRuntime) -> Value:
        running, late, expiries = broker.timers
        return Fn(
            {
                "running": make_function(
                    {
                        name: Fn({"kind": kind, "of": of})
                        for name, (kind, of) in zip(names, running, strict=True)
                        if name in seen
                    }
                ),
                "late": make_function(
                    {name: n for name, n in zip(names, late, strict=True) if name in seen}
                ),
                "expiries": frozenset(
                    Fn({"write": write, "key": name, "of": of}) for write, name, of in expiries
                ),
            }
        )

    return read


class KafkaTimedGroupsSystem(KafkaRuntimeSystem):
    """Brokers of Kafka's group coordinator: a member's session is over when an action says so."""

    variables = (*KafkaRuntimeSystem.variables, "timers")

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        members = constants["TimedMembers"]
        assert isinstance(members, frozenset), "a set of members"
        timers = reader_of_timers(_MEMBERS, frozenset(map(str, members)))
        super().__init__(channel, constants, _STEPS_OF_GROUPS, {"timers": timers})
