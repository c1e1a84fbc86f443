"""Operators of the community modules have the values that TLC's own code for them gives."""

from __future__ import annotations

import re

import pytest

from conformance.errors import SpecError
from conformance.tla import COMMUNITY_MODULES, Spec, find_tools
from tests.differential.tla import community, formulas

pytestmark = pytest.mark.tlc
TABLE = formulas.read(community.TABLE)
MODULES = (
    "BagsExt",
    "Bitwise",
    "FiniteSetsExt",
    "Folds",
    "Functions",
    "SequencesExt",
    "UndirectedGraphs",
)
OF_OLDER_RELEASES = {"FiniteSetsExt": {"Product", "Sum"}, "Functions": {"IsSurjective"}}
"""Names that the community modules no longer have."""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return community.bound(tmp_path_factory.mktemp("community"), [text for _, text in TABLE])


@pytest.mark.parametrize("index", range(len(TABLE)), ids=[text for _, text in TABLE])
def test_an_operator_has_the_value_that_tlcs_own_code_gives_it(index: int, spec: Spec) -> None:
    (state,) = spec.initial_states()
    said, _ = TABLE[index]
    formula = spec.state_formula(formulas.name(index))
    if said == "error":
        with pytest.raises(SpecError):
            formula(state)
    else:
        assert formula(state) == (said == "pass")


def test_tlc_finds_the_same_with_our_definitions() -> None:
    texts = [text for said, text in TABLE if said == "pass"]
    assert community.outcome(texts, find_tools(), ()) == "pass"


@pytest.mark.parametrize("module", MODULES)
def test_every_operator_of_a_module_is_in_the_table(module: str) -> None:
    text = (COMMUNITY_MODULES / f"{module}.tla").read_text()
    names = set(re.findall(r"^(\w+)(?:\(.*\))? ==", text, re.MULTILINE))
    assert names, module
    words = {word for _, line in TABLE for word in re.findall(r"\w+", line)}
    assert names - words == OF_OLDER_RELEASES.get(module, set())
