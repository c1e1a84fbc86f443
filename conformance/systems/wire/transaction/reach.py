"""Which models of TransactionsAtPort.tla a port can drive; what a broker must offer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.systems.wire.port import Port, not_offered
from conformance.tla import Value

SPECIFICATION = "TransactionsAtPort"
"""The root module that says what the actions are."""
SIGN = "MaxTransactions"
"""A constant that its models have, and others that a port can drive have not."""
FEATURE = "transaction.version"
_VERSION_2 = 2
_NEEDED: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "init_producer_id": ("InitProducerId", 0),
        "produce": ("Produce", 3),
        "fetch": ("Fetch", 4),
        "list_offsets": ("ListOffsets", 2),
        "end_txn": ("EndTxn", 0),
        "metadata": ("Metadata", 0),
    }
)
"""Without these requests, from such versions on, no transaction can be driven."""
_OF_VERSION_1: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"add_partitions_to_txn": ("AddPartitionsToTxn", 0)}
)
_OF_VERSION_2: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"produce": ("Produce", 12), "end_txn": ("EndTxn", 5)}
)
_OF_OFFSETS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "txn_offset_commit": ("TxnOffsetCommit", 0),
        "offset_fetch": ("OffsetFetch", 7),
    }
)
MARKERS = "write_txn_markers"
_STRICT_SINCE = 2
"""From this WriteTxnMarkers version on a marker tells its transaction's version (KIP-1228)."""


def lacking(port: Port, constants: Mapping[str, Value]) -> str:
    """Why a broker cannot be driven along a model; empty if it can."""
    is_version_2 = constants["Version2"] is True
    needed = [_NEEDED, _OF_VERSION_2 if is_version_2 else _OF_VERSION_1]
    if constants["OffsetsPartitions"]:
        needed.append(_OF_OFFSETS)
    for apis in needed:
        if reason := not_offered(port, apis):
            return reason
    if is_version_2 and port.finalized_level(FEATURE) < _VERSION_2:
        return f"the broker's cluster has not finalized {FEATURE}={_VERSION_2}"
    if constants["StrictMarkers"] is True and 0 <= port.versions[MARKERS] < _STRICT_SINCE:
        return "the broker's markers do not say the transaction's version (KIP-1228)"
    return ""


def beyond_a_port(constants: Mapping[str, Value]) -> str:
    """Why no port can drive a model; empty if one can."""
    if constants["MaxTenures"] != 1 or constants["MaxLeaderChanges"] != 0:
        return "no request moves a leader"
    if constants["MaxAppendFailures"] != 0:
        return "no request makes an append fail"
    return ""
