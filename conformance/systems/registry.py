"""Finds a system's factory by its name in a model, or by `module:function`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from conformance.errors import UserError
from conformance.systems.protocol import SystemFactory

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "delayed": "conformance.systems.delayed:create",
        "group": "conformance.systems.group:create",
        "replication": "conformance.systems.replication:create",
    }
)
"""System names that the shipped models use, and the factories that they stand for."""


def factory_path(name: str, configured: Mapping[str, str] = BUILT_IN) -> str:
    """The `module:function` that a system's name stands for; such a path is its own name."""
    if ":" in name:
        return name
    path = configured.get(name) or BUILT_IN.get(name)
    if path is None:
        known = ", ".join(sorted({*configured, *BUILT_IN}))
        raise UserError(
            f"No system is called {name!r}. Known: {known}. Name a factory as `module:function`, "
            "or add it under [tool.kconform.systems] in pyproject.toml (or [systems] in "
            "kconform.toml)."
        )
    return path


def load_factory(path: str) -> SystemFactory:
    """Import the factory at `module:function`; the current folder counts as importable.

    Raises UserError when the module or the function does not exist, or the import fails.
    """
    module_name, _, function = path.partition(":")
    if not module_name or not function:
        raise UserError(f"{path!r} is no factory: write it as `package.module:function`.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except (ImportError, SyntaxError) as error:
        if path in BUILT_IN.values():
            raise
        raise UserError(_cannot_import(path, module_name, error)) from error
    factory = getattr(module, function, None)
    if not callable(factory):
        raise UserError(
            f"The module {module_name!r} has no function {function!r} to make a system."
        )
    return cast("SystemFactory", factory)


def _cannot_import(path: str, module_name: str, error: ImportError | SyntaxError) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is not None and (module_name + ".").startswith(missing + "."):
        return (
            f"The system {path!r} cannot be loaded: there is no module {module_name!r}. Start "
            "kconform in the folder that holds it, or install it into this environment."
        )
    return (
        f"The system {path!r} cannot be loaded: the import of {module_name!r} fails with "
        f"{type(error).__name__}: {error}. Mend that, or install what is missing into this "
        "environment."
    )
