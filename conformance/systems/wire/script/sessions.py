"""A finding on fetch sessions, as what one client fetches of a new topic and what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from conformance.systems.shared.departing import fn
from conformance.systems.wire.script.called import CalledScript, python
from conformance.tla import Fn, Value

_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "Produce": "produce",
        "DeleteRecords": "delete_records",
        "FetchFull": "fetch_full",
        "FetchSessionless": "fetch_sessionless",
        "FetchIncremental": "fetch_incremental",
    }
)
"""By action, the template's method; the arguments are the action's."""
_FIELDS = ("error", "end", "start", "records")
"""Of a partition in an answer."""


class SessionScript(CalledScript):
    """Of one client's fetch session."""

    template = "sessions.py.txt"
    receiver = "sessions"
    methods = _METHODS

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to the model."""
        numbers = re.findall(r"\d+", self.constants.get("Partitions", ""))
        return {"partitions": str(len(numbers))}

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "answer":
                yield from _asserted(fn(expected), fn(actual))


def _asserted(wanted: Fn, seen: Fn) -> Iterator[str]:
    if wanted["error"] != seen["error"]:
        yield f'assert answer["error"] == {python(wanted["error"])}, answer'
    if wanted["isOpen"] != seen["isOpen"]:
        is_open = "!=" if wanted["isOpen"] else "=="
        yield f'assert answer["session"] {is_open} NO_SESSION, answer'
    if wanted["partitions"] != seen["partitions"]:
        yield f'assert answer["partitions"] == {_partitions(wanted["partitions"])}, answer'


def _partitions(reads: Value) -> str:
    assert isinstance(reads, frozenset), "TypeOK of the specification"
    ordered = sorted((fn(read) for read in reads), key=lambda read: str(read["partition"]))
    return "{" + ", ".join(f"{read['partition']}: {_fields(read)}" for read in ordered) + "}"


def _fields(read: Fn) -> str:
    return "{" + ", ".join(f'"{field}": {python(read[field])}' for field in _FIELDS) + "}"
