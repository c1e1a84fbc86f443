"""A finding on the Java consumer of KIP-848 as a test of its membership and heartbeats.

The coordinator is the test: it answers as the path has it. Other members are not seen by the
consumer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.groups import set_of
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call
from conformance.tla import Fn, Value

_UNSEEN = ("Handle", "Refuse", "Expire")
"""How the steps of the group's coordinator begin."""
_INTERRUPTED = "Assign_interrupted_by_ReceiveAnswer"
_NONE = "NONE"


@dataclass(slots=True)
class MembershipScene(JUnitScene):
    """A consumer of KIP-848, as its coordinator sees it."""

    template = "membership.java.txt"
    calls = MappingProxyType(
        {
            "answer(Errors.": {"errors"},
            "disconnect(": {"disconnects"},
            "lost(": {"lost"},
            "reconcile(": {"reconciles"},
        }
    )
    member: str

    @classmethod
    def of(cls, behaviour: Behaviour) -> MembershipScene:
        """The scene of the consumer whose values are not as the specification has them."""
        scene = DepartingPath(behaviour)
        for name, expected, actual in scene.differing():
            if name == "consumer":
                for member in fn(expected):
                    if fn(expected)[member] != fn(actual).get(member):
                        return cls(scene, str(member))
        raise Unsayable("no consumer differs at its end")

    @property
    def placeholders(self) -> Mapping[str, str]:
        """None: a consumer is as the template has it."""
        return {}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name == _INTERRUPTED:
            self._interrupted(number, action.args)
            return
        subject = action.args[0]
        of_another = isinstance(subject, str) and subject != self.member
        if of_another or action.name.startswith(_UNSEEN):
            return
        if action.name == "ReceiveAnswer":
            self._answered(number)
        elif action.name in _STEPS:
            last = number == len(self.scene) - 1 and action.name == "SendHeartbeat"
            request = "ConsumerGroupHeartbeatRequestData request = " if last else ""
            self.lines.add(f"{request}{_STEPS[action.name]}")
        else:
            raise Unsayable(f"it has no words for the step {action}")

    def _interrupted(self, number: int, args: Sequence[Value]) -> None:
        """The background thread reconciles, an answer arrives, and the application polls."""
        if args != ((self.member,), 1, (self.member,)):
            raise Unsayable("it has no words for an interrupted step of several members")
        self.lines.add("reconcile();")
        self._answered(number)
        self.lines.add("poll();")

    def _answered(self, number: int) -> None:
        self.lines.add(_answer(fn(self.scene.of(number - 1, "channel", self.member))))

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            wanted, seen = (fn(fn(each)[self.member]) for each in (expected, actual))
            if name == "channel" and seen["named"] and not wanted["named"]:
                yield (
                    "assertNull(request.topicPartitions(), "
                    '"partitions that the heartbeat names, amid the reconciliation");'
                )
            states = (wanted["state"], seen["state"]) if name == "consumer" else ()
            if states == ("Joining", "Fenced"):
                words = "partitions that onPartitionsLost is called of"
                yield f'assertEquals(Set.of(), lost(), "{words}");'
            if states == ("Fenced", "Joining") and seen["owned"]:
                words = "partitions that the application has in no membership"
                yield f'assertEquals(Set.of(), application.owned, "{words}");'


def _answer(answer: Fn) -> str:
    if answer["error"] != _NONE:
        return f"answer(Errors.{answer['error']});"
    given = set_of(answer["given"]) if answer["told"] else "null"
    return call("answer", answer["epoch"], given) + ";"


_STEPS: Mapping[str, str] = MappingProxyType(
    {
        "Join": "subscribe();",
        "SendHeartbeat": "heartbeat();",
        "LoseMessage": "disconnect();",
        "Revoke": "poll();",
        "Assign": "poll();",
        "Abandon": "poll();",
    }
)
"""By action, what the application or the background thread does. A poll calls back once."""
