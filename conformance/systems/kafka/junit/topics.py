"""A finding on a classic member and the topics that it knows as a test of one ConsumerCoordinator.

The cluster and the coordinator of the group are the test. The member may lead its group: then the
assignor of Kafka assigns, and what it has assigned is seen in the SyncGroup request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.client import CONSUMER, HEARD
from conformance.systems.kafka.junit.groups import map_of, set_of
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, names_in, sorted_names, text
from conformance.tla import Action, Value


@dataclass(slots=True)
class TopicsScene(JUnitScene):
    """A member that subscribes to one topic once, before anything else."""

    template = "client.java.txt"
    calls = MappingProxyType(
        {
            "updateMetadata(": {"updates"},
            "answerJoinOfLeader(": {"leads"},
            "answerSync(": {"syncs"},
            "answerHeartbeat(": {"heartbeats"},
        }
    )
    topic: str
    others: tuple[str, ...]
    """The topics that another member wants."""
    assignor: str

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> TopicsScene:
        """The scene of a member of one topic."""
        scene = DepartingPath(behaviour)
        subscribed = sorted_names(scene.value(len(scene) - 1, "subscription"))
        if len(subscribed) != 1:
            raise Unsayable("it has words only for a member that subscribes to one topic")
        cooperates = constants.get("Cooperative") == "TRUE"
        assignor = "CooperativeStickyAssignor" if cooperates else "RangeAssignor"
        return cls(scene, subscribed[0], tuple(names_in(constants.get("Others", ""))), assignor)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The topic, what the cluster has at first, and who assigns."""
        return {
            **CONSUMER,
            "topic": self.topic,
            "partitions": _map(self.scene.value(0, "counts")),
            "assignor": self.assignor,
        }

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name == "AddPartition":
            self.lines.comment(f"The cluster adds a partition to topic {action.args[0]}.")
            return
        for line in self._lines(number, action):
            self.lines.add(line)

    def _lines(self, number: int, action: Action) -> Iterator[str]:
        match action.name, action.args:
            case "Subscribe", _ if number == 1:
                return
            case "Poll", _ if not self._is_complete(number):
                yield "poll();"
            case "Poll", _:
                return  # it polls until it has joined
            case "UpdateMetadata", _:
                yield call("updateMetadata", _map(self.scene.value(number, "counts"))) + ";"
            case "AnswerJoin", ("leader", _):
                yield call("answerJoinOfLeader", self._joins(number), *map(text, self.others)) + ";"
                if number + 1 < len(self.scene):
                    yield self._synced(number)
            case "AnswerJoin", ("follower", _):
                yield f'answerJoin(Errors.NONE, {self._joins(number)}, "member", "another");'
                yield self._synced(number)
            case "HearRebalance" | "HearEnd", _:
                yield "coordinator.sendHeartbeatRequest();"
                yield f"answerHeartbeat(Errors.{HEARD[action.name]});"
            case _:
                raise Unsayable(f"it has no words for the step {action}")

    def _is_complete(self, number: int) -> bool:
        """Whether the poll only completes a join: a test polls when the answers have come."""
        states = [self.scene.value(each, "joining") for each in (number - 1, number)]
        return states == ["answered", "none"]

    def _synced(self, number: int) -> str:
        granted = self._numbers(self.scene.value(number, "granted"))
        return call("answerSync", "Errors.NONE", *sorted(granted)) + ";"

    def _joins(self, number: int) -> int:
        """The generation: how often the group was joined."""
        return sum(self.scene.action(each).name == "AnswerJoin" for each in range(1, number + 1))

    def _numbers(self, partitions: Value) -> frozenset[int]:
        """Partitions of the topic as Kafka counts them, from 0. Unsayable if others are there."""
        assert isinstance(partitions, frozenset)
        numbers = set()
        for partition in partitions:
            assert isinstance(partition, tuple)
            topic, number = partition
            if topic != self.topic:
                raise Unsayable(f"it has no words for a partition of topic {topic}")
            assert isinstance(number, int)
            numbers.add(number - 1)
        return frozenset(numbers)

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        last = len(self.scene) - 1
        for name, expected, _ in self.scene.differing():
            if name == "granted" and self.scene.action(last).args[:1] == ("leader",):
                numbers = set_of(self._numbers(expected))
                words = f"partitions of {self.topic} that the leader assigns to itself"
                yield f'assertEquals({numbers}, assignsItself(), "{words}");'


def _map(counts: Value) -> str:
    """A map of Java from topics to how many partitions they have, without topics that have none."""
    sizes = {str(topic): str(size) for topic, size in fn(counts).items() if size != 0}
    return map_of(sizes)
