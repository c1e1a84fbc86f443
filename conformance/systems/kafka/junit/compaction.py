"""A finding on log compaction as a test of logs, and of Kafka's log cleaner on them.

Who appends, who fetches and who cleans when is in the test, as the path has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.logs import MARKERS, LogScene, new_log
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, names_in, text
from conformance.tla import Action, Value

_VALUES = MappingProxyType({"value": text("value"), "tombstone": "null"})
_WITHOUT_RECORDS = frozenset({"Empty", "EmptyMarker"})


@dataclass(slots=True)
class CompactionScene(LogScene):
    """Replicas of a compacted partition, as their UnifiedLogs and the log cleaner see them."""

    calls = MappingProxyType(
        {
            "": {"compaction"},
            "append(": {"records", "keyed", "appends"},
            "appendInTransaction(": {"transactions", "keyed", "appends"},
            "appendMarker(": {"markers", "appends"},
            "roll(": {"rolls"},
            "fetch(": {"fetches", "copies"},
            "passDay(": {"days"},
        }
    )
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> CompactionScene:
        """The scene of all replicas."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values: none is of compaction."""
        return {}

    @property
    def _leader(self) -> str:
        return self.constants.get("Leader", "").strip('"')

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        replicas = names_in(self.constants.get("Replicas", ""))
        if self._leader not in replicas:
            raise Unsayable("it does not say which replica leads")
        return [new_log(replica, replica) for replica in replicas]

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        say = _STEPS.get(action.name)
        if say is None:
            raise Unsayable(f"it has no words for the step {action}")
        self.lines.add(say(self, action) + ";")

    def _append(self, action: Action) -> str:
        kind, key = action.args
        return call("append", self._leader, text(f"key {key}"), _VALUES[str(kind)])

    def _append_in_transaction(self, action: Action) -> str:
        key = text(f"key {action.args[1]}")
        return call("appendInTransaction", self._leader, key, _VALUES["value"])

    def _append_marker(self, action: Action) -> str:
        return call("appendMarker", self._leader, MARKERS[str(action.args[1])])

    def _roll(self, action: Action) -> str:
        return call("roll", action.args[0])

    def _advance(self, action: Action) -> str:
        return f"{self._leader}.updateHighWatermark({action.args[0]})"

    def _fetch(self, action: Action) -> str:
        return call("fetch", action.args[0], self._leader)

    def _clean(self, action: Action) -> str:
        return call("clean", action.args[0])

    def _pass_day(self, _action: Action) -> str:
        return call("passDay")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "log":
                for replica in fn(expected):
                    wanted, seen = (list(_batches(fn(log)[replica])) for log in (expected, actual))
                    if wanted != seen:
                        batches = call("List.of", *map(text, wanted))
                        words = text(f"batches in the log of {replica}")
                        yield f"assertEquals({batches}, batches({replica}), {words});"


def _batches(log: Value) -> Iterator[str]:
    """Of each batch its offset, and whether it has its record, as the template's `batches`."""
    assert isinstance(log, tuple)
    for batch in map(fn, log):
        is_empty = batch["kind"] in _WITHOUT_RECORDS
        yield f"{batch['offset']}: {'empty' if is_empty else 'a record'}"


_Say = Callable[[CompactionScene, Action], str]
_STEPS: Mapping[str, _Say] = MappingProxyType(
    {
        "AppendRecord": CompactionScene._append,
        "AppendInTransaction": CompactionScene._append_in_transaction,
        "AppendMarker": CompactionScene._append_marker,
        "Roll": CompactionScene._roll,
        "AdvanceHighWatermark": CompactionScene._advance,
        "Fetch": CompactionScene._fetch,
        "Clean": CompactionScene._clean,
        "DayPasses": CompactionScene._pass_day,
    }
)
"""By action, how the test says it."""
