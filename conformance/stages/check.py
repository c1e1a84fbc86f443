"""Stage `check`: models against what their manifests expect; one event per model."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.errors import UserError
from conformance.modelcheck.check import check_models
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.result import CheckResult
from conformance.stages.context import Context


def check(context: Context, models: Sequence[Model]) -> list[CheckResult]:
    """Run TLC on the models, or take what the cache has. UserError if there is none."""
    if not models:
        raise UserError(
            "No model was chosen: there is nothing to check. See `kconform check --list`."
        )
    return check_models(models, context.check, context.emit)
