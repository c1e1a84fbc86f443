"""A finding on a log that transactions write as a test of one UnifiedLog, which is loaded again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.logs import MARKERS, LogScene, new_log
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, text
from conformance.tla import Action, Value

_LOG = "log"
_NO_OFFSET = -1


@dataclass(slots=True)
class TransactionalLogScene(LogScene):
    """A log with one transactional producer, as its UnifiedLog sees it."""

    calls = MappingProxyType(
        {
            "": {"transactional"},
            "appendInTransaction(": {"transactions", "keyed", "appends"},
            "appendMarker(": {"markers", "appends"},
            "passDay(": {"days"},
            "restart(": {"restarts"},
        }
    )

    @classmethod
    def of(cls, behaviour: Behaviour) -> TransactionalLogScene:
        """The scene of the log."""
        return cls(DepartingPath(behaviour))

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values: none is of transactions."""
        return {}

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        if len(fn(self.scene.value(0, "ongoing"))) > 1:
            raise Unsayable("a test has one transactional producer, and the path has several")
        return [new_log(_LOG, "broker")]

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        say = _STEPS.get(action.name)
        if say is None:
            raise Unsayable(f"it has no words for the step {action}")
        for statement in say(action):
            self.lines.add(statement + ";")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        differing = {name: actual for name, _, actual in self.scene.differing()}
        last = len(self.scene) - 1
        expected = {name: self.scene.value(last, name) for name in _UNSTABLE}
        wanted, seen = (_stable_offset({**expected, **ends}) for ends in ({}, differing))
        if wanted != seen:
            yield f'assertEquals({wanted}, {_LOG}.lastStableOffset(), "last stable offset");'


_UNSTABLE = ("ongoing", "unreplicated", "highWatermark", "logStart")


def _stable_offset(state: Mapping[str, Value]) -> int:
    """UnifiedLog.lastStableOffset, of the variables that it depends on."""
    watermark, start = state["highWatermark"], state["logStart"]
    assert isinstance(watermark, int)
    assert isinstance(start, int)
    return min([watermark, *(max(start, first) for first in _first_offsets(state))])


def _first_offsets(state: Mapping[str, Value]) -> Iterator[int]:
    """Of transactions that are open, or whose end may be lost."""
    unreplicated = state["unreplicated"]
    assert isinstance(unreplicated, frozenset)
    for first in (*fn(state["ongoing"]).values(), *(fn(each)["first"] for each in unreplicated)):
        assert isinstance(first, int)
        if first != _NO_OFFSET:
            yield first


def _restart(action: Action) -> Iterator[str]:
    yield f"{_LOG} = {call('restart', _LOG)}"
    if action.args[0]:
        yield from _replicate(action)


def _replicate(action: Action) -> Iterator[str]:
    yield f"{_LOG}.updateHighWatermark({action.args[0]})"


def _produce(_action: Action) -> Iterator[str]:
    yield call("appendInTransaction", _LOG, text("key"), text("value"))


def _end_transaction(action: Action) -> Iterator[str]:
    yield call("appendMarker", _LOG, MARKERS[str(action.args[1])])


def _truncate(action: Action) -> Iterator[str]:
    yield f"{_LOG}.truncateTo({action.args[0]})"


def _expire(_action: Action) -> Iterator[str]:
    yield call("passDay")


_STEPS: Mapping[str, Callable[[Action], Iterator[str]]] = MappingProxyType(
    {
        "Produce": _produce,
        "EndTransaction": _end_transaction,
        "Replicate": _replicate,
        "Restart": _restart,
        "Truncate": _truncate,
        "ExpireProducers": _expire,
    }
)
"""By action, how the test says it."""
