"""A finding on a log on its disk as a test of one UnifiedLog.

What the log's partition and its leader do is in the test by what they ask of the log. Stops and
loads of the log are in no test: no finding on Kafka's classes begins with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.logs import LogScene, new_log
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call
from conformance.tla import Action, Value

_LOG = "log"
_RAISED = MappingProxyType(
    {"DeleteRecords": "ClientRecordDeletion", "LearnLogStart": "LeaderOffsetIncremented"}
)
"""By action, the LogStartOffsetIncrementReason."""
_SEEN = MappingProxyType(
    {
        "recoveryPoint": ("recoveryPoint", "recovery point of a log that is flushed up to {}"),
        "logStart": ("logStartOffset", "log start offset"),
        "highWatermark": ("highWatermark", "high watermark"),
    }
)
"""By variable, the method of UnifiedLog that shows it, and what it is called."""


@dataclass(slots=True)
class StorageScene(LogScene):
    """A log, as its UnifiedLog sees it."""

    calls = MappingProxyType(
        {
            "": {"storage"},
            "runTask(": {"runs"},
            "appendAsLeader(": {"leads", "appends"},
            "appendAsFollower(": {"follows", "copies"},
        }
    )
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> StorageScene:
        """The scene of the log."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a log on its disk."""
        records = self.constants.get("SegmentRecords", "")
        if not records.isdigit():
            raise Unsayable("it does not say how many records a segment file takes")
        return {"records": records}

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        return (new_log(_LOG, "broker"), f"becomeLeader({_LOG}, 0);")

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        say = _STEPS.get(action.name)
        if say is None:
            raise Unsayable(f"it has no words for the step {action}")
        say(self, number, action)

    def _elect(self, number: int, action: Action) -> None:
        epoch = self.scene.value(number, "leaderEpoch")
        if action.args[0] == "leader":
            self.lines.add(call("becomeLeader", _LOG, epoch) + ";")
        else:
            self.lines.comment(f"Another broker is elected in leader epoch {epoch}.")

    def _append_as_leader(self, number: int, _action: Action) -> None:
        epoch = self.scene.value(number, "leaderEpoch")
        self.lines.add(call("appendAsLeader", _LOG, epoch) + ";")

    def _append_as_follower(self, number: int, action: Action) -> None:
        epoch, commits = action.args
        self.lines.add(call("appendAsFollower", _LOG, epoch) + ";")
        if commits:
            committed = self.scene.value(number, "highWatermark")
            self.lines.add(f"{_LOG}.updateHighWatermark({committed});")

    def _raise_log_start(self, _number: int, action: Action) -> None:
        reason = f"LogStartOffsetIncrementReason.{_RAISED[action.name]}"
        self.lines.add(f"{_LOG}.maybeIncrementLogStartOffset({action.args[0]}, {reason});")

    def _truncate(self, _number: int, action: Action) -> None:
        self.lines.add(f"{_LOG}.truncateTo({action.args[0]});")

    def _run_task(self, number: int, action: Action) -> None:
        tasks, place = self.scene.value(number - 1, "tasks"), action.args[0]
        assert isinstance(tasks, tuple)
        assert isinstance(place, int)
        name = tasks[place - 1]
        if name in tasks[: place - 1]:
            raise Unsayable(f"its step {number} runs a task before an older one of its name")
        if name == "delete-file":
            raise Unsayable("it has no words for the deletion of files")
        self.lines.add(f'runTask("{name}");')

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, _ in self.scene.differing():
            if name in _SEEN:
                method, title = _SEEN[name]
                words = title.format(f"offset {self._flushed}")
                yield f'assertEquals({expected}, {_LOG}.{method}(), "{words}");'

    @property
    def _flushed(self) -> Value:
        """The first offset at the end that no flush has covered."""
        segments = self.scene.value(len(self.scene) - 1, "segments")
        assert isinstance(segments, tuple)
        end = 0
        for segment in map(fn, segments):
            base, durable, records = segment["base"], segment["durable"], segment["records"]
            assert isinstance(base, int)
            assert isinstance(durable, int)
            assert isinstance(records, tuple)
            end = base + durable
            if durable < len(records):
                break
        return end


_Say = Callable[[StorageScene, int, Action], None]
_STEPS: Mapping[str, _Say] = MappingProxyType(
    {
        "Elect": StorageScene._elect,
        "AppendAsLeader": StorageScene._append_as_leader,
        "AppendAsFollower": StorageScene._append_as_follower,
        "DeleteRecords": StorageScene._raise_log_start,
        "LearnLogStart": StorageScene._raise_log_start,
        "Truncate": StorageScene._truncate,
        "RunTask": StorageScene._run_task,
    }
)
"""By action, how the test says it."""
