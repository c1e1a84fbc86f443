"""Places of the spec as people and their tools open them: file, line and column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.events import Exhibit, ModuleText
from conformance.modelcheck.manifest import Model, near
from conformance.modelcheck.prepare import PreparedModel
from conformance.tla import OWN_MODULES


def with_texts(shown: Exhibit, model: Model, location: str = "") -> Exhibit:
    """The exhibit with the text of every module that its reasons name, or a finding's location."""
    places = (*(reason.location for reason in shown.reasons), location)
    files = (place(model, place_name).partition(":")[0] for place_name in places if place_name)
    names = [Path(place_name) for place_name in dict.fromkeys(files) if place_name.endswith(".tla")]
    texts = (
        ModuleText(file.stem, str(file), file.read_text(encoding="utf-8"))
        for file in names
        if file.is_file()
    )
    return replace(shown, texts=tuple(texts))


def place_of(prepared: PreparedModel, name: str) -> str:
    """Where an operator of the model's specification is defined; empty for what is none."""
    definition = prepared.module.operator(name)
    return "" if definition is None else place(prepared.model, str(definition.location))


def place(model: Model, location: str) -> str:
    """`spec/Store.tla:33:1` for the `Store:33:1` of a module that the model's spec is made of.

    Unchanged where no such file is: the module was generated, or belongs to the TLA+ tools.
    """
    module, separator, rest = location.partition(":")
    if module.endswith(".tla"):
        return location
    for folder in (*model.search, *OWN_MODULES):
        file = folder / f"{module}.tla"
        if module and file.is_file():
            return f"{near(file)}{separator}{rest}"
    return location
