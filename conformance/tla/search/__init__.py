"""Search of a state space with the Python back end."""

from __future__ import annotations

from conformance.tla.search.breadth_first import (
    Counterexample,
    End,
    FalseAssumption,
    FormulaKind,
    FormulaResult,
    Limits,
    Problem,
    SearchError,
    SearchResult,
    Transitions,
    Verdict,
    problem_of,
    reachable_states,
    search,
)

__all__ = [
    "Counterexample",
    "End",
    "FalseAssumption",
    "FormulaKind",
    "FormulaResult",
    "Limits",
    "Problem",
    "SearchError",
    "SearchResult",
    "Transitions",
    "Verdict",
    "problem_of",
    "reachable_states",
    "search",
]
