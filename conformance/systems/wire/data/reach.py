"""Which models of DataPathAtPort.tla, FetchSessions.tla and FetchSessionCache.tla can be driven at
a broker's port."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.systems.wire.address import Address
from conformance.systems.wire.port import Port, not_offered
from conformance.tla import Value

_NEEDED: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "produce": ("Produce", 3),
        "fetch": ("Fetch", 9),
        "list_offsets": ("ListOffsets", 4),
        "metadata": ("Metadata", 0),
    }
)
"""Without these requests, from such versions on (KIP-320), nothing can be driven."""
_OF_TRANSACTIONS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "init_producer_id": ("InitProducerId", 0),
        "add_partitions_to_txn": ("AddPartitionsToTxn", 0),
        "end_txn": ("EndTxn", 0),
    }
)
_OF_DELETIONS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"delete_records": ("DeleteRecords", 0)}
)
_OF_LOOKUPS: Mapping[str, tuple[str, str, int]] = MappingProxyType(
    {
        "Youngest": ("list_offsets", "ListOffsets", 7),
        "OffsetForLeaderEpoch": ("offset_for_leader_epoch", "OffsetForLeaderEpoch", 2),
    }
)
"""Lookups that need more than the above."""


BEYOND_REACH: Mapping[str, str] = MappingProxyType(
    {"LetEvictionTimePass": "no request lets two minutes pass"}
)


def slots_of(constants: Mapping[str, Value], shards: int) -> int:
    """Of the whole cache."""
    slots = constants["Slots"]
    assert isinstance(slots, int), "a number in every model"
    return slots * shards


def lacking_slots(address: Address, constants: Mapping[str, Value]) -> str:
    """Why a model of FetchSessionCache cannot be driven with these settings; empty if it can."""
    wanted = slots_of(constants, address.fetch_shards)
    if address.fetch_slots == wanted:
        return ""
    return (
        f"it needs max.incremental.fetch.session.cache.slots={wanted}: if your broker is set so, "
        f"say fetch-slots={wanted}"
    )


def changes_leaders(constants: Mapping[str, Value]) -> bool:
    """Whether another leader is elected in a model."""
    return constants.get("LeaderChanges", 0) != 0


def lacking(port: Port, constants: Mapping[str, Value]) -> str:
    """Why a broker cannot be driven along a model; empty if it can."""
    lookups = constants["Lookups"]
    assert isinstance(lookups, frozenset), "TypeOK of the specification"
    needed = {**_NEEDED}
    if constants["Transactional"] is True:
        needed |= _OF_TRANSACTIONS
    if constants["Deletions"] is True:
        needed |= _OF_DELETIONS
    for lookup in sorted(map(str, lookups)):
        if lookup in _OF_LOOKUPS:
            api, name, version = _OF_LOOKUPS[lookup]
            needed[api] = (name, version)
    return not_offered(port, needed)


def lacking_for_sessions(port: Port, constants: Mapping[str, Value]) -> str:
    """The same for a model of fetch sessions: they came with Fetch 7 (KIP-227)."""
    deletions = _OF_DELETIONS if constants.get("Deletions") is True else {}
    return not_offered(port, {**_NEEDED, "fetch": ("Fetch", 7), **deletions})
