"""The audit of few traces, in this process: the same judge as Spark's workers, without Spark.

Starting Spark takes longer than judging some thousand steps. What is asked of states and visits,
and which of them decides a trace, is as in `audit.judge` and `audit.scan`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.audit.coverage import ModelTable, covered_states, fired, vacuous
from conformance.audit.findings import Cause, Reporter, SpecView, divergence, lookup, name_of
from conformance.audit.result import STAGE, Accounting, AuditResult, TraceCoverage, Unjudged
from conformance.audit.rules import INIT, NEXT, Rulebook
from conformance.audit.verdicts import (
    Options,
    check_counts,
    dispute,
    finished,
    has_value,
    verdict_of,
)
from conformance.audit.visited import INITIAL, KEY
from conformance.audit.workers import Evaluator, bound_worker
from conformance.events import Emit, Finding, StageStarted, ignore
from conformance.files import space_for
from conformance.tla import collision_probability
from conformance.traces.model import End
from conformance.traces.states import FINGERPRINT
from conformance.traces.store import TraceStore

__all__ = ["audit_here", "is_small"]

MOST_STEPS = 400_000
"""Up to so many steps a store is judged without Spark: of so many it took less time than Spark did
even without its start, where walks share most transitions (`benchmarks/audit_here.py`); more were
not tried."""


def is_small(steps: int, master: str | None) -> bool:
    """Whether a store of so many steps is recorded and judged without Spark: not if the user names
    a master."""
    return master is None and steps <= MOST_STEPS


Visit = tuple[int, int, int]
"""Source, action code, target: the initial state has source 0 and the code `INITIAL`."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A trace as the store has it."""

    trace_id: int
    states: Sequence[int]
    actions: Sequence[int]
    end: str
    problem: str | None

    def visits(self) -> Iterator[Visit]:
        if self.states:
            yield 0, INITIAL, self.states[0]
        yield from zip(self.states, self.actions, self.states[1:], strict=False)


_LISTING = pa.schema(
    [
        ("suspect", pa.int64()),
        ("trace_id", pa.int64()),
        ("failed", pa.bool_()),
        ("step", pa.int32()),
        ("cause", pa.string()),
        ("source", pa.int64()),
        ("action", pa.int32()),
        ("target", pa.int64()),
        ("visits", pa.int64()),
        ("violations", pa.list_(pa.string())),
        ("doubts", pa.list_(pa.string())),
    ]
)
"""A listing's columns: what is there of a trace that a visit decided, or its divergence."""


@dataclass(slots=True)
class _Judged:
    """A visit with all that was said of it and of the state that it leads to."""

    ready: bool
    listed: bool
    disputed: bool
    violations: tuple[str, ...]
    doubts: tuple[str, ...]
    visits: int
    taken: int
    """The disjuncts that the step takes, as bits."""


@dataclass(slots=True)
class _Group:
    """The traces that one thing decides; `first` is the shortest."""

    failed: bool
    visit: Visit | None
    reason: str
    first: tuple[int, int]
    traces: int = 0


@dataclass(frozen=True, slots=True)
class _Decided:
    key: tuple[bool, Visit | None, str]
    step: int


def audit_here(
    store: TraceStore,
    rules: Rulebook,
    evaluator: Evaluator,
    *,
    model: ModelTable | None = None,
    spec: SpecView | None = None,
    options: Options | None = None,
    emit: Emit = ignore,
) -> AuditResult:
    """Judge every trace of a store whose files were verified, as `audit.engine.audit` does."""
    began, options = time.monotonic(), options or Options()
    emit(StageStarted(STAGE, str(store.path)))
    store.check_fingerprints()
    result = _Audit(store, rules, evaluator, model, spec, options).run()
    result = replace(result, seconds=time.monotonic() - began)
    finished(store, result, emit, compared=options.compared, where=", in this process")
    return result


@dataclass(slots=True)
class _Audit:
    store: TraceStore
    rules: Rulebook
    evaluator: Evaluator
    model: ModelTable | None
    spec: SpecView | None
    options: Options
    _rows: list[_Row] = field(default_factory=list)
    _visits: dict[Visit, _Judged] = field(default_factory=dict)

    def run(self) -> AuditResult:
        self._rows = list(_rows(self.store))
        steps = Counter(code for row in self._rows for code in row.actions)
        check_counts(self.store.manifest, len(self._rows), steps.total())
        of_states = self._states()
        self._visits = self._judge(of_states)
        decided = [(row.trace_id, one) for row in self._rows if (one := self._decided(row))]
        groups = self._groups(decided)
        self._list(decided)
        failed = sum(one.key[0] for _, one in decided)
        visits = self._visits
        transitions = [v for v in visits if v[1] != INITIAL]
        listed = sum(visits[v].listed for v in transitions)
        disputed = sum(one.disputed for one in visits.values())
        covered = self._coverage(steps, of_states, listed)
        accounting = Accounting(
            len(self._rows), len(self._rows) - len(decided), failed, len(decided) - failed
        )
        reasons = vacuous(
            len(self._rows), covered, self.options.optional_actions, self.options.compared
        )
        return AuditResult(
            verdict=verdict_of(accounting, disputed, reasons),
            accounting=accounting,
            steps=steps.total(),
            distinct_states=self.store.manifest.counts.states,
            distinct_transitions=len(transitions),
            table_transitions=listed,
            cross_checked=listed,
            disputed=disputed,
            coverage=covered,
            findings=(*([dispute(disputed)] if disputed else []), *self._findings(groups)),
            unjudged=self._unjudged(groups),
            vacuous=reasons,
            collision_probability=collision_probability(self.store.manifest.counts.states),
            seconds=0.0,
            scan_seconds=0.0,
            formula_seconds=0.0,
        )

    # --- formulas -----------------------------------------------------------------------------

    def _states(self) -> Mapping[int, tuple[list[str], list[str]]]:
        """Violations and doubts of every whole state."""
        prints = [
            value
            for path in self.store.files("states")
            for value in pq.read_table(path, columns=[FINGERPRINT])[FINGERPRINT].to_pylist()
        ]
        batch = pa.RecordBatch.from_arrays([pa.array(prints, pa.int64())], names=[FINGERPRINT])
        rows = bound_worker(self.evaluator).judge_states(batch).to_pylist()
        return {row[FINGERPRINT]: (row["violations"], row["doubts"]) for row in rows}

    def _judge(self, of_states: Mapping[int, tuple[list[str], list[str]]]) -> dict[Visit, _Judged]:
        distinct = Counter(visit for row in self._rows for visit in row.visits())
        visits = pa.table(
            {
                "source": pa.array([v[0] for v in distinct], pa.int64()),
                "action": pa.array([v[1] for v in distinct], pa.int32()),
                "target": pa.array([v[2] for v in distinct], pa.int64()),
                "visits": pa.array(list(distinct.values()), pa.int64()),
            }
        )
        listed = (self.model or ModelTable.empty()).rows(self.rules.initial)
        judged = judge_distinct(visits, self.evaluator, listed, anywhere=self.rules.anywhere)
        found: dict[Visit, _Judged] = {}
        for row in judged.to_pylist():
            visit = row["source"], row["action"], row["target"]
            more, doubts = of_states.get(visit[2], ([], []))
            found[visit] = _Judged(
                row["ready"],
                row["listed"],
                row["disputed"],
                (*row["violations"], *more),
                (*row["doubts"], *doubts),
                row["visits"],
                int(row["taken"], 16),
            )
        return found

    # --- traces -------------------------------------------------------------------------------

    def _groups(self, decided: Iterable[tuple[int, _Decided]]) -> list[_Group]:
        found: dict[tuple[bool, Visit | None, str], _Group] = {}
        for trace_id, one in decided:
            example = one.step, trace_id
            group = found.setdefault(one.key, _Group(*one.key, example))
            group.traces += 1
            group.first = min(group.first, example)
        return list(found.values())

    def _list(self, decided: Sequence[tuple[int, _Decided]]) -> None:
        """Write the traces that do not pass as `scan.outcomes` and `judge.suspects` have them."""
        if self.options.listing is None or not decided:
            return
        bad = sorted(visit for visit, one in self._visits.items() if one.violations or one.doubts)
        numbers = {visit: number for number, visit in enumerate(bad, 1)}
        rows = [self._listed_row(trace_id, one, numbers) for trace_id, one in decided]
        with space_for(self.options.listing):
            self.options.listing.mkdir(parents=True)
            table = pa.Table.from_pylist(rows, schema=_LISTING)
            pq.write_table(table, self.options.listing / "part-00000.parquet")

    def _listed_row(
        self, trace_id: int, one: _Decided, numbers: Mapping[Visit, int]
    ) -> dict[str, object]:
        failed, visit, cause = one.key
        row = {"trace_id": trace_id, "failed": failed, "step": one.step}
        if visit is None:
            return {**row, "suspect": 0, "cause": cause}
        judged = self._visits[visit]
        return {
            **row,
            "suspect": numbers[visit],
            **dict(zip(("source", "action", "target"), visit, strict=True)),
            "visits": judged.visits,
            "violations": judged.violations,
            "doubts": judged.doubts,
        }

    def _decided(self, row: _Row) -> _Decided | None:
        """What decides a trace: its first failing visit or its divergence, else its first doubt."""
        doubt: _Decided | None = None
        ended = _Decided(
            (row.end == End.DIVERGED.value, None, (row.problem or "").partition("\n")[0]),
            len(row.actions),
        )
        diverged = ended.key[0]
        for step, visit in enumerate(row.visits()):
            judged = self._visits[visit]
            if judged.violations and not (diverged and step == ended.step):
                return _Decided((True, visit, ""), step)
            if judged.doubts and doubt is None:
                doubt = _Decided((False, visit, ""), step)
        if diverged:
            return ended
        if row.problem is not None and (doubt is None or ended.step < doubt.step):
            return ended
        return doubt

    # --- what is said -------------------------------------------------------------------------

    def _findings(self, groups: Sequence[_Group]) -> tuple[Finding, ...]:
        options = self.options
        reporter = Reporter(
            self.store,
            self.rules,
            self.spec,
            options.reproduce,
            options.place,
            partial(name_of, self.store),
        )
        return reporter.findings([self._cause(group) for group in groups if group.failed])

    def _cause(self, group: _Group) -> Cause:
        step, trace_id = group.first
        trace = self.store.trace(trace_id)
        if group.visit is None:
            return divergence(trace, group.traces)
        source, code, target = group.visit
        states = lookup(self.store, [source, target])
        return Cause(
            group.traces,
            trace_id,
            step,
            self._visits[group.visit].violations,
            None if code == INITIAL else trace.steps[step - 1].action,
            states[source] if step else None,
            states[target],
        )

    def _unjudged(self, groups: Sequence[_Group]) -> tuple[Unjudged, ...]:
        merged: dict[str, Unjudged] = {}
        for group in sorted((g for g in groups if not g.failed), key=lambda g: g.first):
            step, trace_id = group.first
            reason = group.reason if group.visit is None else self._visits[group.visit].doubts[0]
            known = merged.get(reason)
            merged[reason] = (
                Unjudged(reason, group.traces, str(trace_id), step)
                if known is None
                else replace(known, traces=known.traces + group.traces)
            )
        return tuple(sorted(merged.values(), key=lambda one: (-one.traces, one.reason)))

    def _coverage(
        self,
        steps: Mapping[int, int],
        of_states: Mapping[int, tuple[list[str], list[str]]],
        listed: int,
    ) -> TraceCoverage:
        judged = {
            rule.name: sum(has_value(rule.name, doubts) for _, doubts in of_states.values())
            for rule in self.rules.invariants
        }
        ready = [one for v, one in self._visits.items() if v[1] != INITIAL and one.ready]
        judged |= {
            rule.name: sum(has_value(rule.name, one.doubts) for one in ready)
            for rule in self.rules.properties
        }
        model = self.model
        return TraceCoverage(
            fired=fired(self.store.actions, dict(steps)),
            judged=judged,
            model_states=None if model is None else len(model.states),
            covered_states=None if model is None else covered_states(self.store, model),
            model_transitions=None if model is None else len(model.source),
            covered_transitions=None if model is None else listed,
            branches=self._branches(),
        )

    def _branches(self) -> Mapping[str, int]:
        if self.spec is None:
            return {}
        taken: Counter[tuple[str, int]] = Counter()
        for (_, code, _), judged in self._visits.items():
            if judged.taken:
                taken[self.store.actions[code].name, judged.taken] += judged.visits
        return self.spec.branches(taken)


def judge_distinct(
    visits: pa.Table, evaluator: Evaluator, listed: pa.Table, *, anywhere: bool
) -> pa.Table:
    """The verdict on distinct visits, as `audit.judge.judge_visits` gives it, by this process.

    Every action is asked, also about the transitions that are listed.
    """
    there = np.zeros(len(visits), bool)
    numbered = visits.select(list(KEY)).append_column(
        "row", pa.array(range(len(visits)), pa.int64())
    )
    there[numbered.join(listed, list(KEY), join_type="left semi").column("row").to_numpy()] = True
    asked = visits.append_column("listed", pa.array(there)).append_column(
        "asked", pa.array(np.ones(len(visits), bool))
    )
    (batch,) = asked.combine_chunks().to_batches() or [_no_rows(asked.schema)]
    judged = pa.Table.from_batches([bound_worker(evaluator).judge_visits(batch)])
    seen = judged.select(["action", "listed", "ready", "illegal", "violations"]).to_pylist()
    violations = [[*_unlike(row, anywhere=anywhere), *row["violations"]] for row in seen]
    disputed = pc.and_(judged.column("listed"), judged.column("illegal"))
    at = judged.schema.get_field_index("violations")
    return (
        judged.set_column(at, "violations", pa.array(violations, pa.list_(pa.string())))
        .append_column("disputed", disputed)
        .drop_columns(["illegal"])
    )


def _unlike(row: Mapping[str, object], *, anywhere: bool) -> list[str]:
    if row["listed"]:
        return []
    if row["action"] == INITIAL:
        return [INIT] if row["ready"] and not anywhere else []
    return [NEXT] if row["illegal"] else []


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)


def _rows(store: TraceStore) -> Iterator[_Row]:
    names = ["trace_id", "states", "actions", "end", "problem"]
    for path in store.files("traces"):
        table = pq.read_table(path, columns=names, page_checksum_verification=True)
        for row in table.to_pylist():
            yield _Row(*(row[name] for name in names))
