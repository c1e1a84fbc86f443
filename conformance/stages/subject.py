"""A store that is to be audited, and the model that it is of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conformance.errors import DataError
from conformance.modelcheck.check import graph_and_spec
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.stages.context import (
    Context,
    with_constants,
)
from conformance.stages.held import compared_model
from conformance.stages.identity import FOREIGN, spec_hash
from conformance.tla import find_tools
from conformance.traces.store import TraceStore


@dataclass(frozen=True, slots=True)
class AuditedStore:
    """A store and the model that it is to be audited against."""

    store: TraceStore
    prepared: PreparedModel
    graph: StateGraph | None


def open_subject(context: Context, path: Path, model_name: str | None = None) -> AuditedStore:
    """Open a store and find its model. DataError if the spec's text is another one now."""
    store = TraceStore.open(path)
    model, of = _model_of(store, model_name), store.manifest.identity
    if of.system == FOREIGN:  # its dictionary lists what occurs
        prepared = prepare(model, context.check.tools or find_tools(), context.check.parser)
        context.emit(compared_model(prepared, FOREIGN))
        return AuditedStore(store, prepared, None)
    graph: StateGraph | None = None
    if model.feeds_suite or model.expect is None:
        graph, prepared = graph_and_spec(model, context.check, context.emit)
    else:
        prepared = prepare(model, context.check.tools or find_tools(), context.check.parser)
    context.emit(compared_model(prepared, of.system, of.system_version))
    return AuditedStore(store, prepared, graph)


def _model_of(store: TraceStore, name: str | None) -> Model:
    """The model of that name, or the store's own; it must be of the text that the store is of."""
    path, of = store.path, store.manifest.identity
    result = find_models([name or of.model])
    if len(result) != 1:
        raise DataError(
            f"{path} names the model {name or of.model}, which is not one model. Give --model."
        )
    model = result[0]
    if of.spec != model.spec:
        raise DataError(
            f"{path} holds traces of {of.spec}, and {model.name} is a model of {model.spec}. "
            f"Name a model of {of.spec} with --model."
        )
    if of.spec_hash != spec_hash(model):
        raise DataError(
            f"{path} was recorded against another text of {of.spec}: the spec or the model "
            f"{model.name} changed since. Record the traces again, or check out the version that "
            "they were recorded with."
        )
    if of.system == FOREIGN and name is None:  # a mapping may have made the constants of the events
        own = of.constants
        return with_constants(model, {name: own[name] for name in model.constants if name in own})
    return model
