"""A finding on a move between log directories as a test.

The partition, both of its logs and the thread of the move are Kafka's. The thread runs in turns
that the test gives it. What happens while it asks its own broker stands in the turn, before or
after the answer is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.tla import Action, Value

_SENT = frozenset({"SendFetch", "SendEpochRequest"})
_HANDLED = frozenset({"HandleFetch", "HandleEpochRequest"})
_PROCESSED = frozenset({"ProcessFetchResponse", "ProcessEpochResponse"})


@dataclass(slots=True)
class DirectoryScene(JUnitScene):
    """A broker with two log directories."""

    template = "directory.java.txt"
    calls = MappingProxyType(
        {
            "becomeFollower(": {"follows"},
            "appendAsFollower(": {"replicates"},
            "directoryOfTheLog(": {"directory"},
            "epochs(": {"logs"},
        }
    )

    @classmethod
    def of(cls, behaviour: Behaviour) -> DirectoryScene:
        """The scene of a departure that does not end while the thread waits for an answer."""
        scene = DepartingPath(behaviour)
        if fn(scene.value(len(scene) - 1, "channel"))["type"] != "None":
            raise Unsayable("it ends while the thread of the move waits for an answer")
        return cls(scene)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """None."""
        return {}

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        return ("becomeLeader(0);", "append();")

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name in _SENT | _HANDLED | _PROCESSED:
            self._asks(number, action.name)
        else:
            self.lines.add(self._line(number, action))

    def _asks(self, number: int, name: str) -> None:
        """A turn, as far as something happens in it; no line is needed where nothing does."""
        last = self.scene.action(number - 1).name
        following = "" if number + 1 == len(self.scene) else self.scene.action(number + 1).name
        if name in _SENT:
            if following not in _HANDLED:
                self.lines.open("ask(() -> {")
        elif name in _HANDLED:
            if last not in _SENT:
                self.lines.close("},")
            if following not in _PROCESSED:
                self.lines.open("ask(() -> {}, () -> {" if last in _SENT else "() -> {")
            elif last not in _SENT:
                self.lines.add("() -> {});")
        elif last not in _HANDLED:
            self.lines.close("});")
        elif self.scene.action(number - 2).name in _SENT:
            self.lines.add("ask(() -> {}, () -> {});")

    def _line(self, number: int, action: Action) -> str:
        epoch = self.scene.value(number, "leaderEpoch")
        before = number - 1
        match action.name:
            case "AlterReplicaLogDirs" if not self.scene.value(before, "moving"):
                return f'move("{action.args[0]}");'
            case "BecomeLeader":
                return f"becomeLeader({epoch});"
            case "BecomeFollower":
                return f"becomeFollower({epoch});"
            case "AppendAsLeader":
                return "append();"
            case "AppendAsFollower":
                current = self.scene.of(before, "log", "current")
                assert isinstance(current, tuple)
                return f"appendAsFollower({len(current)}, {action.args[0]});"
            case "TruncateCurrent":
                return f"partition.truncateTo({action.args[0]}, false);"
            case "MarkForTruncation":
                offset = self.scene.value(before, "unmarked")
                return f"thread.markPartitionsForTruncation(PARTITION, {offset});"
            case "AddFetcher":
                return f"addFetcher({self.scene.value(before, 'unadded')});"
            case "TruncateToHighWatermark":
                return "work();"
        raise Unsayable(f"it has no words for the step {action}")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        lines = [line for variable in self.scene.differing() for line in _assertions(*variable)]
        if lines:  # a partition that has failed unexpectedly differs in much else
            state = self.scene.value(len(self.scene) - 1, "fetchState")
            yield _assert(state == "Failed", "failed.contains(PARTITION)", "whether it has failed")
        yield from lines


def _assertions(name: str, expected: Value, actual: Value) -> Iterator[str]:
    """Of a variable that differs."""
    if name == "directory":
        yield f'assertEquals("{expected}", directoryOfTheLog(), "where the log is");'
    elif name == "moving":
        yield _assert(bool(expected), "partition.futureLog().isDefined()", "whether the log moves")
    elif name == "log":
        current, seen = (fn(each)["current"] for each in (expected, actual))
        if current != seen:
            assert isinstance(current, tuple)
            epochs = ", ".join(map(str, current))
            yield f'assertEquals(List.of({epochs}), epochs(), "leader epochs of the records");'
    elif name == "fetchState" and {expected, actual} == {"Truncating", "Fetching"}:
        truncates = "thread.fetchState(PARTITION).get().isTruncating()"
        yield _assert(expected == "Truncating", truncates, "whether it truncates first")


def _assert(holds: bool, what: str, words: str) -> str:
    return f'assert{holds}({what}, "{words}");'
