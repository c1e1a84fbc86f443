"""A finding on the Java consumer of KIP-848 as a test of its membership and heartbeat managers.

The application and the group's coordinator are the test. What other members do is not seen by the
client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, partitions_of, sorted_numbers, text
from conformance.tla import Value

VARIABLES = frozenset({"consumer", "channel"})
"""What a client is seen by. If nothing else differs, the client departs."""
_UNSEEN = ("Handle", "Refuse", "Expire")
"""How the steps of the group's coordinator begin."""
_DONE: Mapping[str, str] = MappingProxyType(
    {
        "Join": "join();",
        "SendHeartbeat": "heartbeat();",
        "LoseMessage": "lose();",
        "Revoke": "revoke();",
        "Assign": "poll();",
        "Abandon": "poll();",
    }
)
"""By action, what the application or the background thread does."""
_HEARTBEAT = "SendHeartbeat"


@dataclass(slots=True)
class ConsumerMemberScene(JUnitScene):
    """A consumer of KIP-848, as its coordinator and its application see it."""

    template = "member.java.txt"
    calls = MappingProxyType(
        {
            "poll(": {"polls"},
            "revoke(": {"polls"},
            "lose(": {"loses"},
            "answer(": {"answers"},
            "refuse(": {"refuses"},
            "toBeLost(": {"lost"},
        }
    )
    member: str
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> ConsumerMemberScene:
        """The scene of the client whose values are not as the specification has them."""
        scene = DepartingPath(behaviour)
        for _, expected, actual in scene.differing():
            for member in fn(expected):
                if fn(expected)[member] != fn(actual).get(member):
                    return cls(scene, str(member), constants)
        raise Unsayable("no client differs at its end")

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a consumer."""
        return {"partitions": partitions_of(self.constants)}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.args[:1] != (self.member,) or action.name.startswith(_UNSEEN):
            return
        if action.name == "ReceiveAnswer":
            self.lines.add(self._answer(number))
        elif action.name in _DONE:
            is_asserted = action.name == _HEARTBEAT and number == len(self.scene) - 1
            asked = "ConsumerGroupHeartbeatRequestData request = " if is_asserted else ""
            self.lines.add(asked + _DONE[action.name])
        else:
            raise Unsayable(f"it has no words for the step {action}")

    def _answer(self, number: int) -> str:
        answer = fn(self.scene.of(number - 1, "channel", self.member))
        if answer["error"] != "NONE":
            return call("refuse", f"Errors.{answer['error']}") + ";"
        given = call("List.of", *sorted_numbers(answer["given"]))
        return call("answer", answer["epoch"], *([given] if answer["told"] else [])) + ";"

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        last = self.scene.action(len(self.scene) - 1).name
        for name, expected, actual in self.scene.differing():
            wanted, seen = (fn(fn(each)[self.member]) for each in (expected, actual))
            if name == "channel" and last == _HEARTBEAT:
                yield from self._request(wanted["named"], seen["named"])
            elif name == "consumer" and not wanted["local"] and seen["state"] == "Fenced":
                words = "partitions that onPartitionsLost is to be called with"
                yield f"assertEquals(List.of(), toBeLost(), {text(words)});"

    @staticmethod
    def _request(wanted: Value, seen: Value) -> Iterator[str]:
        if seen and not wanted:
            words = "the heartbeat names partitions while it reconciles others"
            yield f"assertNull(request.topicPartitions(), {text(words)});"
