"""spec/GroupOffsets.tla meets impl/group: what becomes of the positions that are committed."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.offsets.system import OffsetsSystem, create

__all__ = ["OffsetsSystem", "create"]
