"""Our successors against TLC's: the same states, labelled transitions and verdicts."""

from __future__ import annotations

import pytest

from tests.differential.tla.against_tlc import (
    CASES,
    differences,
    load_case,
    our_space,
    tlc_space,
)

pytestmark = pytest.mark.tlc


@pytest.mark.parametrize("case", CASES)
def test_our_search_finds_what_tlc_finds(case):
    spec = load_case(case)
    ours = our_space(case, spec)
    tlc = tlc_space(case, spec.variables)
    assert tlc.states
    assert differences(case, tlc, ours) == []


def test_there_are_enough_cases():
    assert len(CASES) >= 24
