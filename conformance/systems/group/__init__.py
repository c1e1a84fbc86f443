"""spec/GroupMembership.tla meets impl/group: a coordinator and its members, step by step."""

from conformance.systems.group.system import GroupSystem, create

__all__ = ["GroupSystem", "create"]
