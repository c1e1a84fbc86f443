"""Which mutants are drawn from, and why the others are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.bugs.covered import (
    METRIC,
    NO_FUNCTION,
    NOT_ENTERED,
    CoveredModule,
    CoveredStatements,
    read_below,
)
from conformance.bugs.mutants import draw, mutants_of
from conformance.bugs.scope import files_of
from conformance.errors import UserError
from conformance.registry import BUILT_IN
from conformance.resources import resource_root

TEXT = """\
LIMIT = 3


class Log:
    size = 1

    def append(self, n=5):
        '''Text.'''
        self.meter.mark(7)
        if n > LIMIT:
            self.size = n

        def later():
            return n + 1

        return later

    def never(self):
        return self.size - 1
"""


def covered(*reached: int) -> CoveredStatements:
    """Of the module `a`, where the statements of these lines are reached; `b` is below."""
    mutants = mutants_of("a.py", TEXT)
    statements = {one.statement for one in mutants if one.line in reached}
    return CoveredStatements({"a.py": CoveredModule(TEXT)}, {"a.py": statements}, {"b.py": "bytes"})


def test_each_mutant_that_is_set_aside_has_one_reason() -> None:
    found = {(one.line, covered(10).set_aside(one)) for one in mutants_of("a.py", TEXT)}
    assert found == {
        (1, NO_FUNCTION),
        (5, NO_FUNCTION),
        (7, NO_FUNCTION),
        (9, METRIC),
        (10, ""),
        (11, ""),  # not reached, but of a function that is entered: a gap of the models
        (14, NOT_ENTERED),
        (19, NOT_ENTERED),
    }


COUNTS = """\
class Log:
    def append(self, n):
        if n > 3:
            self.meter.mark(n)
        if n > 4:
            self.meter.mark(n)
        else:
            self.size = n
        if n > 5:
            if n > 6:
                self.sensor.record(n)
"""


def test_a_condition_of_nothing_but_counting_only_counts() -> None:
    """Where one branch does more, the condition decides something."""
    mutants = mutants_of("a.py", COUNTS)
    reached = {one.statement for one in mutants}
    found = CoveredStatements({"a.py": CoveredModule(COUNTS)}, {"a.py": reached}, {})

    set_aside = {one.line: found.set_aside(one) for one in mutants}
    assert set_aside == {
        3: METRIC,
        4: METRIC,
        5: "",
        6: METRIC,
        8: "",
        9: METRIC,
        10: METRIC,
        11: METRIC,
    }


def test_a_function_within_a_function_is_entered_by_itself() -> None:
    inner = {one.line: covered(14).set_aside(one) for one in mutants_of("a.py", TEXT)}
    assert inner[14] == ""
    assert inner[10] == NOT_ENTERED


def test_a_module_below_the_specifications_is_set_aside_whatever_reaches_it() -> None:
    (mutant,) = mutants_of("b.py", "a = 1\n")
    assert covered().set_aside(mutant) == "bytes"


def test_a_draw_counts_what_it_does_not_draw_from(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    drawn = draw(tmp_path, ["a.py"], 100, 3, covered(10).set_aside)
    assert {one.line for one in drawn.mutants} == {10, 11}
    assert drawn.population == len(drawn.mutants)
    assert drawn.aside[METRIC] == 2
    assert drawn.population + sum(drawn.aside.values()) == len(mutants_of("a.py", TEXT))


def test_the_list_that_is_shipped_names_modules_that_a_system_runs() -> None:
    package = resource_root() / "impl"
    run = frozenset().union(*(files_of(system, package) for system in BUILT_IN))
    assert frozenset(read_below()) <= run


def test_a_damaged_list_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "covered.toml"
    path.write_text("[[below]]\nfiles = 3\n")
    with pytest.raises(UserError, match="no list of modules"):
        read_below(path)
