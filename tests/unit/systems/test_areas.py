"""The areas of the protocols: each model is in one, and no pattern is left over."""

from __future__ import annotations

from fnmatch import fnmatchcase

from conformance.modelcheck.names import bundled_manifests
from conformance.systems.areas import area_of, protocol_areas

MODELS = sorted(bundled_manifests())


def test_every_model_is_in_an_area() -> None:
    known = {area.id for area in protocol_areas()}
    assert [model for model in MODELS if area_of(model).id not in known] == []


def test_every_area_and_every_pattern_has_a_model() -> None:
    used = {area_of(model).id for model in MODELS}
    assert [area.id for area in protocol_areas() if area.id not in used] == []
    patterns = [pattern for area in protocol_areas() for pattern in area.models]
    assert [p for p in patterns if not any(fnmatchcase(model, p) for model in MODELS)] == []


def test_the_names_of_areas_stand_once() -> None:
    names = [name for area in protocol_areas() for name in (area.id, area.title)]
    assert len(names) == len({*names})


def test_a_model_of_a_users_own_has_the_area_of_its_folder() -> None:
    assert area_of("models/store").id == "models"
    assert area_of("store").id == "store"
