"""A finding on the Java consumer's classic protocol as a test of one ConsumerCoordinator.

The broker is the test: it answers as the path has it. What the coordinator of the group and other
members do is not seen by the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, sorted_numbers, text
from conformance.tla import Fn

VARIABLES = frozenset(
    {"memberState", "memberGeneration", "rejoinNeeded", "needsJoinPrepare", "joinFuture"}
    | {"isLeader", "owned", "protocols", "failed"}
)
"""What a client is seen by. If nothing else differs, the client departs."""
CONSUMER: Mapping[str, str] = MappingProxyType(
    {
        "topic": "topic",
        "partitions": "Map.of(TOPIC, 2)",
        "assignor": "RangeAssignor",
        "autoCommit": "false",
    }
)
"""The template's values for a consumer that is told nothing else."""
HEARD: Mapping[str, str] = MappingProxyType(
    {"HearRebalance": "REBALANCE_IN_PROGRESS", "HearEnd": "UNKNOWN_MEMBER_ID"}
)
"""By action, how a heartbeat is answered, where the specification has the news alone."""
_UNSEEN = ("Handle", "Expire", "FailOver", "FailToStoreAssignment")
"""How the steps of the group's coordinator begin."""


@dataclass(slots=True)
class ConsumerScene(JUnitScene):
    """A consumer, as its network sees it."""

    template = "client.java.txt"
    calls = MappingProxyType(
        {
            "commitAsync(": {"commits"},
            "answerSync(": {"syncs"},
            "answerHeartbeat(": {"heartbeats"},
            "answerCommit(": {"committed"},
            "preparedWhileJoining": {"prepared"},
        }
    )
    member: str

    @classmethod
    def of(cls, behaviour: Behaviour) -> ConsumerScene:
        """The scene of the client whose values are not as the specification has them."""
        scene = DepartingPath(behaviour)
        for _, expected, actual in scene.differing():
            for member in fn(expected):
                if fn(expected)[member] != fn(actual).get(member):
                    return cls(scene, str(member))
        raise Unsayable("no client differs at its end")

    @property
    def placeholders(self) -> Mapping[str, str]:
        """One topic with two partitions."""
        return CONSUMER

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.args[:1] != (self.member,) or action.name.startswith(_UNSEEN):
            return
        if action.name == "CompleteJoin":
            return  # the application polls until it has joined
        if action.name in _SENT:
            self.lines.add(_SENT[action.name])
        elif action.name in _ANSWERED:
            variable, say = _ANSWERED[action.name]
            self.lines.add(say(fn(self.scene.of(number - 1, variable, self.member))) + ";")
        else:
            raise Unsayable(f"it has no words for the step {action}")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            wanted, seen = (fn(each)[self.member] for each in (expected, actual))
            if name == "needsJoinPrepare" and wanted is True and seen is False:
                words = "joins that were prepared while another was under way"
                yield f"assertEquals(0, preparedWhileJoining, {text(words)});"


def _join(answer: Fn) -> str:
    members = answer["members"]
    assert isinstance(members, frozenset)
    given = (answer["generation"], text(answer["memberId"]), text(answer["leader"]))
    return call("answerJoin", _error(answer), *given, *map(text, sorted(map(str, members))))


def _sync(answer: Fn) -> str:
    return call("answerSync", _error(answer), *sorted_numbers(answer["assignment"]))


def _error(answer: Fn) -> str:
    return f"Errors.{answer['error']}"


def _of(method: str) -> Callable[[Fn], str]:
    return lambda answer: call(method, _error(answer))


_SENT: Mapping[str, str] = MappingProxyType(
    {
        "SendJoinGroup": "poll();",
        "SendHeartbeat": "coordinator.sendHeartbeatRequest();",
        "SendOffsetCommit": "commitAsync(1);",
        "RequestRejoin": 'coordinator.requestRejoin("the application asks for it");',
    }
)
"""By action, what the application or the heartbeat thread does."""
_ANSWERED: Mapping[str, tuple[str, Callable[[Fn], str]]] = MappingProxyType(
    {
        "ProcessJoinGroup": ("channel", _join),
        "ProcessSyncGroup": ("channel", _sync),
        "ProcessHeartbeat": ("heartbeat", _of("answerHeartbeat")),
        "ProcessOffsetCommit": ("heartbeat", _of("answerCommit")),
    }
)
"""By action, where the answer stands that the client gets, and how it is said."""
