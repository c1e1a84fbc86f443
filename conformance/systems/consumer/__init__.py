"""spec/ConsumerGroup.tla meets impl/coordinator/group: KIP-848's coordinator on its runtime."""

import conformance.systems.bundled  # noqa: F401  (finds impl)
from conformance.systems.consumer.factory import ConsumerFactory
from conformance.systems.consumer.system import ConsumerSystem

create = ConsumerFactory()

__all__ = ["ConsumerFactory", "ConsumerSystem", "create"]
