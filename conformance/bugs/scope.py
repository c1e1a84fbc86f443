"""Which of the implementation's files a system runs, and which models drive a system."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from conformance.errors import UserError
from conformance.modelcheck.manifest import Model, find_models
from conformance.registry import BUILT_IN
from conformance.systems.bundled import import_name


def files_of(system: str, package: Path) -> frozenset[str]:
    """The package's files that a built-in system's adapter imports, by way of others too.

    `package` is the folder of the implementation; the files are relative to it.
    """
    left = [Path(file) for file in adapter_files(system)]
    paths = _reached([item for path in left for item in _imported(path, package)], package)
    return frozenset(str(path.relative_to(package)) for path in paths)


def adapter_files(system: str) -> tuple[str, ...]:
    """The modules of a built-in system's adapter, and of those that it is built on."""
    adapters = Path(__file__).resolve().parents[1] / "systems"
    own = sorted((adapters / BUILT_IN[system].partition(":")[0].rpartition(".")[2]).glob("*.py"))
    others = {path for path in _reached(own, adapters.parent) if path.parent.parent == adapters}
    return tuple(sorted(str(path) for path in {*own, *others, adapters / "threads.py"}))


def _reached(start: Iterable[Path], package: Path) -> set[Path]:
    """These modules and what they import of the package, by way of others too."""
    left, paths = list(start), set[Path]()
    while left:
        path = left.pop()
        if path not in paths:
            paths.add(path)
            left += _imported(path, package)
    return paths


def _imported(path: Path, package: Path) -> list[Path]:
    """The package's modules that this one imports by name."""
    inside = f"{import_name(package.name)}."
    candidates: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if node.level:
                base = path.parents[node.level - 1].joinpath(*parts)
            elif f"{node.module}.".startswith(inside):
                base = package.joinpath(*parts[inside.count(".") :])
            else:
                continue
            candidates |= {base, *(base / name.name for name in node.names)}
    paths = (
        candidate.with_suffix(".py")
        for candidate in sorted(candidates)
        if candidate.is_relative_to(package)
    )
    return [path for path in paths if path.is_file()]


def systems_of(files: Iterable[str], package: Path, systems: Sequence[str]) -> list[str]:
    """Those of the systems that run one of these files."""
    touched = frozenset(files)
    return [
        system for system in systems if system in BUILT_IN and touched & files_of(system, package)
    ]


def changed_files(copy: Path, clean: Path) -> list[str]:
    """The files of a copy of the package that differ from the clean ones, or are not there."""
    paths = {path.relative_to(root) for root in (copy, clean) for path in root.rglob("*.py")}
    return sorted(str(path) for path in paths if _bytes(copy / path) != _bytes(clean / path))


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def driving(systems: Sequence[str], names: Sequence[str] = ()) -> list[Model]:
    """The models whose suites drive one of these systems: those named, or all of tier ci.

    UserError for a model that drives none of them.
    """
    if not names:
        every = find_models((), "ci")
        return [model for model in every if model.feeds_suite and model.system in systems]
    models = find_models(names)
    for model in models:
        if not model.feeds_suite or model.system not in systems:
            raise UserError(
                f"The model {model.name} feeds no suite of {', '.join(systems)}. Name one that "
                "does, or leave --model out to take all of them."
            )
    return models
