"""spec/SharePartition.tla meets impl/share: locks and writes that wait for an action."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.share.system import ShareSystem, create

__all__ = ["ShareSystem", "create"]
