"""Which of kconform's own models `kconform show` binds a name with, if the user names none."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import groupby

from conformance.errors import UserError
from conformance.modelcheck.cache import module_files
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.parser import Parser
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.tla import Tools
from conformance.tla.show import lacks_arguments


def smallest_with(name: str, tools: Tools, *, typed: bool) -> PreparedModel:
    """The smallest model that defines the name, and if it is an action, has it in its Next.

    An action's arguments get their types from its instances. Of an action that no model has in
    its Next the smallest model that defines it is taken, unless types are wanted (`typed`).
    UserError if there is no model.
    """
    first: PreparedModel | None = None
    for prepared in _prepared(_defining(name), tools):
        # A module beside a specification's own may define the name, and not be extended by it.
        if name not in prepared.spec.module.operators:
            continue
        if not lacks_arguments(prepared.spec, name):
            return prepared
        first = first or prepared
    if first is None:
        raise UserError(
            f"None of kconform's own specifications defines {name}. Name the model that does with "
            "--model: a model, a manifest, or path/Spec.tla with --config."
        )
    if typed:
        raise UserError(
            f"{name} takes arguments, and none of kconform's own models has it as an action of its "
            "Next, which would say of what type they are. Name a model that has it with --model, "
            "show an operator that calls it, or take --python, which needs no types."
        )
    return first


def _prepared(models: list[Model], tools: Tools) -> Iterator[PreparedModel]:
    """Each model bound, one after the other; those of one specification are parsed together."""
    parser = Parser()
    for _, group in groupby(models, key=lambda model: model.spec_path):
        family = list(group)
        parser.announce(family)
        for model in family:
            yield bound(model, tools, parser)


def _defining(name: str) -> list[Model]:
    """The models whose modules define the name: from the specification with the smallest one.

    A mutant counts only for what no other model has: what it overrides is not what Kafka does, and
    there are more mutants than other models.
    """
    defines = re.compile(rf"^\s*(LOCAL\s+)?{re.escape(name)}\s*(\(.*\))?\s*==", re.MULTILINE)
    models = sorted(find_models(), key=_size)
    families = {model.spec_path: model for model in reversed(models)}
    having = {
        path
        for path, model in families.items()
        for file in module_files(path, list(model.search))
        if defines.search(file.read_text(encoding="utf-8"))
    }
    order = list(dict.fromkeys(model.spec_path for model in models))
    kept = [model for model in models if model.spec_path in having]
    kept = [model for model in kept if not model.mutant] or kept
    return sorted(kept, key=lambda model: order.index(model.spec_path))


def _size(model: Model) -> tuple[int, str]:
    states = model.expect.distinct_states if model.expect else None
    return states or sys.maxsize, model.name
