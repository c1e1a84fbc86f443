"""spec/Replication.tla meets impl/: brokers of one partition, stepped action by action."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.replication.system import ReplicationSystem, create, create_on_files

__all__ = ["ReplicationSystem", "create", "create_on_files"]
