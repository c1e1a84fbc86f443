"""The protocol's own steps under the names that they have here, and whose threads take them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conformance.systems.shared.replication import threads as replication
from conformance.tla import Action

_STEPS: Mapping[str, str] = MappingProxyType(
    {
        "AnswersFetch": "HandleFetch",
        "ParkFetch": "HandleFetch",
        "Leads": "BecomeLeader",
        "Follows": "BecomeFollower",
        "UpdatesIsr": "UpdateIsr",
        "ExpandsIsr": "ExpandIsr",
        "ShrinksIsr": "ShrinkIsr",
        "SubmitsExpandIsr": "SubmitExpandIsr",
        "SubmitsShrinkIsr": "SubmitShrinkIsr",
        "HandlesAlterPartition": "HandleAlterPartition",
        "ProcessesAlterPartition": "ProcessAlterPartition",
        "Elects": "ElectLeader",
        "Fences": "FenceBroker",
        "TakesOffline": "TakeOffline",
        "ElectsUncleanly": "ElectUncleanLeader",
        "Truncates": "TruncateToHighWatermark",
        "SendsEpochRequest": "SendEpochRequest",
        "HandlesEpochRequest": "HandleEpochRequest",
        "ProcessesEpochs": "ProcessEpochResponse",
        "SendsFetch": "SendFetch",
        "ProcessesFetch": "ProcessFetchResponse",
        "HandlesListOffsets": "HandleListOffsets",
        "ProcessesListOffsets": "ProcessListOffsetsResponse",
        "Loses": "LoseMessage",
        "Restarts": "Restart",
    }
)
_NAMES = MappingProxyType({step: name for name, step in _STEPS.items()})

_CLIENTS = frozenset({"Produce", "FetchAsConsumer", "CheckWaiting"})
"""Steps of request handlers that replication alone does not have."""

_IN_SECTIONS = frozenset({"Produce", "FetchAsConsumer", "ParkFetch", "CheckWaiting"})
"""Look at the partition, and put what has to wait into a purgatory, or take it out, under one lock
each. Who tells of a change between two looks is told of by a further one, which finds nothing."""

BY_REQUEST = frozenset({"produce", "parked", "channel", "consumer"})
"""Variables that have an entry for each request. DelayedOperationPurgatory.checkAndComplete goes
over the operations of a key without a lock: each operation asks the partition under its own
(Watchers.tryCompleteWatched, Partition.checkEnoughReplicasReachOffset). So the partition may
change between two of them, and the one is answered by what was before, the other by what is now."""

OUTCOMES = frozenset({"Produce", "RefuseProduce", "AnswersFetch", "ParkFetch"})
"""What comes of a request: another thread that comes first may turn one into the other."""


def replication_step(action: Action) -> Action:
    """The action of Replication.tla that a step here is."""
    return Action(_STEPS[action.name], action.args)


def request_step(name: str) -> str:
    """What an action of Replication.tla is called here."""
    return _NAMES[name]


def _as_replication(action: Action) -> Action:
    """What a client's request is like to the threads of replication: a handler's step."""
    name = "AppendAsLeader" if action.name in _CLIENTS else _STEPS.get(action.name, action.name)
    return Action(name, action.args)


def concurrent(running: Action, between: Action, *, restarts: bool) -> bool:
    """Whether two threads of one broker take these; as in replication."""
    if running.name == between.name and running.name in _CLIENTS:
        return False
    if {running.name, between.name} <= _CLIENTS:
        return running.args[0] == between.args[0]
    return replication.concurrent(
        _as_replication(running), _as_replication(between), restarts=restarts
    )


def in_parts(running: Action, between: Action) -> bool:
    """Whether one of the two looks at what waits while the other changes what it waits for."""
    if {running.name, between.name} & _IN_SECTIONS:
        return True
    return replication.in_parts(_as_replication(running), _as_replication(between))
