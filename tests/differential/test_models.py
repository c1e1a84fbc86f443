"""Some of the project's models: our search finds what TLC finds. All of them: `models.py`."""

from __future__ import annotations

import pytest

from conformance.modelcheck.manifest import find_models
from conformance.modelcheck.parser import Parser
from tests.differential.models import chosen, compare

pytestmark = pytest.mark.tlc

HOLDING = (
    "group/maximum-size-2m",
    "group/store-failure-2m",
    "replication/kip320-two-step-isr-coarse-3b",
    "replication/bench/truncate-on-fetch-fine-2b",
)
VIOLATED = (
    "group/boundary-fail-over-generation-2m",
    "group/mutant-instance-fence-2m",
    "replication/mutant-alter-partition-fence-fine-2b",
    "replication/mutant-truncation-fine-2b",
)


@pytest.fixture(scope="module")
def parser() -> Parser:
    shared = Parser()
    shared.announce(find_models([*HOLDING, *VIOLATED]))
    return shared


@pytest.mark.parametrize("name", HOLDING)
def test_a_model_that_holds_has_tlcs_states_and_transitions(name: str, parser: Parser) -> None:
    found = compare(find_models([name])[0], parser)
    assert found is not None
    assert found.differing == []
    assert found.tlc == found.ours
    assert found.tlc.states


@pytest.mark.parametrize("name", VIOLATED)
def test_a_violated_model_has_tlcs_formula_and_length(name: str, parser: Parser) -> None:
    found = compare(find_models([name])[0], parser)
    assert found is not None
    assert found.differing == []
    assert found.tlc.violations == found.ours.violations
    assert found.tlc.violations


def test_a_limit_leaves_out_what_holds_with_more_states() -> None:
    names = {model.name for model in chosen([], "nightly", 30_000)}
    assert "group/maximum-size-3m" in names
    assert "group/dynamic-3m" not in names
