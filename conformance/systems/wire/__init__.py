"""Any broker's group coordinator, seen through its port alone: nothing but Kafka's protocol."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.wire.factory import of_address

__all__ = ["of_address"]
