"""spec/ShareCoordinator.tla meets impl/share: what is stored of a share partition."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.persister.system import PersisterSystem, create

__all__ = ["PersisterSystem", "create"]
