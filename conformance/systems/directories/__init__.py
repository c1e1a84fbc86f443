"""spec/DirectoryMove.tla meets impl: a replica that moves to another log directory."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.directories.system import DirectoriesSystem, create

__all__ = ["DirectoriesSystem", "create"]
