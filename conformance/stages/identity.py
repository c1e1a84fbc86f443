"""What a trace store says that it is of: the spec's text, the model, the system."""

from __future__ import annotations

from collections.abc import Mapping

from conformance import __version__
from conformance.modelcheck.cache import cache_key, module_files
from conformance.modelcheck.manifest import Model, reference
from conformance.modelcheck.prepare import PreparedModel
from conformance.stages.context import constants_of
from conformance.tla.sany import OWN_MODULES
from conformance.tla.values import format_value
from conformance.traces.manifest import Identity

FOREIGN = "foreign"
"""The system of a store whose traces were imported."""


def spec_hash(model: Model) -> str:
    """Hash of the text of every module of the spec, and of what the model replaces in it."""
    replaced = [f"{name}={text}" for name, text in {**model.definitions, **model.overrides}.items()]
    return cache_key(replaced, module_files(model.spec_path, [*model.search, *OWN_MODULES]))


def identity(prepared: PreparedModel, system: str, parameters: Mapping[str, str]) -> Identity:
    """Of a store whose traces `system` made, `parameters` saying how."""
    model, spec = prepared.model, prepared.spec
    return Identity(
        spec=model.spec,
        spec_hash=spec_hash(model),
        model=reference(model),
        constants={name: format_value(value) for name, value in constants_of(prepared).items()},
        variables=list(spec.variables),
        actions=[str(action) for action in spec.actions],
        system=system,
        system_version=__version__,
        parameters=dict(parameters),
    )
