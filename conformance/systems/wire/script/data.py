"""A finding on the data path, as requests to the leader of a new partition and what is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from conformance.systems.shared.departing import fn
from conformance.systems.wire.script.called import CalledScript, python
from conformance.tla import Fn

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


class DataScript(CalledScript):
    """Of one partition on the data path."""

    template = "data.py.txt"
    receiver = "partition"
    methods = _METHODS

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        yield from self._answer()
        yield from self._bounds()

    def _differing(self, variable: str) -> Iterator[tuple[Fn, Fn]]:
        for name, expected, actual in self.scene.differing():
            if name == variable:
                yield fn(expected), fn(actual)

    def _answer(self) -> Iterator[str]:
        for wanted, seen in self._differing("answer"):
            for field in _FIELDS:
                if wanted[field] != seen[field]:
                    yield f'assert answer["{field}"] == {python(wanted[field])}, answer'

    def _bounds(self) -> Iterator[str]:
        for wanted, seen in self._differing("visible"):
            for field in _BOUNDS:
                if wanted[field] != seen[field]:
                    asked = f"partition.{field}()"
                    yield f"assert {asked} == {python(wanted[field])}, {asked}"
