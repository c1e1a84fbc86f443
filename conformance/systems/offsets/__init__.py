"""spec/GroupOffsets.tla and MemberOffsets.tla meet impl/group: what becomes of positions."""

from collections.abc import Mapping

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.offsets.member_system import MemberOffsetsSystem
from conformance.systems.offsets.system import OffsetsSystem
from conformance.systems.protocol import SystemUnderTest
from conformance.tla import Value

__all__ = ["MemberOffsetsSystem", "OffsetsSystem", "create"]


def create(constants: Mapping[str, Value]) -> SystemUnderTest:
    """The system for a model's constants: only MemberOffsets has members."""
    return MemberOffsetsSystem(constants) if "Members" in constants else OffsetsSystem(constants)
