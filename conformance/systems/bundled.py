"""Makes the package `impl`, which the bundled adapters drive, importable where it is installed.

In a checkout it lies at the top and is importable already. A wheel must not take so plain a name in
a user's environment, so it carries the package among its data. Whoever imports an adapter that
drives it imports this module first: then, and only in such a process, the folder of the data stands
on the import path, just before the one that holds `conformance`. So a copy that PYTHONPATH names
still comes first, as the bug bench needs it, and a user's own `impl` is found by everyone else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.resources import installed_data

_PACKAGES = str(Path(__file__).resolve().parents[2])


def _insert(folder: str) -> None:
    if folder not in sys.path:
        known = [str(Path(entry).resolve()) for entry in sys.path]
        sys.path.insert(known.index(_PACKAGES) if _PACKAGES in known else len(known), folder)


_data = installed_data()
if _data is not None:
    _insert(str(_data))
