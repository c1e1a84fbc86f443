"""Models that say what a system is known to do where it departs from the specification."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from conformance.deviations.table import Deviation
from conformance.modelcheck.manifest import Model


def with_deviations(model: Model, deviations: Iterable[Deviation]) -> Model:
    """The model with the operators overridden that these deviations name.

    Formulas that do not hold then are left out, and what the manifest expects, which is of the
    specification as it stands.
    """
    chosen = tuple(deviations)
    if not chosen:
        return model
    definitions, overrides = dict(model.definitions), dict(model.overrides)
    broken: set[str] = set()
    for deviation in chosen:
        for name in deviation.definitions:  # TLA+ defines before it uses: the last one stands last
            definitions.pop(name, None)
        definitions |= deviation.definitions
        overrides |= deviation.overrides
        broken |= {*deviation.breaks}
    check = msgspec.structs.replace(
        model.check,
        invariants=tuple(name for name in model.check.invariants if name not in broken),
        properties=tuple(name for name in model.check.properties if name not in broken),
    )
    return replace(
        model,
        definitions=definitions,
        overrides=overrides,
        check=check,
        expect=None,
        likely_states=model.expect.distinct_states if model.expect else 0,
    )
