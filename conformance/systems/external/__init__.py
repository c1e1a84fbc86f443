"""Systems outside this process: the adapter protocol's client (docs/adapter-protocol.md)."""

from conformance.systems.external.channel import CHANNELS, Channel, Limits
from conformance.systems.external.system import ExternalFactory, of_address, of_command
from conformance.systems.external.transport import ProcessTransport

__all__ = [
    "CHANNELS",
    "Channel",
    "ExternalFactory",
    "Limits",
    "ProcessTransport",
    "of_address",
    "of_command",
]
