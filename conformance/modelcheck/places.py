"""Places of the spec as people and their tools open them: file, line and column."""

from __future__ import annotations

from conformance.modelcheck.manifest import Model, near
from conformance.tla import OWN_MODULES


def place(model: Model, location: str) -> str:
    """`spec/Store.tla:33:1` for the `Store:33:1` of a module that the model's spec is made of.

    Unchanged where no such file is: the module was generated, or belongs to the TLA+ tools.
    """
    module, separator, rest = location.partition(":")
    for folder in (*model.search, *OWN_MODULES):
        file = folder / f"{module}.tla"
        if module and file.is_file():
            return f"{near(file)}{separator}{rest}"
    return location
