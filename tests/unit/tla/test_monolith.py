"""Several modules, and a configuration, in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import SpecError, bind, load_module, parse_config
from conformance.tla.front.monolith import config_text, further_modules

FILE = """---- CONFIG Whole ----
CONSTANT N = 3
SPECIFICATION Spec
====
prose between the modules
---- MODULE Whole ----
EXTENDS Part
VARIABLE x
   ---- MODULE Inner ----
   Unused == 1
   ====
Spec == x = Start /\\ [][x' = x]_x
====
---- MODULE Part ----
EXTENDS Naturals
CONSTANT N
Start == N + 1
====
"""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "Whole.tla"
    path.write_text(FILE)
    return path


def test_a_file_with_its_modules_and_configuration_is_a_specification(whole: Path) -> None:
    bound = bind(load_module(whole), parse_config(config_text(whole)))
    assert bound.initial_states() == ((4,),)


def test_a_module_within_a_module_is_none_of_the_files(whole: Path) -> None:
    assert list(further_modules(whole)) == ["Part"]


def test_a_module_of_its_own_file_comes_before_that_of_the_root(whole: Path) -> None:
    part = whole.with_name("Part.tla")
    part.write_text("---- MODULE Part ----\nCONSTANT N\nStart == 0\n====\n")
    assert bind(load_module(whole), parse_config(config_text(whole))).initial_states() == ((0,),)


def test_a_module_without_a_configuration_says_what_to_write(whole: Path) -> None:
    whole.write_text("---- MODULE Whole ----\n====\n")
    with pytest.raises(SpecError, match=r"---- CONFIG Whole ----"):
        config_text(whole)
