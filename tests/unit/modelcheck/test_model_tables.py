"""The pages about the models say of each model what its manifest says."""

from __future__ import annotations

import pytest

from tests.unit.modelcheck.model_tables import FAMILIES, described, shown


@pytest.mark.parametrize("family", FAMILIES)
def test_every_model_stands_in_one_table_with_what_its_manifest_says(family: str) -> None:
    advice = "run python -m tests.unit.modelcheck.model_tables, and add rows of new models"

    assert sorted(shown(family)) == sorted(described(family).items()), advice
