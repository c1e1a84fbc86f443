"""spec/DataPathAtPort.tla meets impl: the wire server's broker, asked in this process."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.data.system import DataSystem, create

__all__ = ["DataSystem", "create"]
