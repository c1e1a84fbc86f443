"""The areas of the protocols: which models test which KIPs and requests."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import msgspec

from conformance import toml


class ProtocolArea(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the protocols that a user asks for by its KIP or its requests."""

    id: str
    title: str
    kips: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    """Patterns of models' names."""


class _AreaFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    area: tuple[ProtocolArea, ...]


@cache
def protocol_areas() -> tuple[ProtocolArea, ...]:
    """All areas, in the order in which a model is looked up."""
    text = files(__package__).joinpath("areas.toml").read_text(encoding="utf-8")
    return toml.decode(text, _AreaFile).area


def area_of(model: str) -> ProtocolArea:
    """The area of a model by its name; of a user's own model one that has its folder's name."""
    for area in protocol_areas():
        if any(fnmatchcase(model, pattern) for pattern in area.models):
            return area
    own = model.rpartition("/")[0] or model
    return ProtocolArea(own, own)
