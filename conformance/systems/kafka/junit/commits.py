"""A finding on what the Java consumer commits as a test of one ConsumerCoordinator.

The coordinator of the group is the test. What it answers to a call that waits for it stands within
the call: no other thread is needed. The heartbeat thread is Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.client import CONSUMER, HEARD
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call
from conformance.tla import Action, Value


@dataclass(slots=True)
class CommitScene(JUnitScene):
    """A consumer of one partition."""

    template = "client.java.txt"
    calls = MappingProxyType(
        {
            "seek(": {"seeks"},
            "commitAsync(": {"commits"},
            "close(": {"closes", "leaves"},
            "handlePollTimeoutExpiry(": {"leaves"},
            "failAuthentication(": {"authenticates"},
            "answerSync(": {"syncs"},
            "answerHeartbeat(": {"heartbeats"},
            "answerCommit(": {"committed"},
        }
    )
    auto_commit: str

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> CommitScene:
        """The scene of a departure at whose end no call waits."""
        scene = DepartingPath(behaviour)
        if _call(scene, len(scene) - 1) != "none":
            raise Unsayable("it ends while a call waits for the network")
        return cls(scene, constants.get("AutoCommit", "FALSE").lower())

    @property
    def placeholders(self) -> Mapping[str, str]:
        """Whether the consumer commits by itself."""
        return {**CONSUMER, "autoCommit": self.auto_commit}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if _count(self.scene.value(number, "sent")) > 1:
            raise Unsayable("it has no words for several commits in flight")
        if action == Action("Close") and _call(self.scene, number) == "close":
            self.lines.open("close(() -> {")
            return
        for line in self._lines(number, action):
            self.lines.add(line)
        if _call(self.scene, number - 1) == "close" and _call(self.scene, number) == "none":
            self.lines.close("});")

    def _lines(self, number: int, action: Action) -> Iterator[str]:
        match action.name:
            case "Subscribe" | "AnswerLookup" if action.args in ((), (True,)):
                return  # it has subscribed, and look-ups are answered at once
            case "Poll":
                yield from self._poll(number)
            case "AnswerJoin":
                generation = self.scene.value(number, "groupGeneration")
                yield f'answerJoin(Errors.NONE, {generation}, "member", "another");'
                yield "answerSync(Errors.NONE, 0);"
            case "AnswerCommit":
                yield call("answerCommit", f"Errors.{action.args[0]}") + ";"
            case "HearRebalance" | "HearEnd":
                yield "coordinator.sendHeartbeatRequest();"
                yield f"answerHeartbeat(Errors.{HEARD[action.name]});"
            case "Begin" | "Consume":
                yield f"seek({self.scene.value(number, 'position')});"
            case "CallCommitAsync":
                yield f"commitAsync({self.scene.value(number, 'position')});"
            case "Close":
                yield "close(() -> {});"
            case "OverrunPollInterval":
                yield "coordinator.handlePollTimeoutExpiry(); // max.poll.interval.ms is over"
            case "EndHeartbeatThread" if action.args == ("authentication",):
                yield "failAuthentication();"
            case _:
                raise Unsayable(f"it has no words for the step {action}")

    def _poll(self, number: int) -> Iterator[str]:
        """None for a poll that only asks for the coordinator, or whose join is complete."""
        before, after = number - 1, number
        asks = self.scene.value(after, "lookup") == "sent"
        joining = [self.scene.value(each, "joining") for each in (before, after)]
        if not asks and joining != ["answered", "none"]:
            yield "poll();"

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, _ in self.scene.differing():
            if name == "told":
                words = "calls of OffsetCommitCallback"
                yield f'assertEquals({_count(expected)}, callbacks, "{words}");'
            elif name == "rejoinNeeded":
                words = "whether it joins again, with another heartbeat thread"
                yield f'assert{expected}(coordinator.rejoinNeededOrPending(), "{words}");'


def _call(scene: DepartingPath, number: int) -> Value:
    """What the application calls and waits for; none if it does not wait."""
    return fn(scene.value(number, "call"))["type"]


def _count(entries: Value) -> int:
    assert isinstance(entries, tuple)
    return len(entries)
