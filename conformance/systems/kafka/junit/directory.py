"""A finding on a move between log directories as a test.

The partition, both of its logs and the thread of the move are Kafka's. The thread runs in turns
that the test gives it. What happens while it asks its own broker stands in the turn, before or
after the answer is made. In KRaft (KIP-858) the thread asks the controller before the log takes
over: the test keeps what it asks, with the call-back.
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
_NO_DIRECTORY = "none"
_ENDS = _PROCESSED | {"Restart"}
"""What ends the wait for an answer."""
_IN_KRAFT = "InKRaft"
"""Ends the names of DirectoryMove's steps in DirectoryAssignment."""


@dataclass(slots=True)
class DirectoryScene(JUnitScene):
    """A broker with two log directories."""

    template = "directory.java.txt"
    calls = MappingProxyType(
        {
            "becomeFollower(": {"follows"},
            "appendAsFollower(": {"replicates"},
            "directoryOfTheLog(": {"directory"},
            "sendAssignment(": {"sends"},
            "answerAssignment(": {"answers"},
            "applyAssignment(": {"learns", "directory"},
            "restart(": {"restarts"},
            "promotion(": {"promotes"},
            "queued(": {"asks"},
            "epochs(": {"logs"},
        }
    )

    assigns: bool
    """Whether the controller is asked."""

    @classmethod
    def of(cls, behaviour: Behaviour) -> DirectoryScene:
        """The scene of a departure that is none of what the thread asks, or is answered."""
        scene = cls(DepartingPath(behaviour), "promotion" in behaviour.variables)
        if scene._action(len(behaviour.steps) - 1).name in _SENT | _HANDLED:
            raise Unsayable("it ends while the thread of the move waits for an answer")
        return scene

    @property
    def placeholders(self) -> Mapping[str, str]:
        """None."""
        return {}

    def parts(self, test: str) -> frozenset[str]:
        """And those of the assignment of directories."""
        assigns = {"assigns"} if self.assigns else frozenset[str]()
        return JUnitScene.parts(self, test) | assigns

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        return ("becomeLeader(0);", "append();")

    def _action(self, number: int) -> Action:
        """As DirectoryMove names it."""
        action = self.scene.action(number)
        return Action(action.name.removesuffix(_IN_KRAFT), action.args)

    def _step(self, number: int) -> None:
        action = self._action(number)
        if action.name in _SENT | _HANDLED | _PROCESSED:
            if self._is_processed(number):
                self._asks(number, action.name)
        else:
            for line in self._lines(number, action):
                self.lines.add(line)

    def _is_processed(self, number: int) -> bool:
        """What the thread asks changes nothing but by the answer, when the thread has it."""
        following = (self._action(each).name for each in range(number, len(self.scene)))
        return next((name for name in following if name in _ENDS), "") in _PROCESSED

    def _asks(self, number: int, name: str) -> None:
        """A turn, as far as something happens in it; no line is needed where nothing does."""
        last = self._action(number - 1).name
        following = "" if number + 1 == len(self.scene) else self._action(number + 1).name
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
        elif self._action(number - 2).name in _SENT:
            self.lines.add("ask(() -> {}, () -> {});")

    def _lines(self, number: int, action: Action) -> Iterable[str]:
        if not self.assigns:
            return (self._line(number, action),)
        self._refuse_thread_that_ends(number, action)
        assigned = self.scene.value(number, "assigned")
        match action.name:
            case "SendAssignment":
                return ("sendAssignment();",)
            case "WriteAssignment":
                return (f"// The controller writes that the replica lies in {assigned}.",)
            case "AnswerAssignment":
                return ("answerAssignment();",)
            case "LearnAssignment" if self.scene.value(number - 1, "moving"):
                return (f'applyAssignment("{assigned}");',)
            case "Restart" if not action.args[1]:
                role = str(action.args[0]).capitalize()
                elected = self._line(number, Action(f"Become{role}"))
                return (f'restart("{assigned}");', elected, "addFutureLog();")
        return (self._line(number, action),)

    def _refuse_thread_that_ends(self, number: int, action: Action) -> None:
        """An idle thread ends when the metadata change (ReplicaManager)."""
        before = number - 1
        waits = any(fn(self.scene.value(before, name))["promotes"] for name in ("queued", "sent"))
        hears = action.name in {"LearnAssignment", "BecomeLeader", "BecomeFollower"}
        if hears and waits and not self.scene.value(before, "moving"):
            raise Unsayable("its thread ends, and is called back later")

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
        restarted = self._action(len(self.scene) - 1).name == "Restart"
        lines = [
            line
            for name, expected, actual in self.scene.differing()
            if not (restarted and name == "queued")  # what a start asks ReplicaManager asks
            for line in _assertions(name, expected, actual)
        ]
        if lines:  # a partition that has failed unexpectedly differs in much else
            state = self.scene.value(len(self.scene) - 1, "fetchState")
            yield _assert(state == "Failed", "failed.contains(PARTITION)", "whether it has failed")
        yield from lines


def _assertions(name: str, expected: Value, actual: Value) -> Iterator[str]:
    """Of a variable that differs."""
    if name == "directory":
        yield f'assertEquals("{expected}", directoryOfTheLog(), "where the log is");'
    elif name == "promotion":
        yield f'assertEquals("{expected}", promotion(), "promotion state");'
    elif name == "queued":
        yield from _queued(*(str(fn(each)["directory"]) for each in (expected, actual)))
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


def _queued(expected: str, actual: str) -> Iterator[str]:
    words = '"directory that the controller is to be told"'
    if expected == _NO_DIRECTORY != actual:
        yield f"assertNull(queued(), {words});"
    elif expected != actual:
        yield f'assertEquals("{expected}", queued(), {words});'


def _assert(holds: bool, what: str, words: str) -> str:
    return f'assert{holds}({what}, "{words}");'
