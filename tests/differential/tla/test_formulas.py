"""Small formulas have the value that TLC gives them, or none where TLC finds none."""

from __future__ import annotations

import pytest

from conformance.errors import SpecError
from tests.differential.tla import formulas

pytestmark = pytest.mark.tlc
TABLE = formulas.read()


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return formulas.bound(tmp_path_factory.mktemp("formulas"), [text for _, text in TABLE])


@pytest.mark.parametrize("index", range(len(TABLE)), ids=[text for _, text in TABLE])
def test_a_formula_has_the_value_that_tlc_gives_it(index, spec):
    (state,) = spec.initial_states()
    said, _ = TABLE[index]
    formula = spec.state_formula(formulas.name(index))
    if said == "error":
        with pytest.raises(SpecError):
            formula(state)
    else:
        assert formula(state) == (said == "pass")


def test_tlc_says_so_of_some():
    some = [text for said, text in TABLE if said == "pass"][::10]
    assert formulas.tlc_outcome(some) == "pass"
