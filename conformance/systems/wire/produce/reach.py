"""Which models and steps of IdempotentProduce.tla a port can drive; what a broker must offer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.systems.shared.produce.window import other_window
from conformance.systems.wire.port import Port
from conformance.tla import Value

_NEEDED: Mapping[str, str] = MappingProxyType(
    {
        "produce": "Produce",
        "fetch": "Fetch",
        "list_offsets": "ListOffsets",
        "init_producer_id": "InitProducerId",
        "metadata": "Metadata",
    }
)
"""Without these requests a broker cannot be driven. DescribeProducers is left out where absent."""

BEYOND_REACH: Mapping[str, str] = MappingProxyType(
    {
        "Restart": "no request restarts a broker",
        "Expire": "it takes producer.id.expiration.ms, a day as delivered",
    }
)


def lacking(port: Port) -> str:
    """Why a broker's idempotent produce cannot be driven; empty if it can."""
    absent = [name for api, name in _NEEDED.items() if not port.offers(api)]
    return f"the broker does not offer {', '.join(absent)}" if absent else ""


def beyond_a_port(constants: Mapping[str, Value]) -> str:
    """Why no port can drive a model; empty if one can."""
    brokers = constants["Brokers"]
    if isinstance(brokers, frozenset) and len(brokers) > 1:
        return "its replicas fetch when the model says so, and those of a broker by themselves"
    return other_window(constants)
