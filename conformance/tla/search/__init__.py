"""Search of a state space with the Python back end."""

from __future__ import annotations

from conformance.tla.search.breadth_first import (
    Counterexample,
    FalseAssumption,
    FormulaKind,
    FormulaResult,
    SearchEnd,
    SearchError,
    SearchLimits,
    SearchProblem,
    SearchResult,
    SearchVerdict,
    Transitions,
    problem_of,
    reachable_states,
    search,
)

__all__ = [
    "Counterexample",
    "FalseAssumption",
    "FormulaKind",
    "FormulaResult",
    "SearchEnd",
    "SearchError",
    "SearchLimits",
    "SearchProblem",
    "SearchResult",
    "SearchVerdict",
    "Transitions",
    "problem_of",
    "reachable_states",
    "search",
]
