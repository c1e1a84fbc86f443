"""spec/GroupOffsets.tla meets impl/group: what becomes of the positions that are committed."""

from conformance.systems.offsets.system import OffsetsSystem, create

__all__ = ["OffsetsSystem", "create"]
