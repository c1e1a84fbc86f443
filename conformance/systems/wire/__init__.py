"""Any broker's group coordinator, seen through its port alone: nothing but Kafka's protocol."""

from conformance.systems.wire.factory import of_address
from conformance.systems.wire.started import of_release

__all__ = ["of_address", "of_release"]
