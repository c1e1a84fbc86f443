"""How an audit is run, and what follows from its counts, with Spark or without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.audit.result import STAGE, Accounting, AuditResult
from conformance.compared import ComparedStates
from conformance.errors import DataError
from conformance.events import Emit, Finding, StageFinished
from conformance.printable import counted
from conformance.traces.manifest import Manifest
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict


def _reproduce_nothing(_trace: int) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Options:
    """How an audit is run."""

    cross_check: int = 2000
    """About so many transitions of the model's table are asked of the formula too."""
    max_causes: int = 500
    """At most so many distinct causes are brought to the driver, those of most traces first."""
    sql: bool | None = None
    """Whether Spark SQL judges on Spark's workers; None: where it was measured to be faster."""
    optional_actions: Sequence[str] = ()
    """Actions that may never fire without making a pass vacuous."""
    compared: ComparedStates | None = None
    """What was compared when the system was driven; None of traces that were not driven."""
    listing: Path | None = None
    """Where to write every trace that does not pass (Parquet), if anywhere."""
    reproduce: Callable[[int], str] = _reproduce_nothing
    """The command that shows a trace again."""
    place: Callable[[str], str] = str
    """The file, line and column of a `Module:line:column`."""


def check_counts(manifest: Manifest, traces: int, steps: int) -> None:
    """DataError unless the files hold as many traces and steps as the manifest says."""
    counts = manifest.counts
    if (traces, steps) != (counts.traces, counts.steps):
        raise DataError(
            f"The manifest counts {counted(counts.traces, 'trace')} and "
            f"{counted(counts.steps, 'step')}, the files hold {traces} and {steps}. "
            "The store was changed after it was written: record it again."
        )


def dispute(count: int) -> Finding:
    """The finding that kconform contradicts itself."""
    return Finding(
        key=f"{STAGE}-table-and-formula",
        title="The model's transition table and the action's formula disagree",
        stage=STAGE,
        message=(
            f"{count} transitions that TLC lists are not allowed by the compiled formula. One of "
            "the two is wrong, so this audit proves nothing: check that the state graph is of "
            "this text of the spec, and report it as a bug of kconform if it is."
        ),
        count=count,
    )


def different_answers(answers: Sequence[str]) -> Finding:
    """The finding that the two evaluators contradict each other."""
    shown = "; ".join(answers[:_SHOWN])
    rest = f"; and {len(answers) - _SHOWN} others" if len(answers) > _SHOWN else ""
    return Finding(
        key=f"{STAGE}-sql-and-python",
        title="Spark SQL and the Python evaluator disagree",
        stage=STAGE,
        message=(
            f"The two evaluators have different answers: {shown}{rest}. One of the two is wrong, "
            "so this audit proves nothing. Report it as a bug of kconform."
        ),
        count=len(answers),
    )


_SHOWN = 5


def more_causes(traces: int, shown: int) -> Finding:
    """The finding that stands for causes beyond those that are analysed."""
    return Finding(
        key=f"{STAGE}-more-causes",
        title="More traces fail at other steps",
        stage=STAGE,
        message=(
            f"{counted(traces, 'trace')} fail for causes beyond the {shown} that are analysed. "
            "Mend what is found and audit again, or have all failing traces listed."
        ),
        count=traces,
    )


def finished(
    store: TraceStore,
    result: AuditResult,
    emit: Emit,
    *,
    compared: ComparedStates | None,
    where: str = "",
) -> None:
    """Tell the findings of an audit, and that it has ended."""
    for finding in result.findings:
        emit(finding)
    summary = f"{counted(result.accounting.traces, 'trace')}, {counted(result.steps, 'step')}"
    if compared is not None:
        summary += f", {compared.summary()}"
    emit(
        StageFinished(
            STAGE,
            str(store.path),
            result.verdict,
            result.seconds,
            summary + where,
            result.figures() | ({} if compared is None else {"compared": compared.figures()}),
            fault=bool(result.disputed),
        )
    )


def verdict_of(accounting: Accounting, disputed: int, reasons: Sequence[str]) -> Verdict:
    """The verdict of an audit."""
    if accounting.failed:
        return Verdict.FAIL
    if disputed:
        return Verdict.ERROR
    if accounting.inconclusive or reasons:
        return Verdict.INCONCLUSIVE
    return Verdict.PASS


def has_value(formula: str, doubts: Sequence[str]) -> bool:
    """Whether none of these doubts is that the formula has no value."""
    return not any(doubt.startswith(f"{formula}: ") for doubt in doubts)
