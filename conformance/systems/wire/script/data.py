"""A finding on the data path, as requests to the leader of a new partition and what is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group import words
from conformance.tla import Action, Fn, Value

_TAKEN = "TakeAnswer"
"""A client goes on once it has its answer."""
_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "Produce": "produce",
        "ProduceInTransaction": "produce_in_transaction",
        "EndTransaction": "end_transaction",
        "DeleteRecords": "delete_records",
        "Fetch": "fetch",
        "ListOffsets": "list_offsets",
        "OffsetForLeaderEpoch": "offset_for_leader_epoch",
    }
)
"""By action, the template's method; the arguments are the action's."""
_FIELDS = ("error", "offset", "time", "records")
"""Of an answer, what is asserted."""
_BOUNDS = ("start", "end")
"""Of the log."""


@dataclass(frozen=True, slots=True)
class DataScript:
    """The lines of a script."""

    template = "data.py.txt"
    scene: DepartingPath

    @classmethod
    def of(cls, behaviour: Behaviour, _constants: Mapping[str, str]) -> DataScript:
        """Of a divergence. Unsayable if the behaviour is none."""
        return cls(DepartingPath(behaviour))

    @property
    def placeholders(self) -> Mapping[str, str]:
        """None: a partition is as the template has it."""
        return {}

    def lines(self) -> Iterator[str]:
        """Given, when, then. Unsayable if nothing of what differs is asked for."""
        last = len(self.scene) - 1
        for number in range(1, last):
            yield from self._step(self.scene.action(number))
        steps = list(self._step(self.scene.action(last), "answer = "))
        asserted = [line for say in (self._answer, self._bounds) for line in say()]
        if not asserted:
            names = ", ".join(sorted(name for name, _, _ in self.scene.differing()))
            raise Unsayable(f"no request asks for what differs at its end: {names}")
        yield from ("", "# when", *steps, "", "# then", *asserted)

    @staticmethod
    def _step(action: Action, before: str = "") -> Iterator[str]:
        if action.name == _TAKEN:
            return
        method = _METHODS.get(action.name)
        if method is None:
            raise Unsayable(f"it has no words for the step {action}")
        yield before + words.call(f"partition.{method}", *map(_python, action.args))

    # ---- the end -----------------------------------------------------------------------------

    def _differing(self, variable: str) -> Iterator[tuple[Fn, Fn]]:
        for name, expected, actual in self.scene.differing():
            if name == variable:
                yield fn(expected), fn(actual)

    def _answer(self) -> Iterator[str]:
        for wanted, seen in self._differing("answer"):
            for field in _FIELDS:
                if wanted[field] != seen[field]:
                    yield f'assert answer["{field}"] == {_python(wanted[field])}, answer'

    def _bounds(self) -> Iterator[str]:
        for wanted, seen in self._differing("visible"):
            for field in _BOUNDS:
                if wanted[field] != seen[field]:
                    asked = f"partition.{field}()"
                    yield f"assert {asked} == {_python(wanted[field])}, {asked}"


def _python(value: Value) -> str:
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(_python, value))) + "}" if value else "set()"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_python, value)) + "]"
    return words.text(value) if isinstance(value, str) else str(value)
