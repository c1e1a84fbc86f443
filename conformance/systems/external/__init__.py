"""Systems outside this process: the adapter protocol's client (docs/adapter-protocol.md)."""

from conformance.systems.external.channel import CHANNELS, AdapterChannel, AdapterTimeouts
from conformance.systems.external.system import ExternalFactory, of_address, of_command
from conformance.systems.external.transport import ProcessTransport

__all__ = [
    "CHANNELS",
    "AdapterChannel",
    "AdapterTimeouts",
    "ExternalFactory",
    "ProcessTransport",
    "of_address",
    "of_command",
]
