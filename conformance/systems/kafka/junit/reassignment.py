"""A finding on a leader whose replicas leave as a test: its partition and its log are Kafka's.

The controller's decisions, and what followers send, are in the test as the path has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.tla import Value

_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "SendFetch": "Broker {0} sends a fetch.",
        "HandleAlterPartition": "The controller decides.",
        "Publish": "The metadata log has the partition as it is now.",
    }
)
"""Steps that the leader's partition does not see."""


@dataclass(slots=True)
class ReassignmentScene(JUnitScene):
    """A partition, as its leader sees it."""

    template = "reassignment.java.txt"
    calls = MappingProxyType({"append(": {"appends"}})
    leader: str

    @classmethod
    def of(cls, behaviour: Behaviour) -> ReassignmentScene:
        """The scene of a departure in what the leader takes for the ISR."""
        scene = DepartingPath(behaviour)
        if "view" not in {name for name, _, _ in scene.differing()}:
            raise Unsayable("nothing differs at its end in the leader's view of the partition")
        (leader,) = set(map(str, fn(scene.value(0, "brokers")))) - set(
            map(str, fn(scene.value(0, "positions")))
        )
        return cls(scene, leader)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a leader."""
        replicas = fn(self.scene.value(0, "view"))["replicas"]
        return {"broker": _id(self.leader), "replicas": _members(replicas)}

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        return (self._hear(fn(self.scene.value(0, "view"))),)

    def _hear(self, partition: Mapping[Value, Value]) -> str:
        epochs = f"{partition['leaderEpoch']}, {partition['partitionEpoch']}"
        return f"hear({epochs}, {_members(partition['isr'])});"

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        before = number - 1
        if action.name in _ELSEWHERE:
            self.lines.comment(_ELSEWHERE[action.name].format(*map(_id, action.args[:1])))
        elif action.name == "PassLagTime":
            self.lines.add("time.sleep(LAG_MS + 1);")
        elif action.name == "ShrinkIsr":
            self.lines.add("partition.maybeShrinkIsr();")
        elif action.name == "AppendRecord":
            self.lines.add("append();")
        elif action.name == "HearAlterPartition" and self._accepted(before):
            self.lines.add(f"accepted({fn(self.scene.value(before, 'alter'))['partitionEpoch']});")
        elif action.name == "HandleFetch" and action.args[1] == "NONE":
            sent = fn(self.scene.of(before, "fetch", action.args[0]))
            follower = _id(action.args[0])
            self.lines.add(f"handleFetchOf({follower}, {sent['offset']}, {sent['leaderEpoch']});")
        elif action.name == "ApplyDelta" and self._keeps_replicas(before):
            self.lines.add(self._hear(fn(self.scene.value(before, "delta"))))
        else:
            raise Unsayable(f"it has no words for the step {action}")

    def _accepted(self, number: int) -> bool:
        return fn(self.scene.value(number, "alter"))["error"] == "NONE"

    def _keeps_replicas(self, number: int) -> bool:
        published, first = (fn(self.scene.value(*at)) for at in ((number, "delta"), (0, "view")))
        return published["replicas"] == first["replicas"]

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "view":
                wanted, seen = (_maximal_isr(fn(each)) for each in (expected, actual))
                if wanted != seen:
                    yield (
                        f"assertEquals(Set.of({_members(wanted)}), maximalIsr(), "
                        '"whom the leader waits for");'
                    )


def _maximal_isr(view: Mapping[Value, Value]) -> Value:
    """PartitionState.maximalIsr: with the follower that is proposed."""
    pending = fn(view["pending"])
    return pending["isr"] if pending["type"] == "Expand" else view["isr"]


def _id(broker: Value) -> str:
    return str(broker).lstrip("b")


def _members(brokers: Value) -> str:
    assert isinstance(brokers, frozenset)
    return ", ".join(sorted(map(_id, brokers)))
