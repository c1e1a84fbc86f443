"""Any broker's group coordinator, seen through its port alone: nothing but Kafka's protocol."""

from conformance.systems.wire.factory import of_address

__all__ = ["of_address"]
