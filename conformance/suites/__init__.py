"""Test suites from a state graph: transition cover, random walks, situations.

Knows graphs and nothing of any protocol.
"""

from __future__ import annotations

from conformance.suites.coverage import Coverage, coverage
from conformance.suites.greedy import greedy_cover
from conformance.suites.postman import transition_cover
from conformance.suites.situations import Situations, situations
from conformance.suites.suite import Suite, Test, load_suite, save_suite
from conformance.suites.walks import random_walks

__all__ = [
    "Coverage",
    "Situations",
    "Suite",
    "Test",
    "coverage",
    "greedy_cover",
    "load_suite",
    "random_walks",
    "save_suite",
    "situations",
    "transition_cover",
]
