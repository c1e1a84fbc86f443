"""Stage `adapter`: somebody's adapter against the adapter protocol, a line for each point."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.config import settled_tier
from conformance.errors import UserError
from conformance.events import StageFinished, StageStarted
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.prepare import prepare
from conformance.stages.context import Context, constants_of, one_model
from conformance.systems.external import ExternalFactory, of_address, of_command
from conformance.systems.external.check import POINTS, Material, check_adapter
from conformance.tla import find_tools

STAGE = "adapter"


def adapter_of(name: str) -> ExternalFactory:
    """The adapter of a system's name, or of a command without its scheme."""
    if name.startswith("tcp:"):
        return of_address(name.removeprefix("tcp:"))
    return of_command(name.removeprefix("exec:"))


def adapter_check(context: Context, factory: ExternalFactory, model: str | None) -> Material:
    """Hold the adapter against every point; what the model gave.

    UserError if it cannot be started, or if no model is known that it could be asked about.
    """
    material = material_of(context, one_model(model)) if model else _suitable(context, factory)
    context.emit(StageStarted(STAGE, factory.name, len(POINTS)))
    for result in check_adapter(factory, material):
        context.emit(
            StageFinished(STAGE, result.point, result.verdict, result.seconds, result.detail)
        )
    return material


def material_of(context: Context, model: Model) -> Material:
    """What the points need of a model: no TLC runs."""
    prepared = prepare(model, context.check.tools or find_tools(), context.check.parser)
    spec = prepared.spec
    initial = next(iter(spec.initial_states()), None)
    if initial is None:
        raise UserError(
            f"The model {model.name} has no initial state: there is nothing to reset to."
        )
    enabled = dict.fromkeys(action for action, _ in spec.successors(initial))
    return Material(
        model.name,
        model.spec,
        constants_of(prepared),
        tuple(spec.variables),
        initial,
        tuple(enabled),
    )


def _suitable(context: Context, factory: ExternalFactory) -> Material:
    """Of the smallest model of each specification the one that the adapter can take."""
    reasons: list[str] = []
    for model in _smallest_of_each(context):
        material = material_of(context, model)
        reason = factory.cannot_take(material.specification, material.constants)
        if not reason:
            return material
        reasons.append(f"{model.name}: {reason}")
    tried = f" Tried were {'; '.join(reasons)}." if reasons else ""
    raise UserError(
        f"No model is known that the adapter {factory.name} can take.{tried} Give one with --model."
    )


def _smallest_of_each(context: Context) -> Iterator[Model]:
    tier = settled_tier(context.settings, context.settings.tier)
    models = [model for model in find_models(tier.models) if model.feeds_suite]
    models.sort(key=lambda model: model.expect.distinct_states if model.expect else 0)
    seen: set[str] = set()
    for model in models:
        if model.spec not in seen:
            seen.add(model.spec)
            yield model
