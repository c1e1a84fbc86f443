"""Tells the reports what is held against what, with the specification's own text."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from importlib.metadata import version as version_of

from conformance import __version__
from conformance.events import ComparedModel, ModuleText
from conformance.modelcheck.branches import key
from conformance.modelcheck.manifest import Model, near
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.prepare import PreparedModel
from conformance.tla import Location

BUNDLED = "conformance.systems."
"""Systems of kconform's own are of its own version."""


def compared_model(prepared: PreparedModel, system: str, version: str = "") -> ComparedModel:
    """The model's specification and the system.

    The version of a bundled system is kconform's, that of a user's own its package's.
    The actions are all of the protocol, those too that the model's constants leave out.
    """
    model = prepared.model
    actions = prepared.spec.all_kinds
    places = dict(_places(prepared, (*actions, *model.check.invariants, *model.check.properties)))
    locations = (place for name in actions for place in prepared.spec.branch_places(name))
    branches = {key(place): place for place in locations}
    picture = picture_of(model)
    report = (*places.values(), *branches.values())
    own = __version__ if system.startswith(BUNDLED) else _version_of(system)
    return ComparedModel(
        spec=model.spec,
        protocol="" if picture is None else picture.protocol,
        model=model.name,
        variant=model.variant,
        system=system,
        version=version or own,
        actions=actions,
        modules=tuple(_texts(model, prepared, {at.module for at in report})),
        places={name: (at.module, at.line, at.end_line) for name, at in places.items()},
        branches={name: (at.module, at.line) for name, at in branches.items()},
    )


def _version_of(system: str) -> str:
    """Of a user's `module:function`: its package's `__version__`, else its distribution's."""
    package = system.partition(":")[0].partition(".")[0]
    own = getattr(sys.modules.get(package), "__version__", "")
    if own or package not in sys.modules:
        return str(own)
    result = packages_distributions().get(package, ())
    return version_of(result[0]) if result else ""


def _places(prepared: PreparedModel, names: Iterable[str]) -> Iterator[tuple[str, Location]]:
    for name in names:
        definition = prepared.module.operator(name)
        if definition is not None:
            yield name, definition.location


def _texts(model: Model, prepared: PreparedModel, names: set[str]) -> Iterator[ModuleText]:
    """The modules' texts; those that were generated for a run are left out."""
    for name, path in prepared.module.sources.items():
        if name in names and path.parent.resolve() in {path.resolve() for path in model.search}:
            yield ModuleText(name, near(path), path.read_text(encoding="utf-8"))
