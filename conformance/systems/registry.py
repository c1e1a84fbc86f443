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

    Raises UserError when the module or the function does not exist.
    """
    module_name, _, function = path.partition(":")
    if not module_name or not function:
        raise UserError(f"{path!r} is no factory: write it as `package.module:function`.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise UserError(
            f"The system {path!r} cannot be loaded: there is no module {module_name!r}. Start "
            "kconform in the folder that holds it, or install it into this environment."
        ) from error
    factory = getattr(module, function, None)
    if not callable(factory):
        raise UserError(
            f"The module {module_name!r} has no function {function!r} to make a system."
        )
    return cast("SystemFactory", factory)
