"""What an audit says: accounting, coverage and findings, typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from conformance.audit.choice import EvaluatorChoice
from conformance.events import Finding, JsonValue
from conformance.printable import counted
from conformance.verdict import Verdict

STAGE = "audit"


@dataclass(frozen=True, slots=True)
class Accounting:
    """Every trace that came in is in exactly one of the three."""

    traces: int
    passed: int
    failed: int
    inconclusive: int

    def __post_init__(self) -> None:
        """The sum must be right; that it is not would be a bug of the audit."""
        parts = (self.passed, self.failed, self.inconclusive)
        if min(parts) < 0 or sum(parts) != self.traces:
            raise AssertionError(f"{self.traces} traces came in, but {parts} came out")


@dataclass(frozen=True, slots=True)
class TraceCoverage:
    """What the traces exercised. Model figures are None where no state graph was given.

    `fired` counts the steps of each action of the dictionary; `judged` the distinct states
    (for an action property: transitions) on which a formula had a value; `branches` the steps
    that took each disjunct of an action, by its `conformance.modelcheck.branches.key`.
    """

    fired: Mapping[str, int]
    judged: Mapping[str, int]
    model_states: int | None = None
    covered_states: int | None = None
    model_transitions: int | None = None
    covered_transitions: int | None = None
    branches: Mapping[str, int] = field(default_factory=dict)

    @property
    def never_fired(self) -> tuple[str, ...]:
        """The names of the spec's actions of which no instance occurs."""
        names: dict[str, int] = {}
        for action, count in self.fired.items():
            name = action.partition("(")[0]
            names[name] = names.get(name, 0) + count
        return tuple(name for name, count in names.items() if not count)

    @property
    def never_judged(self) -> tuple[str, ...]:
        """The formulas that had a value nowhere."""
        return tuple(name for name, count in self.judged.items() if not count)


@dataclass(frozen=True, slots=True)
class UnjudgedTraces:
    """A reason for which traces are inconclusive, with one of them."""

    reason: str
    traces: int
    trace: str
    step: int | None

    def __str__(self) -> str:
        """A line for the terminal."""
        where = f" at step {self.step}" if self.step else ""
        first = f"trace {self.trace}" if self.traces == 1 else f"the first is trace {self.trace}"
        count = "" if self.traces == 1 else f"{counted(self.traces, 'trace')}, "
        return f"{count}{first}{where} inconclusive: {' '.join(self.reason.split())}"


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The audit of one store."""

    verdict: Verdict
    accounting: Accounting
    steps: int
    distinct_states: int
    distinct_transitions: int
    table_transitions: int
    """Distinct transitions that the model's table knew; the formulas decided the others."""
    cross_checked: int
    """Transitions on which table and formula were compared."""
    disputed: int
    """Those on which the two disagree, and answers of Spark SQL with which Python disagrees: a
    fault of kconform, whatever the traces show."""
    coverage: TraceCoverage
    findings: tuple[Finding, ...]
    unjudged: tuple[UnjudgedTraces, ...]
    vacuous: tuple[str, ...]
    """Why a pass would mean nothing; a pass has none."""
    collision_probability: float
    """That two distinct states of the store share a fingerprint, so that one was never seen."""
    seconds: float
    scan_seconds: float
    formula_seconds: float
    choices: tuple[EvaluatorChoice, ...] = ()
    """On Spark: which evaluator judged what, and why."""

    def figures(self) -> dict[str, JsonValue]:
        """The audit's part of the JSON report."""
        accounting, coverage = self.accounting, self.coverage
        return {
            "traces": {
                "in": accounting.traces,
                "pass": accounting.passed,
                "fail": accounting.failed,
                "inconclusive": accounting.inconclusive,
            },
            "steps": self.steps,
            "distinct_states": self.distinct_states,
            "distinct_transitions": self.distinct_transitions,
            "table_transitions": self.table_transitions,
            "cross_checked": self.cross_checked,
            "disputed": self.disputed,
            "covered_states": coverage.covered_states,
            "model_states": coverage.model_states,
            "covered_transitions": coverage.covered_transitions,
            "model_transitions": coverage.model_transitions,
            "actions_fired": dict(coverage.fired),
            "formulas_judged": dict(coverage.judged),
            "branches": dict(coverage.branches),
            "collision_probability": self.collision_probability,
            "vacuous": list(self.vacuous),
            "unjudged": [
                {
                    "reason": traces.reason,
                    "traces": traces.traces,
                    "trace": traces.trace,
                    "step": traces.step,
                }
                for traces in self.unjudged
            ],
            "evaluators": [choice.figures() for choice in self.choices],
            "seconds": round(self.seconds, 3),
            "scan_seconds": round(self.scan_seconds, 3),
            "formula_seconds": round(self.formula_seconds, 3),
            "findings": len(self.findings),
        }


def unjudged_lines(result: AuditResult, most: int = 10) -> Iterator[str]:
    """Why traces are inconclusive, for the terminal: most traces first."""
    for traces in result.unjudged[:most]:
        yield f"  ? {traces}"
    if len(result.unjudged) > most:
        yield f"  ? and {len(result.unjudged) - most} other reasons; --json lists them"
