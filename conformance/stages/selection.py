"""Which models a system can take, and why it cannot take the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.errors import UserError
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import prepare
from conformance.registry import factory_path
from conformance.stages.context import Context, reason_against
from conformance.tla import find_tools


@dataclass(frozen=True, slots=True)
class ExcludedModel:
    """A model that a system cannot take."""

    model: str
    reason: str


def by_reason(left_out: Sequence[ExcludedModel]) -> Mapping[str, tuple[str, ...]]:
    """The names of the models that are left out for each reason, in the order given."""
    reasons = dict.fromkeys(entry.reason for entry in left_out)
    return {
        reason: tuple(entry.model for entry in left_out if entry.reason == reason)
        for reason in reasons
    }


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """The models that a system is driven by, and those that are left out."""

    models: tuple[Model, ...]
    left_out: tuple[ExcludedModel, ...]


def select(context: Context, models: Iterable[Model], system: str) -> ModelSelection:
    """Divide the models that feed suites. UserError if the system can take none of them."""
    path = factory_path(system, context.settings.systems)
    selected: list[Model] = []
    left_out: list[ExcludedModel] = []
    models = list(models)
    feeding = [model for model in models if model.feeds_suite]
    if not feeding:
        why = reasons_told([ExcludedModel(model.name, model.feeds_no_suite) for model in models])
        raise UserError(f"There is no suite to drive the system {system} along. {why}")
    context.check.parser.announce(feeding)
    for model in feeding:
        reason = reason_against_model(context, path, model)
        if reason:
            left_out.append(ExcludedModel(model.name, reason))
        else:
            selected.append(model)
    if not selected:
        raise UserError(
            f"The system {system} can take no suite of this gate. {reasons_told(left_out)} Name "
            "models that it can take."
        )
    return ModelSelection(tuple(selected), tuple(left_out))


def reason_against_model(context: Context, path: str, model: Model) -> str:
    """Why the system at this path cannot take the model; empty if it can."""
    tools = context.check.tools or find_tools()
    return reason_against(path, prepare(model, tools, context.check.parser))


def reasons_told(left_out: Sequence[ExcludedModel]) -> str:
    """The first of the reasons, and how many more there are."""
    first, several = left_out[0], len(left_out) > 1
    others = f" The same or the like holds for {len(left_out) - 1} more." if several else ""
    return f"{first.model}: {first.reason}.{others}".replace("..", ".")
