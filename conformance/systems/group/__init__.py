"""spec/GroupMembership.tla meets impl/group: a coordinator and its members, step by step."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.group.system import GroupSystem, create

__all__ = ["GroupSystem", "create"]
