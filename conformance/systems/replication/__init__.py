"""spec/Replication.tla meets impl/: brokers of one partition, stepped action by action."""

from conformance.systems.replication.system import ReplicationSystem, create, create_on_files

__all__ = ["ReplicationSystem", "create", "create_on_files"]
