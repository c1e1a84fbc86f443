"""spec/LogCompaction.tla meets impl: compacted logs and their cleaners."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.compaction.system import CompactionSystem, create

__all__ = ["CompactionSystem", "create"]
