"""The picture of a model's specification, if one lies beside a module that it extends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.modelcheck.manifest import Model
from conformance.story.picture import Picture, find_picture

_EXTENDS = re.compile(r"^\s*EXTENDS\s+(\w+(?:\s*,\s*\w+)*)", re.MULTILINE)


def picture_of(model: Model) -> Picture | None:
    """That of the root module, else of the nearest module that it extends; None: no picture."""
    return find_picture(_extended(model.spec_path, model.search))


def _extended(root: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """The module and those that it extends, the nearest first; standard modules are left out."""
    pending, seen = [root], {root.stem}
    for module in pending:
        yield module
        names = _EXTENDS.findall(module.read_text(encoding="utf-8"))
        for name in re.findall(r"\w+", ",".join(names)):
            places = (folder / f"{name}.tla" for folder in (module.parent, *folders))
            path = next((place for place in places if place.is_file()), None)
            if path is not None and name not in seen:
                seen.add(name)
                pending.append(path)
