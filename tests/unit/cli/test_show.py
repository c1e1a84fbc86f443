"""`kconform show`: the stages of both compilers, and the mistakes in asking for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load
from conformance.tla.show import folded

MODULE = """---- MODULE Clock ----
EXTENDS Integers
CONSTANT Hours
VARIABLE h
Init == h = 0
Tick(n) == h' = (h + n) % Hours
Next == \\E n \\in {1, 2} : Tick(n)
Early == h < Hours
====
"""
CONFIG = "CONSTANT Hours = 3\nINIT Init\nNEXT Next\n"


@pytest.fixture
def clock(tmp_path: Path) -> str:
    (tmp_path / "Clock.cfg").write_text(CONFIG)
    path = tmp_path / "Clock.tla"
    path.write_text(MODULE)
    return str(path)


def run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(load("show"), list(args))
    return result.exit_code, result.output


@pytest.mark.tlc
def test_python_beside_the_text(clock: str) -> None:
    code, output = run("Early", "--model", clock, "--python")
    assert code == 0
    assert "Early == h < Hours" in output
    assert "# s[0] is h" in output
    assert "s[0] < 3" in output
    assert "SQL" not in output


@pytest.mark.tlc
def test_spark_of_an_action_with_arguments(clock: str) -> None:
    code, output = run("Tick", "--model", clock, "--spark", "--json")
    stages = {one["stage"]: one["text"] for one in json.loads(output)["stages"]}
    assert code == 0
    assert list(stages) == ["text", "types", "formula", "sql"]
    assert stages["types"] == "h  bigint"
    assert "`next_h`" in stages["formula"]
    assert "`n`" in stages["sql"]


@pytest.mark.tlc
def test_every_stage_in_the_pipelines_order(clock: str) -> None:
    code, output = run("Early", "--model", clock, "--json")
    stages = [one["stage"] for one in json.loads(output)["stages"]]
    assert code == 0
    assert stages == ["text", "tree", "facts", "python", "types", "formula", "sql"]


@pytest.mark.tlc
def test_a_name_that_is_nearly_right_is_suggested(clock: str) -> None:
    code, output = run("Erly", "--model", clock)
    assert code == 2
    assert "Did you mean Early?" in output


def test_a_name_that_no_specification_defines() -> None:
    code, output = run("NothingOfThisKind")
    assert code == 2
    assert "Name the model that does with --model" in output


@pytest.mark.tlc
@pytest.mark.parametrize("name", ["ExpandIsr", "AppendAsLeader"])
def test_an_action_is_bound_by_the_smallest_model_whose_next_has_it(name: str) -> None:
    result = CliRunner().invoke(load("show"), [name, "--spark", "--json"])
    assert result.exit_code == 0
    stages = {one["stage"]: one["text"] for one in json.loads(result.stdout)["stages"]}
    assert "next_registration" in stages["sql"] or "next_log" in stages["sql"]


@pytest.mark.tlc
def test_it_says_which_model_it_has_chosen() -> None:
    code, output = run("ExpandIsr", "--python")
    assert code == 0
    assert output.startswith("--- model replication/")
    assert "mutant" not in output.splitlines()[0]


@pytest.mark.tlc
def test_an_action_that_is_only_a_part_of_others_needs_a_model_for_its_types() -> None:
    code, output = run("AlterIsr", "--spark")
    assert code == 2
    assert "Name a model that has it with --model" in output
    code, output = run("AlterIsr", "--python")
    assert code == 0
    assert "AlterIsr(l, " in output


def test_a_folder_of_models_is_too_much() -> None:
    code, output = run("TypeOK", "--model", "replication")
    assert code == 2
    assert "name one" in output


@pytest.mark.tlc
def test_a_back_end_that_lacks_something_says_so_beside_the_other_stages(tmp_path: Path) -> None:
    (tmp_path / "Clock.cfg").write_text(CONFIG)
    text = MODULE.replace("Early ==", "Odd == CHOOSE f \\in [Nat -> {0}] : f[h] = 0\nEarly ==")
    (tmp_path / "Clock.tla").write_text(text)
    path = str(tmp_path / "Clock.tla")
    code, output = run("Odd", "--model", path, "--json")
    stages = {one["stage"]: one for one in json.loads(output)["stages"]}
    assert code == 0
    assert stages["sql"]["title"] == "sql: none"
    assert "Spark back end" in stages["sql"]["text"]
    code, output = run("Odd", "--model", path, "--spark")
    assert code == 2
    assert "Spark back end" in output


@pytest.mark.tlc
def test_what_is_shown_of_a_large_formula_ends(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.tla.show.LINES", 2)
    code, output = run("Next", "--model", clock, "--spark", "--json")
    stages = {one["stage"]: one["text"] for one in json.loads(output)["stages"]}
    assert code == 0
    assert "more than 2 lines" in stages["formula"]
    assert len(stages["formula"].splitlines()) == 3


def test_a_call_is_folded_whatever_is_quoted_after_it() -> None:
    sql = f"first({', '.join(['argument'] * 12)}) = last('(', `,`)[0] AND '(' = x"
    lines = list(folded(sql, 60))
    assert (
        "".join(line.strip() + " " for line in lines).split()
        == sql.replace("last(", "last( ").replace("`,`)", "`,` )").split()
    )
