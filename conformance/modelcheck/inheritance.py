"""Manifests that extend another one: what a manifest says together with its bases.

A manifest says what differs from its base, the one that `extends` names. Tables such as
`[constants]` are merged by key and keep the base's order, because TLC's configuration, and with it
the key of the cache, depends on the order. A list replaces the base's, or says what differs:

    invariants = { without = ["StrongIsr"], with = ["WeakIsr"] }

A description, a result and a mutant belong to one model and are never inherited.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

import msgspec

from conformance import resources
from conformance.errors import UserError
from conformance.inputs import fitted, read_toml
from conformance.modelcheck.form import SCHEMA, ManifestFile
from conformance.modelcheck.names import bundled_manifests, hint

Table = dict[str, object]

LEVELS = 2
"""A manifest's base may have a base, and no more: a reader opens at most three files."""

_WHAT, _PAGE = "a valid model manifest", "docs/models.md"

_OWN = ("schema", "extends", "description", "mutant", "expect")
"""What belongs to one manifest."""
_OF_DRIVEN = ("system", "feeds_suite", "situations")
"""What a model that must fail does not inherit: TLC stops at the violation, nothing is driven."""
_STATED_BY_CONFIG = ("check", "constants", "definitions", "overrides")
"""What a base says in vain where `config` says it."""
_LISTS = {
    "check": ("invariants", "properties", "constraints", "action_constraints"),
    "situations": ("names",),
}


class _Difference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a list differs from the base's."""

    without: tuple[str, ...] = ()
    further: tuple[str, ...] = msgspec.field(default=(), name="with")


def resolved(path: Path, users: Sequence[Path] = ()) -> Table:
    """All that a manifest says, its bases' included, as one table without `extends`.

    `users` are the manifests that extend this one. UserError names the file and the key.
    """
    own = read_toml(path, Table, _WHAT, _PAGE)
    whole = merged(path, inherited(path, own, users), own)
    read_form(path, whole)
    return whole


def inherited_overrides(path: Path) -> frozenset[str]:
    """The overrides that the manifest has from its base, with the base's definitions of them."""
    own = read_toml(path, Table, _WHAT, _PAGE)
    stated = _table(own, "overrides")
    defined = {head.partition("(")[0] for head in _table(own, "definitions")}
    overrides = _table(inherited(path, own), "overrides")
    return frozenset(
        name
        for name, operator in overrides.items()
        if name not in stated and operator not in defined
    )


def _table(whole: Table, key: str) -> Mapping[str, object]:
    table = whole.get(key, {})
    return table if isinstance(table, dict) else {}


def read_form(path: Path, whole: Table) -> ManifestFile:
    """A whole manifest with its types; UserError for a key or a schema that is not known."""
    manifest = fitted(whole, ManifestFile, str(path), _WHAT, _PAGE)
    if manifest.schema != SCHEMA:
        raise UserError(
            f"{path}: `schema` is {manifest.schema}, this kconform reads {SCHEMA}. Use the version "
            "of kconform that the model was written for, or convert the model."
        )
    return manifest


def inherited(path: Path, own: Table, users: Sequence[Path] = ()) -> Table:
    """What the manifest at `path`, which says `own`, has from its base; empty without a base."""
    if "extends" not in own:
        return {}
    base_path = _base(path, own["extends"])
    _require_short([*users, path], base_path)
    base = _moved(resolved(base_path, [*users, path]), base_path, path)
    return {key: base[key] for key in base if key not in _left(own)}


def _base(path: Path, name: object) -> Path:
    """The manifest that `extends` names: a path from the manifest, or a model of kconform's."""
    if not isinstance(name, str):
        raise UserError(
            f"{path}: `extends` is a TOML {type(name).__name__}. Write the name of one model."
        )
    file = name if name.endswith(".toml") else f"{name}.toml"
    for place in (path.parent / file, resources.models_dir() / file):
        if place.is_file():
            return place
    raise UserError(
        f"{path}: `extends` names {name}, but there is neither {path.parent / file} nor a model of "
        f"kconform's of this name.{hint(name, bundled_manifests())} Name a manifest by its path "
        "from this one, or a model of kconform's by its whole name."
    )


def _require_short(users: Sequence[Path], base: Path) -> None:
    """UserError for a manifest that extends itself, and for a third level."""
    chain = " extends ".join(user.name for user in [*users, base])
    if base.resolve() in {user.resolve() for user in users}:
        raise UserError(
            f"{users[-1]}: `extends` makes a circle: {chain}. Let one of them extend nothing."
        )
    if len(users) > LEVELS:
        raise UserError(
            f"{users[0]}: `extends` leads over more than {LEVELS} levels: {chain}. Let it extend "
            f"{users[-1].stem} or a model that {users[-1].stem} extends."
        )


def _moved(base: Table, there: Path, here: Path) -> Table:
    """The base, with the files beside it named as the manifest at `here` must name them."""
    moved = dict(base)
    spec, config = base.get("spec"), base.get("config")
    place = spec_file(there, spec) if isinstance(spec, str) else None
    if isinstance(spec, str) and place is not None and place != spec_file(here, spec):
        moved["spec"] = os.path.relpath(place, here.parent.resolve())
    if isinstance(config, str) and config and not Path(config).is_absolute():
        moved["config"] = os.path.relpath(there.parent / config, here.parent)
    return moved


def spec_file(path: Path, spec: str) -> Path | None:
    """The root module: beside the manifest, or among the specs that belong to kconform."""
    places = spec_places(path, spec)
    return next((place.resolve() for place in places if place.is_file()), None)


def spec_places(path: Path, spec: str) -> tuple[Path, Path]:
    """Where a manifest's root module is looked for."""
    file = spec if spec.endswith(".tla") else f"{spec}.tla"
    return path.parent / file, resources.spec_dir() / file


def merged(path: Path, base: Table, own: Table) -> Table:
    """What a manifest has from its base, with what it says itself instead and besides."""
    whole = dict(base)
    for key, value in own.items():
        below = whole.get(key)
        if _is_table(value):
            whole[key] = _merged_table(path, key, below if _is_table(below) else {}, value)
        else:
            whole[key] = value
    whole.pop("extends", None)
    return whole


def _left(own: Table) -> set[str]:
    """The base's keys that do not hold for the manifest."""
    expect = own.get("expect")
    must_fail = _is_table(expect) and expect.get("result") == "violated"
    return {
        *_OWN,
        *(_OF_DRIVEN if must_fail else ()),
        *(_STATED_BY_CONFIG if own.get("config") else ()),
    }


def _merged_table(path: Path, section: str, base: Table, own: Table) -> Table:
    whole = {name: value for name, value in base.items() if name not in _replaced(section, own)}
    for name, value in own.items():
        differs = name in _LISTS.get(section, ()) and _is_table(value)
        below = whole.get(name, ())
        whole[name] = _different(path, f"{section}.{name}", below, value) if differs else value
    return whole


def _replaced(section: str, own: Table) -> tuple[str, ...]:
    """How the base names the behaviours, if the manifest names them in the other way."""
    if section == "check" and own.get("specification"):
        return ("init", "next")
    by_parts = section == "check" and (own.get("init") or own.get("next"))
    return ("specification",) if by_parts else ()


def _different(path: Path, key: str, base: object, value: object) -> list[str]:
    """The base's list without some of its names, followed by further ones."""
    difference = fitted(value, _Difference, f"{path}: `{key}`", "a list or a difference", _PAGE)
    inherited = list(base) if isinstance(base, (list, tuple)) else []
    for name in difference.without:
        if name not in inherited:
            raise UserError(
                f"{path}: `{key}.without` names {name}, which the base does not list. The base "
                f"lists {', '.join(map(str, inherited)) or 'nothing'}. Correct the name, or remove "
                "it."
            )
    for name in difference.further:
        if name in inherited and name not in difference.without:
            raise UserError(f"{path}: `{key}.with` names {name}, which the base lists. Remove it.")
    kept = [name for name in inherited if name not in difference.without]
    return [*kept, *difference.further]


def _is_table(value: object) -> TypeGuard[Table]:
    return isinstance(value, Mapping)
