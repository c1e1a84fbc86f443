"""Where the bundled implementation is imported from: in a checkout, in a wheel, as a faulty copy.

In a checkout it is the package `impl` at the top. A wheel must not take so plain a name in a user's
environment, nor give way where a user has a package of that name: there it is
`conformance._data.impl`, and hatch_build.py writes that name into the imports of our adapters. The
implementation imports itself relatively, so its text is the same in both.

The bug bench puts a faulty copy in its place. In a checkout PYTHONPATH names its folder; in a wheel
the environment variable KCONFORM_IMPLEMENTATION does. So whoever imports an adapter that drives the
implementation imports this module first.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from conformance.resources import installed_data

NAME = "impl"
"""What the package is called in the repository, in faults and in reports."""
COPY = "KCONFORM_IMPLEMENTATION"
"""In a wheel, the folder that holds a copy of the package."""


def import_name(package: str = NAME) -> str:
    """The name to import a package by that the bug bench calls so; a user's own keeps its name."""
    inside = package == NAME and installed_data() is not None
    return f"conformance._data.{NAME}" if inside else package


def import_copy(folder: Path, package: str = NAME) -> ModuleType:
    """Import the copy of the package in `folder`, of which nothing may be imported yet."""
    name = import_name(package)
    if name == package:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
        return importlib.import_module(name)
    first = folder / package / "__init__.py"
    spec = importlib.util.spec_from_file_location(name, first)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{first} is no module")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if (_copy := os.environ.get(COPY)) and import_name() != NAME and import_name() not in sys.modules:
    import_copy(Path(_copy))
