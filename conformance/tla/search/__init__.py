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
from conformance.tla.search.pairs import (
    Distinction,
    ObservedProblem,
    PairResult,
    PairSide,
    compare,
)

__all__ = [
    "Counterexample",
    "Distinction",
    "FalseAssumption",
    "FormulaKind",
    "FormulaResult",
    "ObservedProblem",
    "PairResult",
    "PairSide",
    "SearchEnd",
    "SearchError",
    "SearchLimits",
    "SearchProblem",
    "SearchResult",
    "SearchVerdict",
    "Transitions",
    "compare",
    "problem_of",
    "reachable_states",
    "search",
]
