from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.modelcheck.form import Check
from conformance.modelcheck.generate import LabelledNext, generate
from conformance.modelcheck.manifest import Model
from conformance.tla import Action, ModelValue, make_function, parse_config

MODEL = Model(
    name="toy",
    origin=Path("toy.toml"),
    spec_path=Path("/specs/Toy.tla"),
    check=Check(init="Init", next="Next", invariants=("Safe",), properties=("P",), view="V"),
    constants={"Nodes": '{"a", "b"}', "Limit": "3"},
    definitions={"Mutant_Guard(x)": "TRUE"},
    overrides={"Guard": "Mutant_Guard"},
)


def test_constants_are_expressions_that_the_configuration_points_to() -> None:
    generated = generate(MODEL)
    assert 'const_Nodes == {"a", "b"}' in generated.module
    assert "Mutant_Guard(x) == TRUE" in generated.module
    config = parse_config(generated.config)
    assert [(o.name, o.operator) for o in config.overrides] == [
        ("Nodes", "const_Nodes"),
        ("Limit", "const_Limit"),
        ("Guard", "Mutant_Guard"),
    ]
    assert (config.init, config.next, config.view) == ("Init", "Next", "V")
    assert (config.invariants, config.properties) == (("Safe",), ("P",))
    assert generated.labels == {}


def test_every_action_instance_gets_a_name() -> None:
    actions = (Action("Fetch", ("a",)), Action("Fetch", ("b",)), Action("I!Step"))
    generated = generate(MODEL, LabelledNext("Begin", actions))
    assert generated.labels == dict(
        zip(["Fetch__0", "Fetch__1", "I_Step__2"], actions, strict=True)
    )
    assert 'Fetch__1 == Fetch("b") /\\ Toy__model_fired(1)' in generated.module
    assert "I_Step__2 == I!Step /\\ Toy__model_fired(2)" in generated.module
    config = parse_config(generated.config)
    assert (config.init, config.next) == ("Begin", "Toy__model_next")


def test_only_the_standard_modules_that_are_used_are_extended() -> None:
    plain = replace(MODEL, constants={"Nodes": '{"Len", "@@"}'})
    assert "EXTENDS Toy\n" in generate(plain).module
    used = replace(MODEL, constants={"N": "1..3", "S": "Permutations({1})"})
    assert "EXTENDS Toy, Integers, TLC\n" in generate(used).module


def test_model_values_and_functions_as_arguments() -> None:
    argument = make_function({ModelValue("n1"): 1, ModelValue("n2"): 2})
    labelled = LabelledNext("Init", (Action("Act", (argument,)),))
    generated = generate(replace(MODEL, literals={}), labelled, declared=["n2"])
    assert "CONSTANTS n1\n" in generated.module
    assert "Act__0 == Act((n1 :> 1 @@ n2 :> 2))" in generated.module
    assert parse_config(generated.config).constants["n1"] == ModelValue("n1")


def test_constants_of_a_configuration_stay_values() -> None:
    nodes = frozenset({ModelValue("n1"), ModelValue("n2")})
    generated = generate(replace(MODEL, constants={}, literals={"Nodes": nodes, "Limit": 2}))
    assert parse_config(generated.config).constants == {"Nodes": nodes, "Limit": 2}
