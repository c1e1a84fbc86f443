"""What a trace store says that it is of: the spec's text, the model, the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance import __version__
from conformance.modelcheck.cache import cache_key, module_files
from conformance.modelcheck.manifest import Model, reference
from conformance.modelcheck.prepare import PreparedModel
from conformance.stages.context import constants_of
from conformance.tla import OWN_MODULES, format_value
from conformance.traces.manifest import Identity

FOREIGN = "foreign"
"""The system of a store whose traces were imported."""


def spec_hash(model: Model) -> str:
    """Hash of the text of every module of the spec, and of what the model replaces in it."""
    replaced = [f"{name}={text}" for name, text in {**model.definitions, **model.overrides}.items()]
    return cache_key(replaced, module_files(model.spec_path, [*model.search, *OWN_MODULES]))


def identity(
    prepared: PreparedModel,
    system: str,
    parameters: Mapping[str, str],
    actions: Sequence[str] | None = None,
) -> Identity:
    """Of a store whose traces `system` made, `parameters` saying how.

    `actions` are all of the spec's unless given: with large constants nobody can list them.
    """
    model, spec = prepared.model, prepared.spec
    return Identity(
        spec=model.spec,
        spec_hash=spec_hash(model),
        model=reference(model),
        constants={name: format_value(value) for name, value in constants_of(prepared).items()},
        variables=list(spec.variables),
        actions=list(map(str, spec.actions)) if actions is None else list(actions),
        system=system,
        system_version=__version__,
        parameters=dict(parameters),
    )
