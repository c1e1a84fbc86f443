"""Manifests that extend another one: what holds for a user's, and what ours must keep to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from conformance import toml
from conformance.errors import UserError
from conformance.modelcheck.form import ManifestFile
from conformance.modelcheck.inheritance import inherited, merged
from conformance.modelcheck.manifest import Model, find_models, load_model, whole_manifest
from conformance.modelcheck.names import bundled_manifests
from conformance.resources import models_dir, resource_root, spec_dir
from tests.bundled import MODELS

BASE = """
schema = 1
spec = "Toy"
system = "toy:create"
description = "the base"
tier = "nightly"
variant = "plain"
feeds_suite = true
[labels]
brokers = 2
[constants]
Nodes = '{"a", "b"}'
Bound = 3
[check]
init = "Init"
next = "Next"
invariants = ["TypeOK", "Safe", "Small"]
properties = ["Rises"]
[situations]
names = ["Full"]
[expect]
distinct_states = 7
"""
OWN = 'schema = 1\nextends = "base"\n'


def read(folder: Path, own: str, name: str = "own") -> Model:
    """The model of a manifest beside the base."""
    folder.mkdir(exist_ok=True)
    (folder / "Toy.tla").write_text("---- MODULE Toy ----\n====\n")
    (folder / "base.toml").write_text(BASE)
    (folder / f"{name}.toml").write_text(own)
    return load_model(folder / f"{name}.toml")


def test_a_manifest_says_what_differs(tmp_path: Path) -> None:
    model = read(tmp_path, OWN + 'tier = "ci"\n[constants]\nFurther = 1\nNodes = \'{"c"}\'\n')
    assert (model.spec, model.system, model.variant) == ("Toy", "toy:create", "plain")
    assert (model.tier, model.feeds_suite, model.labels) == ("ci", True, {"brokers": 2})
    # The configuration that TLC gets, and so the key of the cache, has the base's order.
    assert list(model.constants.items()) == [("Nodes", '{"c"}'), ("Bound", "3"), ("Further", "1")]
    assert (model.check.init, model.check.properties) == ("Init", ("Rises",))
    assert model.situations == ("Full",)


def test_a_description_and_a_result_are_never_inherited(tmp_path: Path) -> None:
    model = read(tmp_path, OWN)
    assert model.expect is not None
    assert (model.description, model.mutant, model.expect.distinct_states) == ("", "", 0)


@pytest.mark.parametrize(
    ("said", "invariants"),
    [
        ('["Safe"]', ("Safe",)),
        ("[]", ()),
        ('{ without = ["Safe"] }', ("TypeOK", "Small")),
        ('{ with = ["Other"] }', ("TypeOK", "Safe", "Small", "Other")),
        ('{ without = ["TypeOK"], with = ["Other"] }', ("Safe", "Small", "Other")),
        ('{ without = ["TypeOK"], with = ["TypeOK"] }', ("Safe", "Small", "TypeOK")),
    ],
)
def test_a_list_replaces_the_base_s_or_differs(
    tmp_path: Path, said: str, invariants: tuple[str, ...]
) -> None:
    assert read(tmp_path, f"{OWN}[check]\ninvariants = {said}\n").check.invariants == invariants


@pytest.mark.parametrize(
    ("table", "key"),
    [("check", name) for name in ("invariants", "properties", "constraints", "action_constraints")]
    + [("situations", "names")],
)
def test_every_list_of_names_may_differ(tmp_path: Path, table: str, key: str) -> None:
    model = read(tmp_path, f'{OWN}[{table}]\n{key} = {{ with = ["More"] }}\n')
    names = model.situations if table == "situations" else getattr(model.check, key)
    assert names[-1] == "More"


def test_behaviours_are_named_in_one_way(tmp_path: Path) -> None:
    fair = read(tmp_path, f'{OWN}[check]\nspecification = "Fair"\n', "fair")
    assert (fair.check.specification, fair.check.init, fair.check.next) == ("Fair", "", "")
    again = 'schema = 1\nextends = "fair"\n[check]\ninit = "Init"\nnext = "Other"\n'
    parts = read(tmp_path, again)
    assert (parts.check.specification, parts.check.init, parts.check.next) == ("", "Init", "Other")


def test_a_model_that_must_fail_drives_nothing(tmp_path: Path) -> None:
    failing = f'{OWN}[expect]\nresult = "violated"\nviolated = "Safe"\n'
    model = read(tmp_path, failing)
    assert (model.system, model.feeds_suite, model.situations) == ("", False, ())
    assert (
        read(tmp_path, failing.replace("[", 'system = "own:create"\n[', 1)).system == "own:create"
    )


def test_a_base_elsewhere_brings_its_module_and_its_configuration(tmp_path: Path) -> None:
    read(tmp_path / "there", OWN)
    (tmp_path / "here").mkdir()
    # A module of the same name beside the manifest is another one.
    (tmp_path / "here" / "Toy.tla").write_text("---- MODULE Toy ----\n====\n")
    own = tmp_path / "here" / "own.toml"
    own.write_text('schema = 1\nextends = "../there/base.toml"\n')
    assert load_model(own).spec_path == (tmp_path / "there" / "Toy.tla").resolve()
    (tmp_path / "there" / "Toy.cfg").write_text("INIT Init\nNEXT Other\nCONSTANT Bound = 4\n")
    configured = tmp_path / "there" / "configured.toml"
    configured.write_text(OWN + 'config = "Toy.cfg"\n')
    own.write_text('schema = 1\nextends = "../there/configured"\n')
    model = load_model(own)
    assert (model.check.next, model.constants, model.literals) == ("Other", {}, {"Bound": 4})


def test_a_user_s_manifest_extends_a_model_of_kconform_s(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'schema = 1\nextends = "group/dynamic-2m"\n[constants]\nGenerations = "0..1"\n'
        '[check]\ninvariants = { without = ["TypeOK"] }\n'
    )
    (base,), model = find_models(["group/dynamic-2m"]), load_model(own)
    assert model.spec_path == base.spec_path
    assert {**model.constants, "Generations": base.constants["Generations"]} == base.constants
    assert ("TypeOK", *model.check.invariants) == base.check.invariants


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ('extends = "bass"', r"own\.toml: `extends` names bass, but there is neither .*bass\.toml"),
        ('extends = "group/dynamic-2n"', r"own\.toml: .* Did you mean group/dynamic-2m"),
        ('extends = "dynamic-2m"', r"Did you mean .*group/dynamic-2m.* by its whole name"),
        ("extends = 3", r"own\.toml: `extends` is a TOML int"),
        ('extends = "own"', r"own\.toml: `extends` makes a circle: own\.toml extends own\.toml"),
        ('extends = "circle"', r"circle\.toml: .* own\.toml extends circle\.toml extends own"),
        ('extends = "second"', r"own\.toml: .* more than 2 levels: .*Let it extend first or"),
        ('extends = "future"', r"future\.toml: `schema` is 7"),
        ('extends = "wrong"', r"wrong\.toml is not .*`invariant`"),
        (
            'extends = "base"\n[check]\ninvariants = { without = ["Saif"] }',
            r"own\.toml: `check\.invariants\.without` names Saif, .*lists TypeOK, Safe, Small",
        ),
        (
            'extends = "base"\n[situations]\nnames = { with = ["Full"] }',
            r"own\.toml: `situations\.names\.with` names Full, which the base lists",
        ),
        (
            'extends = "base"\n[check]\nproperties = { witout = ["Rises"] }',
            r"own\.toml: `check\.properties` is not a list or a difference: .*`witout`",
        ),
        (
            'spec = "Toy"\n[check]\ninvariants = { without = ["Safe"] }',
            r"own\.toml: `check\.invariants\.without` names Safe, .*lists nothing",
        ),
    ],
)
def test_a_mistake_is_named_with_file_and_key(tmp_path: Path, own: str, complaint: str) -> None:
    (tmp_path / "first.toml").write_text(OWN)
    (tmp_path / "second.toml").write_text(OWN.replace("base", "first"))
    (tmp_path / "circle.toml").write_text(OWN.replace("base", "own"))
    (tmp_path / "future.toml").write_text(BASE.replace("schema = 1", "schema = 7"))
    (tmp_path / "wrong.toml").write_text(BASE.replace("invariants", "invariant"))
    with pytest.raises(UserError, match=complaint):
        read(tmp_path, f"schema = 1\n{own}\n")


def test_two_levels_are_read(tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text(f"{OWN}[constants]\nBound = 4\n")
    assert read(tmp_path, OWN.replace("base", "first")).constants["Bound"] == "4"


OURS = sorted(bundled_manifests().values()) + sorted(
    (resource_root() / "docs/feature").glob("*.toml")
)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_no_manifest_of_ours_says_what_its_base_or_a_default_says(path: Path) -> None:
    own = toml.decode(path.read_text(encoding="utf-8"), dict[str, Any])
    base = inherited(path, own)
    whole = toml.convert(merged(path, base, own), ManifestFile)
    superfluous = [
        ".".join(keys)
        for keys in keys_of(own)
        if toml.convert(merged(path, base, without(own, keys)), ManifestFile) == whole
        and keys != ("expect", "result")  # a reader looks for it first
    ]
    assert not superfluous, f"{path}: remove {', '.join(superfluous)}"


def keys_of(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys that may be left out, each as its path of keys."""
    for key, value in table.items():
        if isinstance(value, dict) and not {"with", "without"} & value.keys():
            yield from keys_of(value, (*path, key))
        elif (*path, key) not in (("schema",), ("extends",)):
            yield (*path, key)


def without(table: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """The table but for one key."""
    rest = deepcopy(table)
    inner = rest
    for key in keys[:-1]:
        inner = inner[key]
    if keys == ("spec",) and "extends" not in table:
        rest["spec"] = ""  # which has no default
    else:
        del inner[keys[-1]]
    return rest


OTHER_ORDER = {
    "acknowledgement/looks-in-parts-acks-all-2b",
    "replication/mutant-offline-takes-decisions-fine-2b",
    "replication/mutant-late-fetch-of-ended-process-fine-2b",
    "replication/truncate-on-fetch-late-fetch-crash-fine-2b",
}
"""Models that cannot extend the nearest one: their own overrides stand before its overrides, and
the keys of their cached results depend on the order."""


def test_a_constant_of_a_specification_has_one_place() -> None:
    """A new constant is one line in one manifest, from which all models of the spec have it."""
    places: dict[tuple[str, str], set[str]] = {}
    for name, path in bundled_manifests().items():
        own = toml.decode(path.read_text(encoding="utf-8"), dict[str, Any])
        known = inherited(path, own).get("constants", {})
        assert isinstance(known, dict)
        for constant in own.get("constants", {}).keys() - known.keys():
            places.setdefault((load_model(path).spec, constant), set()).add(name)
    several = {key: names for key, names in places.items() if len(names - OTHER_ORDER) > 1}
    assert several == {}


def test_the_whole_manifest_is_the_same_model(tmp_path: Path) -> None:
    for model in MODELS:
        text = toml.encode(whole_manifest(model))
        assert "extends" not in text
        path = tmp_path / "whole.toml"
        path.write_text(text)
        again = load_model(path)
        assert whole_manifest(again) == whole_manifest(model)
        assert again.spec_path.parent == spec_dir().resolve()


@pytest.mark.parametrize(
    "text",
    ["", "a'b", '"', "\\in", "a\nb", "'\\", "\x7f\x00", "é€😀", "'''", "\t"],
)
def test_any_string_is_written_so_that_it_is_read_again(text: str) -> None:
    table = {"a b": text, "list": [text, 1, True], "inner": {text: {"x": text}, "empty": {}}}
    assert toml.decode(toml.encode(table), dict[str, Any]) == table


def test_models_lie_below_their_folder() -> None:
    assert all(re.fullmatch(r"[a-z]+(/bench)?/[a-z0-9-]+", name) for name in bundled_manifests())
    assert all(path.is_relative_to(models_dir()) for path in bundled_manifests().values())
