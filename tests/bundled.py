"""The models that belong to kconform, read once for all tests of a process."""

from __future__ import annotations

from typing import Final

from conformance.modelcheck.manifest import Model, find_models

MODELS: Final[tuple[Model, ...]] = tuple(find_models())
OF_CI: Final = tuple(model for model in MODELS if model.tier == "ci")
