"""TLC as the slow referee: it judges a sample of a store's traces, and the audit must agree.

The audit's word on a trace is its line in the listing of those that do not pass; the others pass.
Compared are the first bad step and the names of the formulas that are false there. TLC judges the
initial predicate, the actions and the invariants; action properties it checks on whole state
graphs only, so a trace is judged as far as the audit found nothing else first.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from conformance.events import Finding, JsonValue
from conformance.modelcheck.behaviours import (
    INIT,
    NEXT,
    BehaviourJudgement,
    IndexedBehaviour,
    TlcJudgements,
    judge_behaviours,
)
from conformance.modelcheck.prepare import PreparedModel
from conformance.modelcheck.tlc import Processes, TlcOptions
from conformance.printable import counted
from conformance.tla import Action, Tools
from conformance.traces.model import PartialState, TraceEnd, complete, is_complete
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict

STAGE = "referee"


class Agreement(Enum):
    """What the two judgements of a trace are to each other."""

    AGREED = "agreed"
    UNDECIDED = "undecided"
    """One of the two could not tell, and nothing speaks against the other."""
    DISAGREED = "disagreed"


@dataclass(frozen=True, slots=True)
class RefereeCase:
    """A trace as far as TLC can judge it, and what the audit said of it.

    An audit's judgement may lie behind the behaviour's end: what the audit found there is not for
    TLC to say, and it found nothing before.
    """

    trace_id: int
    behaviour: IndexedBehaviour
    audit: BehaviourJudgement


@dataclass(frozen=True, slots=True)
class RefereeResult:
    """What came of the comparison. `left_out` traces of the sample are partial."""

    agreed: int
    undecided: int
    disagreements: tuple[Finding, ...]
    """One for each trace."""
    left_out: int
    steps: int
    tlc_seconds: float
    """The start of its JVM included."""

    @property
    def traces(self) -> int:
        """How many traces were judged by both."""
        return self.agreed + self.undecided + len(self.disagreements)

    @property
    def verdict(self) -> Verdict:
        """ERROR for a disagreement: then a back end of kconform is wrong."""
        if self.disagreements:
            return Verdict.ERROR
        return Verdict.INCONCLUSIVE if self.undecided or not self.agreed else Verdict.PASS

    def figures(self) -> dict[str, JsonValue]:
        """The referee's part of the JSON report."""
        return {
            "traces": self.traces,
            "steps": self.steps,
            "agreed": self.agreed,
            "undecided": self.undecided,
            "left_out": self.left_out,
            "tlc_seconds": round(self.tlc_seconds, 3),
        }

    def summary(self) -> str:
        """One line."""
        text = f"TLC and the audit agree on {self.agreed:,} of {self.traces:,} traces"
        left_out = f"; {self.left_out:,} partial ones left out" if self.left_out else ""
        return f"{text}, {counted(self.steps, 'step')}{left_out}"


def referee(
    store: TraceStore,
    prepared: PreparedModel,
    listing: Path,
    *,
    count: int,
    seed: int,
    tools: Tools,
    options: TlcOptions,
) -> RefereeResult:
    """Have TLC judge `count` traces, evenly spaced, and up to a quarter more that do not pass.

    `listing` is the Parquet folder that the audit wrote; it is absent where all traces pass.
    """
    cases, left_out = sample(store, prepared, listing, count, seed)
    if not cases:
        return RefereeResult(0, 0, (), left_out, 0, 0.0)
    with Processes() as processes:
        behaviours = [case.behaviour for case in cases]
        judged = judge_behaviours(prepared, store.actions, behaviours, tools, options, processes)
    return compare(store, cases, judged, left_out)


# ---- the sample ----------------------------------------------------------------------------


def sample(
    store: TraceStore, prepared: PreparedModel, listing: Path, count: int, seed: int
) -> tuple[list[RefereeCase], int]:
    """The cases, and how many chosen traces were left out because they are partial."""
    rng = random.Random(seed)
    positions = _evenly(store.manifest.counts.traces, count, rng)
    failing = _failing(listing)
    more = {failing[place] for place in _evenly(len(failing), count // 4, rng)}
    traces = list(_recorded(store, positions, more))
    listed_traces = _listed(listing, [trace.trace_id for trace in traces])
    states = store.states({value for trace in traces for value in trace.states})
    judged = {INIT, NEXT, *prepared.model.check.invariants}
    cases = [
        _case(trace, listed_traces.get(trace.trace_id), store, states, judged) for trace in traces
    ]
    known = [case for case in cases if case is not None]
    return known, len(cases) - len(known)


def _evenly(total: int, count: int, rng: random.Random) -> list[int]:
    """`count` of the positions below `total`, one in each of as many equal parts."""
    if total <= count:
        return list(range(total))
    return [
        rng.randrange(part * total // count, (part + 1) * total // count) for part in range(count)
    ]


def _failing(listing: Path) -> list[int]:
    """The numbers of the traces that do not pass, sorted: Spark lists them in any order."""
    if not listing.exists():
        return []
    numbers = ds.dataset(listing).to_table(columns=["trace_id"]).column("trace_id")
    sorted_numbers: list[int] = numbers.to_numpy().tolist()
    return sorted(sorted_numbers)


@dataclass(frozen=True, slots=True)
class _ListedTrace:
    """The audit's line on a trace that does not pass; suspect 0: it diverged or has a problem."""

    failed: bool
    step: int
    suspect: int
    violations: tuple[str, ...]
    doubts: tuple[str, ...]


def _listed(listing: Path, numbers: Sequence[int]) -> dict[int, _ListedTrace]:
    if not listing.exists():
        return {}
    columns = ["trace_id", "failed", "step", "suspect", "violations", "doubts"]
    chosen = ds.field("trace_id").isin(list(numbers))
    return {
        row["trace_id"]: _ListedTrace(
            row["failed"],
            row["step"],
            row["suspect"],
            tuple(row["violations"] or ()),
            tuple(row["doubts"] or ()),
        )
        for row in ds.dataset(listing).to_table(columns=columns, filter=chosen).to_pylist()
    }


@dataclass(frozen=True, slots=True)
class _TraceRow:
    """A row of the store's traces."""

    trace_id: int
    states: tuple[int, ...]
    actions: tuple[int, ...]
    end: str
    problem: str | None


def _recorded(
    store: TraceStore, positions: Sequence[int], numbers: set[int]
) -> Iterator[_TraceRow]:
    """The traces at these positions of the store and those of these numbers, in its order."""
    wanted, first = set(positions), 0
    columns = ["trace_id", "states", "actions", "end", "problem"]
    for path in store.files("traces"):
        rows = pq.read_table(path, columns=columns, page_checksum_verification=True)
        named = pc.is_in(rows.column("trace_id"), value_set=pa.array(sorted(numbers)))
        inside = {place - first for place in wanted if first <= place < first + len(rows)}
        inside |= set(pc.indices_nonzero(named).to_pylist())
        for row in rows.take(pa.array(sorted(inside), pa.int64())).to_pylist():
            yield _TraceRow(
                row["trace_id"],
                tuple(row["states"]),
                tuple(row["actions"]),
                row["end"],
                row["problem"],
            )
        first += len(rows)


def _case(
    trace: _TraceRow,
    listed: _ListedTrace | None,
    store: TraceStore,
    states: Mapping[int, PartialState],
    judged: set[str],
) -> RefereeCase | None:
    """None for a trace of which TLC could judge nothing, or not what the audit judged."""
    diverged = trace.end == TraceEnd.DIVERGED.value
    if trace.problem is not None and not diverged:
        return None
    length, audit = _audits_word(listed, judged, len(trace.states))
    path = [states.get(value, (None,)) for value in trace.states[:length]]
    if not path or not all(map(is_complete, path)):
        return None
    codes = trace.actions[: len(path) - 1]
    if not all(0 <= code < len(store.actions) for code in codes):
        return None
    return RefereeCase(trace.trace_id, IndexedBehaviour(tuple(map(complete, path)), codes), audit)


def _audits_word(
    listed: _ListedTrace | None, judged: set[str], length: int
) -> tuple[int, BehaviourJudgement]:
    """How many states the two have to agree on, and what the audit said."""
    if listed is None:
        return length, BehaviourJudgement()
    step, false = listed.step, tuple(sorted(set(listed.violations) & judged))
    if not listed.suspect:
        return step, BehaviourJudgement(step, ("step equality",))
    if not listed.failed:
        return length, BehaviourJudgement(step, (), "; ".join(listed.doubts))
    if not false:
        return step + 1, BehaviourJudgement(step + 1, listed.violations)
    return length, BehaviourJudgement(step, false)


# ---- the comparison ------------------------------------------------------------------------


def agreement(audit: BehaviourJudgement, tlc: BehaviourJudgement | None, length: int) -> Agreement:
    """Compare two judgements of a behaviour of `length` states; None: TLC has none.

    Nothing can be said from the step on at which one of them found no value. But a trace that
    passes has a value everywhere.
    """
    if tlc is None:
        return Agreement.UNDECIDED
    unclear = [
        judgement.step
        for judgement in (audit, tlc)
        if judgement.undefined and judgement.step is not None
    ]
    limit = min([length, *unclear])
    if _found(audit, limit) != _found(tlc, limit):
        return Agreement.DISAGREED
    if not unclear or (audit.undefined and tlc.undefined and audit.step == tlc.step):
        return Agreement.AGREED
    return Agreement.DISAGREED if audit.step is None else Agreement.UNDECIDED


def _found(judgement: BehaviourJudgement, limit: int) -> tuple[int, tuple[str, ...]] | None:
    step = judgement.step
    return (
        (step, judgement.false) if judgement.false and step is not None and step < limit else None
    )


def compare(
    store: TraceStore, cases: Sequence[RefereeCase], judged: TlcJudgements, left_out: int = 0
) -> RefereeResult:
    """Count the agreements; a finding for each disagreement."""
    counts = dict.fromkeys(Agreement, 0)
    findings: list[Finding] = []
    for case, tlc in zip(cases, judged.judgements, strict=True):
        kind = agreement(case.audit, tlc, len(case.behaviour.states))
        counts[kind] += 1
        if kind is Agreement.DISAGREED and tlc is not None:
            findings.append(_disagreement(store, case, tlc))
    return RefereeResult(
        counts[Agreement.AGREED],
        counts[Agreement.UNDECIDED],
        tuple(findings),
        left_out,
        judged.steps,
        judged.seconds,
    )


def _disagreement(store: TraceStore, case: RefereeCase, tlc: BehaviourJudgement) -> Finding:
    step = min(judgement.step for judgement in (case.audit, tlc) if judgement.step is not None)
    action = _action(store.actions, case.behaviour, step)
    return Finding(
        key=f"{STAGE}-{case.audit.false}-{tlc.false}-{action.partition('(')[0]}",
        title="TLC and the audit disagree",
        stage=STAGE,
        message=(
            f"Of trace {case.trace_id} the audit says: {case.audit}. TLC says: {tlc}. One of "
            "kconform's two back ends is wrong, so the audit's other verdicts prove nothing "
            "either. Please report it, with the spec and the store."
        ),
        trace=str(case.trace_id),
        step=step,
        action=action,
        formula=", ".join(sorted({*case.audit.false, *tlc.false})),
        reproduce=f"kconform replay --store {store.path} --trace {case.trace_id}",
    )


def _action(actions: Sequence[Action], behaviour: IndexedBehaviour, step: int) -> str:
    inside = 0 < step <= len(behaviour.actions)
    return str(actions[behaviour.actions[step - 1]]) if inside else ""
