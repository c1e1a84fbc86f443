"""The page that says what is supported says what the code supports."""

from __future__ import annotations

import re

from conformance.tla import BUILTINS, COMMUNITY_MODULES
from tests.unit.tla.support_page import PYTHON, SPARK, TABLE, grouped, table


def test_the_table_is_the_codes():
    assert TABLE.shown() == table(), "run python -m tests.unit.tla.support_page"


def test_the_table_shows_every_operator_once():
    assert sorted(grouped()) == sorted(BUILTINS)


def test_no_back_end_claims_what_the_language_lacks():
    assert PYTHON <= BUILTINS
    assert SPARK <= BUILTINS


def test_every_operator_of_our_modules_is_on_the_page():
    page = TABLE.text()
    for module in COMMUNITY_MODULES.glob("*.tla"):
        names = re.findall(r"^(\w+)(?:\(.*?\))? *==", module.read_text(), re.MULTILINE)
        assert names
        section = page.partition(f"`{module.stem}`")[2].partition("\n")[0]
        missing = {name for name in names if f"`{name}`" not in section}
        assert not missing, f"{module.stem}: {missing}"
