"""The picture of a model's specification, if one lies beside a module that it is made of."""

from __future__ import annotations

from conformance.modelcheck.cache import module_files
from conformance.modelcheck.manifest import Model
from conformance.story.picture import Picture, find_picture


def picture_of(model: Model) -> Picture | None:
    """That of the root module, else that of a module which its text names; None: no picture."""
    return find_picture([model.spec_path, *module_files(model.spec_path, model.search)])
