from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from conformance.errors import SpecError, UserError
from conformance.modelcheck.manifest import find_models, load_model, model_from_config
from conformance.tla import ModelValue
from tests.bundled import MODELS

MODULE = "---- MODULE Toy ----\nVARIABLE x\nInit == x = 0\nNext == x' = 1 - x\n====\n"
MANIFEST = """
schema = 1
spec = "Toy"
description = "a toy"
variant = "plain"
mutant = ""

[labels]
brokers = 2

[constants]
Nodes = '{"a", "b"}'

[definitions]
"Mutant(x)" = "TRUE"

[overrides]
Guard = "Mutant"

[check]
init = "Init"
next = "Next"
invariants = ["TypeOK", "Safe"]

[expect]
result = "violated"
violated = "Safe"
counterexample_length = 4
"""


def write(folder: Path, text: str = MANIFEST) -> Path:
    (folder / "Toy.tla").write_text(MODULE)
    path = folder / "toy.toml"
    path.write_text(text)
    return path


def test_a_manifest_is_read_whole(tmp_path: Path) -> None:
    model = load_model(write(tmp_path))
    assert (model.name, model.spec, model.variant) == ("toy", "Toy", "plain")
    assert model.labels == {"brokers": 2}
    assert model.spec_path == (tmp_path / "Toy.tla").resolve()
    assert model.constants == {"Nodes": '{"a", "b"}'}
    assert (model.definitions, model.overrides) == ({"Mutant(x)": "TRUE"}, {"Guard": "Mutant"})
    assert model.check.invariants == ("TypeOK", "Safe")
    assert model.expect is not None
    assert (model.expect.violated, model.expect.counterexample_length) == ("Safe", 4)
    assert (model.tier, model.check.deadlock, model.feeds_suite) == ("ci", False, False)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("variant", "varient", r"toy\.toml.*varient"),
        ("invariants =", "invariant =", r"toy\.toml.*`invariant`.*check"),
        ("brokers = 2", "brokers = [2]", r"toy\.toml.*labels"),
        ("schema = 1", "schema = 7", r"toy\.toml.*schema.*7"),
        ('spec = "Toy"', 'spec = "Tory"', r"toy\.toml.*Tory"),
        ('init = "Init"', "", r"toy\.toml.*check\.init"),
        ('init = "Init"', 'specification = "Spec"', r"toy\.toml.*specification"),
        ('violated = "Safe"', "", r"toy\.toml.*expect\.violated"),
        ('violated = "Safe"', 'violated = "Other"', r"toy\.toml.*Other"),
        ('result = "violated"', 'result = "holds"', r"toy\.toml.*holds"),
        ('result = "violated"', 'result = "maybe"', r"toy\.toml.*maybe"),
        ("[constants]", "[constants", r"toy\.toml"),
        ("[expect]", 'symmetry = "S"\n[expect]', None),
        (
            'result = "violated"\nviolated = "Safe"\ncounterexample_length = 4',
            'result = "not exhausted"',
            r"toy\.toml.*check\.simulation",
        ),
        ("[expect]", "[check.simulation]\nbehaviours = 0\n[expect]", r"toy\.toml.*behaviours"),
        ('mutant = ""', "feeds_suite = true\n[expect]\n[x]", r"toy\.toml"),
    ],
)
def test_a_mistake_is_named_with_file_and_key(
    tmp_path: Path, old: str, new: str, complaint: str | None
) -> None:
    path = write(tmp_path, MANIFEST.replace(old, new, 1))
    if complaint is None:
        assert load_model(path).check.symmetry == "S"
        return
    with pytest.raises(UserError, match=complaint):
        load_model(path)


def test_a_model_that_merges_states_feeds_no_suite(tmp_path: Path) -> None:
    text = MANIFEST.replace('mutant = ""', "feeds_suite = true").replace(
        "[expect]", 'view = "V"\n[expect]'
    )
    with pytest.raises(UserError, match="cannot feed a suite"):
        load_model(write(tmp_path, text))


def test_a_simulated_model_neither_holds_nor_feeds_a_suite(tmp_path: Path) -> None:
    simulated = MANIFEST.partition("[expect]")[0] + "[check.simulation]\nbehaviours = 9\n"
    expect = '[expect]\nresult = "not exhausted"\n'
    simulation = load_model(write(tmp_path, simulated + expect)).check.simulation
    assert simulation is not None
    assert (simulation.behaviours, simulation.depth, simulation.seed) == (9, 100, 1)
    with pytest.raises(UserError, match="not exhausted"):
        load_model(write(tmp_path, simulated + expect.replace("not exhausted", "holds")))
    feeding = simulated.replace('mutant = ""', "feeds_suite = true")
    with pytest.raises(UserError, match="cannot feed a suite"):
        load_model(write(tmp_path, feeding + expect))


def test_models_are_found_by_path_and_folder(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert [model.name for model in find_models([str(path)])] == ["toy"]
    (tmp_path / "kconform.toml").write_text("[tiers.ci]\n")
    assert [model.name for model in find_models([str(tmp_path), str(path)])] == ["toy"]


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UserError, match=r"There is no model kip32O"):
        find_models(["kip32O"])


@pytest.mark.parametrize("name", ["group/dynamic-2n", "dynamic-2n", "kip320-fine-2"])
def test_a_hint_names_each_model_once_and_in_full(name: str) -> None:
    with pytest.raises(UserError, match="Did you mean") as mistake:
        find_models([name])
    hint = str(mistake.value).partition("Did you mean ")[2].partition("?")[0]
    meant = hint.split(" or ")
    assert len(set(meant)) == len(meant) > 1
    assert all(len(find_models([one])) == 1 for one in meant)


def test_a_users_own_module_and_configuration_become_a_model(tmp_path: Path) -> None:
    write(tmp_path)
    config = tmp_path / "Toy.cfg"
    config.write_text("INIT Init\nNEXT Next\nCONSTANT N = n1 M <- Many\nINVARIANT Safe\n")
    model = model_from_config(tmp_path / "Toy.tla", config)
    assert (model.name, model.expect) == ("Toy", None)
    assert model.literals == {"N": ModelValue("n1")}
    assert model.overrides == {"M": "Many"}
    assert (model.check.init, model.check.invariants) == ("Init", ("Safe",))
    assert model.check.deadlock, "TLC's own default"


@pytest.mark.parametrize(
    ("module", "config", "complaint"),
    [
        ("Nope.tla", "Toy.cfg", "no TLA. module .*Nope"),
        ("Toy.tla", "Nope.cfg", "Nope.cfg cannot be read"),
    ],
)
def test_files_that_are_not_there(tmp_path: Path, module: str, config: str, complaint: str) -> None:
    write(tmp_path)
    (tmp_path / "Toy.cfg").write_text("INIT Init\nNEXT Next\n")
    with pytest.raises(UserError, match=complaint):
        model_from_config(tmp_path / module, tmp_path / config)


def test_a_configuration_that_makes_no_sense_is_a_spec_error(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "Toy.cfg").write_text("INIIT Init\n")
    with pytest.raises(SpecError, match=r"Toy\.cfg"):
        model_from_config(tmp_path / "Toy.tla", tmp_path / "Toy.cfg")


@pytest.mark.parametrize(
    ("toml", "expression"),
    [("3", "3"), ("-1", "-1"), ("true", "TRUE"), ("false", "FALSE"), ("'0..3'", "0..3")],
)
@pytest.mark.parametrize("table", ["constants", "definitions"])
def test_a_number_or_a_boolean_is_an_expression_as_it_is(
    tmp_path: Path, toml: str, expression: str, table: str
) -> None:
    model = load_model(write(tmp_path, MANIFEST.replace(f"[{table}]", f"[{table}]\nMax = {toml}")))
    assert getattr(model, table)["Max"] == expression


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('["a", "b"]', """'{"a", "b"}' or '<<"a", "b">>'"""),
        ("[1, 2]", "'{1, 2}' or '<<1, 2>>'"),
        ("1.5", "float"),
        ("{a = 1}", "dict"),
        ("2026-01-01", "date"),
    ],
)
@pytest.mark.parametrize("table", ["constants", "definitions"])
def test_what_could_mean_two_things_is_named_by_file_and_key(
    tmp_path: Path, toml: str, told: str, table: str
) -> None:
    path = write(tmp_path, MANIFEST.replace(f"[{table}]", f"[{table}]\nMax = {toml}"))
    with pytest.raises(UserError) as error:
        load_model(path)
    assert f"{path}: `{table}.Max`" in str(error.value)
    assert told in str(error.value)


CONFIG = "INIT Init\nNEXT Next\nINVARIANT TypeOK\nCONSTANTS Nodes = {n1, n2}\n Max = 2\n"
BY_CONFIG = 'schema = 1\nspec = "Toy"\nconfig = "Toy.cfg"\nfeeds_suite = true\nsystem = "a:b"\n'


def test_a_manifest_may_leave_the_bounds_to_tlcs_configuration(tmp_path: Path) -> None:
    (tmp_path / "Toy.cfg").write_text(CONFIG)
    model = load_model(write(tmp_path, BY_CONFIG))
    assert model.literals == {"Nodes": frozenset({ModelValue("n1"), ModelValue("n2")}), "Max": 2}
    assert (model.check.init, model.check.invariants) == ("Init", ("TypeOK",))
    assert (model.system, model.feeds_suite) == ("a:b", True)
    assert (model.origin.name, model.stated_in.name) == ("toy.toml", "Toy.cfg")
    assert model.expect is not None
    assert model.expect.result == "holds"
    assert pickle.loads(pickle.dumps(model)) == model, "it travels to other processes"


@pytest.mark.parametrize(
    "key", ["check]\ninit = 'Init'", "constants]\nA = 1", "definitions]\nA = 1"]
)
def test_what_a_configuration_says_is_not_said_again(tmp_path: Path, key: str) -> None:
    (tmp_path / "Toy.cfg").write_text(CONFIG)
    with pytest.raises(UserError, match=rf"`{key.partition(']')[0]}` has no place here"):
        load_model(write(tmp_path, f"{BY_CONFIG}[{key}\n"))


@pytest.mark.parametrize("entry", ["SYMMETRY Perms", "VIEW V"])
def test_a_configuration_that_merges_states_feeds_no_suite_and_says_so(
    tmp_path: Path, entry: str
) -> None:
    (tmp_path / "Toy.cfg").write_text(f"{CONFIG}{entry}\n")
    path = write(tmp_path, BY_CONFIG)
    with pytest.raises(UserError, match="merges states"):
        load_model(path)
    model = model_from_config(tmp_path / "Toy.tla", tmp_path / "Toy.cfg").driving()
    assert "merge states" in model.feeds_no_suite


def test_our_own_models_state_what_must_come_out() -> None:
    """A user's model may leave a number out; ours would lose it unseen."""
    for model in MODELS:
        assert model.expect is not None
        stated = model.expect.distinct_states or model.expect.counterexample_length
        lasso = model.expect.violated in model.check.properties
        assert stated or lasso or model.check.simulation or model.expect.reason, model.name
