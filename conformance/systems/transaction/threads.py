"""Which steps of transactions the threads of one broker take beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.tla import Action

_COORDINATOR_IS: Mapping[str, int] = MappingProxyType(
    {
        "HandleInitProducerId": 0,
        "BeginFence": 0,
        "EndFence": 0,
        "AddPartitionOfClient": 0,
        "AddPartitionOfLeader": 0,
        "Verify": 0,
        "ExpireId": 0,
        "CallBackLate": 0,
        "HandleEndTxn": 0,
        "AcknowledgeAppend": 0,
        "FailAppend": 0,
        "AcknowledgeMarker": 0,
        "CompleteTransaction": 0,
        "Load": 0,
        "TakeAdded": 1,
        "TakeEnd": 1,
    }
)
"""Steps that a coordinator takes, and which argument names its broker. A request has a thread of
its own, as have a call-back of an append, what is over in time, and a load. `TakeAdded` and
`TakeEnd` may send the request again."""
_SENDER = frozenset({"AcknowledgeMarker", "CompleteTransaction"})
"""TxnMarkerSenderThread takes them all, one after the other."""
_PRODUCER = frozenset({"TakeAdded", "TakeEnd"})
"""The sender thread of the instance that the first argument names."""

_OF_PARTITION = frozenset(
    {
        "StartVerification",
        "StartVerificationOfOvertaking",
        "AppendBatch",
        "WriteMarker",
        "DeliverOutdatedMarker",
        "Replicate",
    }
)
"""Requests to the leader of the partition that the first argument names."""
_PARTITION_ELECTIONS = frozenset({"ElectLeader"})
"""The partition loses that leader. An outage is left out: where a partition has no election, an
append and its replication are one step of the specification, and two sections here."""
_APPENDS_OR_VERIFIES = _OF_PARTITION - {"Replicate"}
"""What an election meets at the leader that was: it ends first, or its record is cut off. The
lock of Kafka's Partition (leaderIsrUpdateLock) keeps the two apart there, and no follower raises
the high watermark that has less than the record."""


def concurrent(running: Action, between: Action, *, expires: bool = False) -> bool:
    """Whether two threads of one broker take these; `expires`: the id may.

    The controller elects, whatever a broker does at that moment; so an election comes in another's
    middle, but is not interrupted: the log has its leader before the coordinator hears of it.
    """
    names = {running.name, between.name}
    if names <= _SENDER or (names <= _PRODUCER and running.args[0] == between.args[0]):
        return False
    if names <= _OF_PARTITION or _partition_is_elected(names):
        return running.args[0] == between.args[0]
    coordinator = _coordinator(running)
    if coordinator is None:
        return False
    return _is_election(running, between, expires=expires) or coordinator == _coordinator(between)


def _partition_is_elected(names: set[str]) -> bool:
    return bool(names & _PARTITION_ELECTIONS) and bool(names & _APPENDS_OR_VERIFIES)


def _coordinator(action: Action) -> object:
    place = _COORDINATOR_IS.get(action.name)
    return None if place is None else action.args[place]


def _is_election(running: Action, between: Action, *, expires: bool) -> bool:
    """A completion whose append fails, as another broker leads, leaves nothing pending in memory,
    and an InitProducerId of an id that has expired leaves a new one there.

    The specification has no such steps: whoever was replaced completes nothing and makes nothing.
    """
    if between.name != "Elect":
        return False
    leaves_something = running.name == "CompleteTransaction" or (
        expires and running.name == "HandleInitProducerId"
    )
    return not leaves_something or running.args[0] == between.args[0]


def in_parts(running: Action, between: Action) -> bool:
    """Whether an election comes between the parts of a call-back, at the same broker.

    The decision is applied under the id's lock, and its markers are queued in a section of their
    own, which finds that the broker loads the log again: they are queued by the load.
    """
    return (
        running.name == "AcknowledgeAppend"
        and between.name == "Elect"
        and running.args[0] == between.args[0]
    )
