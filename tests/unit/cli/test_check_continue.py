"""`kconform check --continue` lists all that breaks; an override that changes nothing is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.main import load
from conformance.modelcheck.cache import Cache
from conformance.modelcheck.check import CheckOptions, check_models
from conformance.modelcheck.manifest import find_models

pytestmark = pytest.mark.tlc

COUNTER = r"""
EXTENDS Naturals
VARIABLE n
Step(m) == m < 4
Start == 0
Init == n = Start
Up == n < 4 /\ Step(n) /\ n' = n + 1
Jump == n = 1 /\ n' = 3
Next == Up \/ Jump
Fair == Init /\ [][Next]_n /\ WF_n(Next)
Bound == 3
Small == n < Bound
NotFour == n # 4
Natural == n >= 0
StepsOfOne == [][n' = n + 1]_n
BelowTwo == [](n < 2)
BeginsWithOne == n = 1
Rises == [][n' > n]_n
Ends == <>(n = 4)
Returns == []<>(n = 0)
Repeats == []<>(n = 1)
Assumed == n \in Nat
"""
SAFETY = 'invariants = ["Small", "NotFour", "Natural"]\nproperties = [{}]\n'
BROKEN: dict[str, tuple[str, list[tuple[str, int | None]]]] = {
    "safety": (
        SAFETY.format('"StepsOfOne", "BelowTwo", "Rises", "BeginsWithOne"') + "deadlock = true\n",
        [
            ("BeginsWithOne", 1), ("BelowTwo", 3), ("Small", 3), ("StepsOfOne", 3),
            ("NotFour", 4), ("deadlock", 4),
        ],
    ),
    "whole behaviours": (
        SAFETY.format('"Ends", "Returns", "Repeats"'),
        [("Small", 3), ("NotFour", 4), ("Repeats", None), ("Returns", None)],
    ),
    "one of whole behaviours": (
        SAFETY.format('"Ends", "Repeats", "Rises"'),
        [("Small", 3), ("NotFour", 4), ("Repeats", None)],
    ),
    "nothing": ('invariants = ["Natural"]\nproperties = ["Rises", "Ends"]\n', []),
}  # fmt: skip


def manifest(folder: Path, check: str, more: str = "", result: str = "holds") -> str:
    """A model of the counter."""
    (folder / "Counter.tla").write_text(f"---- MODULE Counter ----{COUNTER}====\n")
    path = folder / "counter.toml"
    path.write_text(
        f'schema = 1\nspec = "Counter"\n{more}\n[check]\nspecification = "Fair"\n{check}'
        f'[expect]\nresult = "{result}"\n'
    )
    return str(path)


def check(*args: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the model's object."""
    result = CliRunner().invoke(load("check"), [*args, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    (model,) = json.loads(result.stdout[result.stdout.index("{\n") :])["models"]
    return result.exit_code, model


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize("what", BROKEN)
def test_every_broken_formula_is_listed_by_both_engines(
    what: str, engine: str, tmp_path: Path
) -> None:
    text, expected = BROKEN[what]
    code, model = check(manifest(tmp_path, text), "--continue", "--engine", engine)

    assert [(item["formula"], item["length"]) for item in model["broken"]] == expected
    assert code == (1 if expected else 0)


@pytest.mark.parametrize("engine", ["tlc", "python"])
def test_without_the_option_the_first_ends_the_check(engine: str, tmp_path: Path) -> None:
    code, model = check(manifest(tmp_path, BROKEN["safety"][0]), "--engine", engine)
    assert (code, model["broken"]) == (1, [])


@pytest.mark.parametrize("engine", ["tlc", "python"])
def test_a_line_says_all_that_breaks(engine: str, tmp_path: Path) -> None:
    path = manifest(tmp_path, SAFETY.format('"Ends"'))
    output = CliRunner().invoke(load("check"), [path, "--continue", "--engine", engine]).output
    said = "in all it violates Small after 3 states; violates NotFour after 4 states"
    assert said in " ".join(output.split())


@pytest.mark.parametrize("engine", ["tlc", "python"])
def test_nothing_is_looked_at_behind_a_false_assumption(engine: str, tmp_path: Path) -> None:
    path = manifest(tmp_path, 'invariants = ["Small"]\n')
    module = tmp_path / "Counter.tla"
    module.write_text(module.read_text().replace("VARIABLE", "ASSUME Low == 1 > 2\nVARIABLE"))
    output = CliRunner().invoke(load("check"), [path, "--continue", "--engine", engine]).output
    assert "no formula was looked at" in " ".join(output.split())


HOLDS = 'invariants = ["Natural"]\nproperties = ["Ends"]\n'
IDLE = {
    "the same, in other words": ("'Other(m)' = '4 > m'", "Step = 'Other'", ["Step"]),
    "out of reach": ("'Other(m)' = 'm < 9'", "Step = 'Other'", ["Step"]),
    "a guard less": ("'Other(m)' = 'm < 2'", "Step = 'Other'", []),
    "another beginning": ("Other = '2'", "Start = 'Other'", []),
    "one of two": (
        "Other = '2'\n'Same(m)' = '4 > m'",
        "Start = 'Other'\nStep = 'Same'",
        ["Step"],
    ),
    "both": ("Other = '2 - 2'\n'Same(m)' = '4 > m'", "Start = 'Other'\nStep = 'Same'", [
        "Start", "Step",
    ]),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize("what", IDLE)
def test_an_override_that_changes_nothing_is_named(what: str, engine: str, tmp_path: Path) -> None:
    definitions, overrides, idle = IDLE[what]
    more = f"[definitions]\n{definitions}\n[overrides]\n{overrides}\n"
    path = manifest(tmp_path, 'invariants = ["Natural"]\n', more)
    code, model = check(path, "--engine", engine)

    assert (code, model["idle_overrides"]) == (0, idle)
    output = " ".join(CliRunner().invoke(load("check"), [path, "--engine", engine]).output.split())
    assert ("it has the same states and steps" in output) == bool(idle)


@pytest.mark.parametrize(
    ("more", "idle"),
    [
        ("", []),
        ("[overrides]\nJump = 'AsBefore'\n", ["Jump"]),
        ("[definitions]\n'Other(m)' = 'm <= 3'\n", ["Step"]),
    ],
)
def test_an_inherited_override_is_looked_at_where_it_is_stated(
    more: str, idle: list[str], tmp_path: Path
) -> None:
    """A model inherits neither what it states nor what it defines anew."""
    definitions = "'Other(m)' = '4 > m'\nAsBefore = \"n = 1 /\\\\ n' = 3\"\n"
    manifest(tmp_path, HOLDS, f"[definitions]\n{definitions}[overrides]\nStep = 'Other'\n")
    path = tmp_path / "extending.toml"
    path.write_text(f'schema = 1\nextends = "counter"\n{more}[expect]\nresult = "holds"\n')
    assert check(str(path))[1]["idle_overrides"] == idle


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize("formula", ["Small", "Bound"])
def test_an_override_that_changes_a_formula_alone_changes_something(
    formula: str, engine: str, tmp_path: Path
) -> None:
    more = (
        f"mutant = '{formula}'\n[definitions]\nOther = '{{}}'\n[overrides]\n{formula} = 'Other'\n"
    )
    body = {"Small": "n < 2", "Bound": "2"}[formula]
    path = manifest(
        tmp_path, 'invariants = ["Small"]\n', more.format(body), 'violated"\nviolated = "Small'
    )
    code, model = check(path, "--engine", engine)

    assert (code, model["idle_overrides"], model["counterexample_length"]) == (0, [], 3)


@pytest.mark.parametrize("engine", ["tlc", "python"])
def test_a_mutant_that_changes_nothing_fails_although_it_breaks_its_formula(
    engine: str, tmp_path: Path
) -> None:
    more = "mutant = 'Step'\n[definitions]\n'Other(m)' = '4 > m'\n[overrides]\nStep = 'Other'\n"
    path = manifest(tmp_path, 'invariants = ["Small"]\n', more, 'violated"\nviolated = "Small')
    code, model = check(path, "--engine", engine)

    assert (code, model["verdict"], model["idle_overrides"]) == (1, "fail", ["Step"])
    assert "is no mutant" in model["problems"][0]


@pytest.mark.parametrize("engine", ["tlc", "python"])
def test_a_counterexample_that_needs_the_override_needs_no_search(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.modelcheck.unchanged.compare", None)
    more = "mutant = 'Start'\n[definitions]\nOther = '2'\n[overrides]\nStart = 'Other'\n"
    path = manifest(tmp_path, 'invariants = ["Small"]\n', more, 'violated"\nviolated = "Small')
    code, model = check(path, "--engine", engine)
    assert (code, model["verdict"], model["idle_overrides"]) == (0, "pass", [])


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize(
    ("body", "idle"), [("n = 1 /\\ n' = 3", ["Jump"]), ("n = 0 /\\ n' = 3", [])]
)
def test_an_action_of_another_name_is_compared_by_its_steps(
    body: str, idle: list[str], engine: str, tmp_path: Path
) -> None:
    more = f"[definitions]\nOther = '''{body}'''\n[overrides]\nJump = 'Other'\n"
    path = manifest(tmp_path, 'invariants = ["Small"]\n', more, 'violated"\nviolated = "Small')
    assert check(path, "--engine", engine)[1]["idle_overrides"] == idle


@pytest.mark.parametrize("engine", ["tlc", "python"])
@pytest.mark.parametrize(("room", "named"), [(9, []), (10, ["Step"])])
def test_no_search_begins_that_the_counted_states_do_not_fit(
    room: int, named: list[str], engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five states both sides have ten."""
    monkeypatch.setattr("conformance.modelcheck.unchanged.MOST_STATES", room)
    if not named:
        monkeypatch.setattr("conformance.modelcheck.unchanged.compare", None)
    more = "[definitions]\n'Other(m)' = '4 > m'\n[overrides]\nStep = 'Other'\n"
    path = manifest(tmp_path, 'invariants = ["Natural"]\n', more)
    code, model = check(path, "--engine", engine)
    assert (code, model["idle_overrides"]) == (0, named)
    assert model["distinct_states"] == 5


def test_what_is_idle_is_remembered_with_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))
    definitions, overrides, idle = IDLE["out of reach"]
    path = manifest(tmp_path, HOLDS, f"[definitions]\n{definitions}\n[overrides]\n{overrides}\n")
    assert check(path)[1]["idle_overrides"] == idle
    monkeypatch.setattr("conformance.modelcheck.unchanged.idle_overrides", None)
    code, model = check(path)
    assert (code, model["cached"], model["idle_overrides"]) == (0, True, idle)


@pytest.mark.parametrize("names_idle", [True, False])
def test_nobody_looks_for_what_is_idle_unless_it_is_to_be_named(
    tmp_path: Path, *, names_idle: bool
) -> None:
    """The gate does not ask which of a system's known deviations change nothing in a model."""
    definitions, overrides, idle = IDLE["out of reach"]
    path = manifest(tmp_path, HOLDS, f"[definitions]\n{definitions}\n[overrides]\n{overrides}\n")
    options = CheckOptions(names_idle=names_idle, cache=Cache(tmp_path / "cache"))
    (result,) = check_models(find_models([path]), options)
    assert [*result.idle_overrides] == (idle if names_idle else [])
