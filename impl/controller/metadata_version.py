"""inter.broker.protocol.version, and the request versions that it chooses (MetadataVersion)."""

from __future__ import annotations

from enum import IntEnum


class MetadataVersion(IntEnum):
    """The versions at which one of the controller's requests changed, in their order."""

    IBP_0_8_0 = 0
    IBP_0_9_0 = 1
    IBP_0_10_0_IV0 = 2
    IBP_0_10_0_IV1 = 3
    IBP_0_10_2_IV0 = 4
    IBP_0_11_0_IV0 = 5
    IBP_1_0_IV0 = 6
    IBP_2_2_IV0 = 7
    IBP_2_4_IV0 = 8
    IBP_2_4_IV1 = 9
    IBP_2_6_IV0 = 10
    IBP_2_7_IV0 = 11
    IBP_2_8_IV0 = 12
    IBP_2_8_IV1 = 13
    IBP_3_2_IV0 = 14
    IBP_3_4_IV0 = 15
    IBP_3_8_IV0 = 16

    def leader_and_isr_request_version(self) -> int:
        """LeaderAndIsr's version."""
        return _version(self, _LEADER_AND_ISR)

    def update_metadata_request_version(self) -> int:
        """UpdateMetadata's version."""
        return _version(self, _UPDATE_METADATA)

    def stop_replica_request_version(self) -> int:
        """StopReplica's version."""
        return _version(self, _STOP_REPLICA)


_V = MetadataVersion
_LEADER_AND_ISR = (
    _V.IBP_1_0_IV0,
    _V.IBP_2_2_IV0,
    _V.IBP_2_4_IV0,
    _V.IBP_2_4_IV1,
    _V.IBP_2_8_IV1,
    _V.IBP_3_2_IV0,
    _V.IBP_3_4_IV0,
)
_UPDATE_METADATA = (
    _V.IBP_0_9_0,
    _V.IBP_0_10_0_IV1,
    _V.IBP_0_10_2_IV0,
    _V.IBP_1_0_IV0,
    _V.IBP_2_2_IV0,
    _V.IBP_2_4_IV1,
    _V.IBP_2_8_IV1,
    _V.IBP_3_4_IV0,
)
_STOP_REPLICA = (
    _V.IBP_2_2_IV0,
    _V.IBP_2_4_IV1,
    _V.IBP_2_6_IV0,
    _V.IBP_3_4_IV0,
)


def _version(at: MetadataVersion, raised: tuple[MetadataVersion, ...]) -> int:
    """How often the request's version was raised until then."""
    return sum(at >= one for one in raised)
