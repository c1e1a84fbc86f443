"""spec/Acknowledgement.tla meets impl/delayed: requests that wait at a partition's leader."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.acknowledgement.system import AcknowledgementSystem, create

__all__ = ["AcknowledgementSystem", "create"]
