"""spec/LogStorage.tla meets impl: a log on its disk, and the work in the background around it."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.storage.system import StorageSystem, create

__all__ = ["StorageSystem", "create"]
