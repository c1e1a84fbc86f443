"""Small histories for tests: lines to write, and the same facts gathered by plain loops.

`plain_facts` is the slow way to what `conformance.history.partition` does on columns. It knows of
no blocks, buckets or arrays.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from conformance.history.judgement import HistoryJudgement, judge_history
from conformance.history.reading import history_files
from conformance.history.rows import (
    COMMITTED,
    FETCHED,
    NO_OFFSET,
    OK,
    READ,
    SENT,
    UNKNOWN,
    order_of,
)
from conformance.history.rules import DeclaredConfiguration, HistoryFormulas
from conformance.history.situations import NEVER, HistoryFact
from conformance.workers import Here, Workers

Operation = Mapping[str, Any]
_OUTCOMES = {"ok": 0, "fail": 1, "info": 2}


def sent(process: str, *records: tuple[str, Any, int | None], **more: Any) -> Operation:
    """A send that was answered: (key, value, offset) each."""
    return _operation(process, "send", "sent", records, more)


def polled(process: str, *records: tuple[str, Any, int | None], **more: Any) -> Operation:
    """A poll: (key, value, offset) each."""
    return _operation(process, "poll", "polled", records, more)


def _operation(
    process: str, f: str, name: str, records: Sequence[tuple[str, Any, int | None]], more: Any
) -> Operation:
    items = [{"key": key, "value": value, "offset": offset} for key, value, offset in records]
    return {"process": process, "type": "ok", "f": f, name: items, **more}


@lru_cache
def formulas_of(configuration: DeclaredConfiguration) -> HistoryFormulas:
    """The specification is parsed once for all tests of a process."""
    return HistoryFormulas.of(configuration)


def judged(
    operations: Sequence[Operation],
    configuration: DeclaredConfiguration | None = None,
    workers: Workers | None = None,
) -> HistoryJudgement:
    """Write them to a file, and judge it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.ndjson")
        path.write_text("".join(json.dumps(op) + "\n" for op in operations), encoding="utf-8")
        return judge_history(
            history_files([path]),
            formulas_of(configuration or DeclaredConfiguration()),
            Path(folder),
            workers or Here(),
        )


def plain_facts(operations: Sequence[Operation]) -> list[HistoryFact]:
    """All facts of a history that was written as one file, each line an ended operation."""
    facts: list[HistoryFact] = []
    last_read: dict[tuple[str, str], HistoryFact | None] = {}
    last_committed: dict[tuple[str, str], HistoryFact] = {}
    last_sent: dict[tuple[str, str], tuple[HistoryFact, Any]] = {}
    assigned: dict[str, set[str] | None] = {}
    for line, operation in enumerate(operations, 1):
        process, outcome = str(operation["process"]), _OUTCOMES[operation["type"]]
        order = order_of(0, 0, line)
        for key in _begun_anew(operation, assigned, {key for _, key in last_read} | _KEYS):
            last_read.pop((process, key), None)
            last_committed.pop((process, key), None)
        base = HistoryFact(
            SENT, order, 0, process, "", None, NO_OFFSET, outcome, operation["f"] == "txn"
        )
        for place, record in enumerate(operation.get("sent") or ()):
            fact = _placed(replace(base, place=place), record)
            facts.append(_after_answer(fact, operation, last_sent))
        for place, record in enumerate(operation.get("polled") or ()):
            fact = _placed(replace(base, kind=READ, place=place), record)
            moved = fact.key in (operation.get("moved") or ())
            facts.append(_after_read(fact, last_read, moved=moved))
        for name, kind in (("committed", COMMITTED), ("fetched", FETCHED)):
            for place, record in enumerate(operation.get(name) or ()):
                fact = _placed(replace(base, kind=kind, place=place), {**record, "value": None})
                fact = _timed(fact, operation)
                facts.append(_after_commit(fact, last_read, last_committed))
    failing = {
        f.process for f in facts if f.kind == SENT and not f.transactional and f.outcome != OK
    }
    return [
        replace(f, renewed=None) if f.process in failing and not f.transactional else f
        for f in facts
    ]


_KEYS = {"p", "q"}


def _begun_anew(
    operation: Operation, assigned: dict[str, set[str] | None], keys: set[str]
) -> set[str]:
    process = str(operation["process"])
    anew: set[str] = set()
    if operation["f"] in {"close", "crash"}:
        anew, assigned[process] = set(keys), None
    if operation.get("assigned") is not None:
        now, before = set(operation["assigned"]), assigned.get(process)
        anew |= keys if before is None else before ^ now
        assigned[process] = now
    return anew | set(operation.get("moved") or ())


def _placed(fact: HistoryFact, record: Mapping[str, Any]) -> HistoryFact:
    value = None if record["value"] is None else str(record["value"])
    offset = NO_OFFSET if record["offset"] is None else record["offset"]
    return replace(fact, key=str(record["key"]), value=value, offset=offset)


def _after_answer(fact: HistoryFact, operation: Operation, last: dict[Any, Any]) -> HistoryFact:
    if fact.outcome != OK or fact.offset == NO_OFFSET:
        return fact
    before, ended = last.get((fact.process, fact.key), (None, None))
    start = operation.get("start")
    answered = before is not None and None not in (start, ended) and start >= ended
    same = before is not None and before.order == fact.order
    after = NO_OFFSET if before is None else before.offset
    within = same or not answered
    last[fact.process, fact.key] = (fact, operation.get("time"))
    return replace(fact, after=after, within=within)


def _after_read(
    fact: HistoryFact, last: dict[Any, HistoryFact | None], *, moved: bool
) -> HistoryFact:
    before = last.get((fact.process, fact.key))
    last[fact.process, fact.key] = fact
    if before is None:
        return fact
    same = before.order == fact.order
    if moved or (not same and before.outcome != OK):
        return replace(fact, within=same)
    return replace(fact, after=before.offset, within=same)


def _timed(fact: HistoryFact, operation: Operation) -> HistoryFact:
    start, end = operation.get("start"), operation.get("time")
    known = end is not None and fact.outcome != UNKNOWN
    return replace(fact, began=-NEVER if start is None else start, ended=end if known else NEVER)


def _after_commit(
    fact: HistoryFact, reads: dict[Any, HistoryFact | None], last: dict[Any, HistoryFact]
) -> HistoryFact:
    if fact.kind != COMMITTED:
        return fact
    read, before = reads.get((fact.process, fact.key)), last.get((fact.process, fact.key))
    if fact.outcome == OK:
        last[fact.process, fact.key] = fact
    return replace(
        fact,
        processed=NO_OFFSET if read is None else read.offset,
        after=NO_OFFSET if before is None else before.offset,
    )
