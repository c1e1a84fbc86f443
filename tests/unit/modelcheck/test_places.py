"""A model's files as the reader of a finding opens them, and as a command finds them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.modelcheck.manifest import find_models, reference
from conformance.modelcheck.places import place

STORE = Path(__file__).resolve().parents[3] / "docs" / "tutorial"


@pytest.fixture(autouse=True)
def tutorial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(STORE)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("Store:33:1", "models/Store.tla:33:1"),
        ("Naturals:1:1", "Naturals:1:1"),
        ("", ""),
    ],
)
def test_a_place_names_the_modules_file(location: str, expected: str) -> None:
    (model,) = find_models(["models/store.toml"])
    assert place(model, location) == expected


def test_a_reference_finds_its_model_again(tmp_path: Path) -> None:
    module = tmp_path / "Store.tla"
    module.write_text((STORE / "models" / "Store.tla").read_text())
    for name in ("Store.cfg", "Other.cfg"):
        (tmp_path / name).write_text("INIT Init\nNEXT Next\n")
    own = find_models(["replication"])[0].name
    for name, expected in {
        own: own,
        "models/store.toml": "models/store.toml",
        str(module): str(module),
        f"{module}:{tmp_path / 'Other.cfg'}": f"{module}:{tmp_path / 'Other.cfg'}",
    }.items():
        (model,) = find_models([name])
        assert reference(model) == expected
        assert find_models([reference(model)]) == [model]


def test_a_module_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match=r"no TLA\+ module models/Shop\.tla"):
        find_models(["models/Shop.tla"])
