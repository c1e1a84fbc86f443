"""The actions and disjuncts of each protocol that a run has exercised, and those it has not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.events import JsonValue
from conformance.report.collect import Report
from conformance.report.counts import SpecCounts, counts
from conformance.verdict import Verdict

_NAMED = 8
"""The number of actions that a line names; the JSON report has all."""


def exercised_lines(report: Report) -> Iterator[str]:
    """A line for each specification of which something was not taken.

    A run that failed has none: what is missing there may be a consequence.
    """
    if report.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return
    for spec in counts(report):
        missing = list(_missing(spec))
        if missing:
            yield f"not exercised of {spec.spec}: {'; '.join(missing)}"


def _missing(spec: SpecCounts) -> Iterator[str]:
    if spec.never:
        yield f"{len(spec.never)} of {len(spec.actions)} actions ({_named(spec.never)})"
    if spec.never_taken:
        yield f"{spec.never_taken} of {spec.disjuncts} disjuncts of the actions"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    rest = len(names) - _NAMED
    return f"{shown}, and {rest} more" if rest > 0 else shown


def exercised_json(report: Report) -> dict[str, JsonValue]:
    """The exercised and the missing actions by specification; empty if no steps were counted."""
    return {spec.spec: _object(spec) for spec in counts(report)}


def _object(spec: SpecCounts) -> dict[str, JsonValue]:
    disjuncts = [count for module in spec.modules for _, count in module.disjuncts]
    return {
        "actions": len(spec.actions) - len(spec.never),
        "all_actions": len(spec.actions),
        "actions_not_taken": list(spec.never),
        "disjuncts": spec.disjuncts - spec.never_taken,
        "all_disjuncts": spec.disjuncts,
        "disjuncts_not_taken": [count.name for count in disjuncts if not count.total],
    }
