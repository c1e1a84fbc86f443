"""The systems under test: Kafka's own moves between log directories, by DirectoryMove.tla and
DirectoryAssignment.tla.

ReplicaManager, LogManager, UnifiedLog, ReplicaAlterLogDirsThread with its LocalLeaderEndPoint, and
the fetcher of the current log are Kafka's (java/directories), over two real directories. By
DirectoryMove promotion is as with ZooKeeper: DirectoryEventHandler asks nobody. By
DirectoryAssignment it is the harness's, which plays AssignmentsManager and the controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps, record
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value

_STEPS: BridgeSteps = MappingProxyType(
    {
        "AlterReplicaLogDirs": ("directories_alter", ("directory",)),
        "BecomeLeader": ("directories_become_leader", ()),
        "BecomeFollower": ("directories_become_follower", ()),
        "AppendAsLeader": ("directories_append_as_leader", ()),
        "AppendAsFollower": ("directories_append_as_follower", ("epoch",)),
        "TruncateCurrent": ("directories_truncate", ("offset",)),
        "AddFetcher": ("directories_add_fetcher", ()),
        "MarkForTruncation": ("directories_mark", ()),
        "TruncateToHighWatermark": ("directories_truncate_to_high_watermark", ()),
        "SendEpochRequest": ("directories_send_epoch_request", ()),
        "SendFetch": ("directories_send_fetch", ()),
        "HandleEpochRequest": ("directories_handle", ()),
        "HandleFetch": ("directories_handle", ()),
        "ProcessEpochResponse": ("directories_process", ()),
        "ProcessFetchResponse": ("directories_process", ()),
        "FailDirectory": ("directories_fail", ("directory",)),
        "Restart": ("directories_restart", ("role", "saved")),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_ASSIGNMENT_STEPS: BridgeSteps = MappingProxyType(
    {
        **{f"{name}InKRaft": step for name, step in _STEPS.items()},
        "SendAssignment": ("directories_send_assignment", ()),
        "WriteAssignment": ("directories_write_assignment", ()),
        "AnswerAssignment": ("directories_answer_assignment", ()),
        "FailAssignment": ("directories_fail_assignment", ()),
        "LearnAssignment": ("directories_learn_assignment", ()),
    }
)
"""The same of DirectoryAssignment, where AInKRaft is A."""

_MESSAGE: Final = (
    "type", "currentLeaderEpoch", "fetchOffset", "lastEpoch", "error", "epoch", "endOffset",
    "records", "highWatermark",
)  # fmt: skip
_REQUEST: Final = ("directory", "promotes")


class _BridgeCopy(msgspec.Struct, frozen=True, array_like=True):
    """A copy of the log; records by their leader epochs."""

    records: tuple[int, ...] = ()
    high_watermark: int = 0
    epochs: tuple[tuple[int, int], ...] = ()


class _BridgeDirectories(msgspec.Struct, frozen=True, array_like=True):
    """The broker as the bridge writes it: DirectoryMoves.java."""

    role: str
    leader_epoch: int
    directory: str
    current: _BridgeCopy
    future: _BridgeCopy | None
    failed: tuple[str, ...]
    fetch_state: str
    fetch_offset: int
    fetch_epoch: int
    message: tuple[str, int, int, int, str, int, int, tuple[int, ...], int]
    overtaken: bool
    unadded: int
    unmarked: int
    assignment: tuple[str, str, tuple[str, bool], tuple[str, bool], bool, bool]


_as_view = msgspec.json.Decoder(_BridgeDirectories).decode


@cache
def _observed(_names: tuple[str, ...], text: bytes) -> Observation:
    return Observation(_of_move(_as_view(text)))


@cache
def _observed_with_assignment(_names: tuple[str, ...], text: bytes) -> Observation:
    view = _as_view(text)
    assigned, promotion, queued, sent, written, unlearned = view.assignment
    return Observation(
        {
            **_of_move(view),
            "assigned": assigned,
            "promotion": promotion,
            "queued": record(_REQUEST, queued),
            "sent": record(_REQUEST, sent),
            "written": written,
            "unlearned": unlearned,
        }
    )


def _of_move(view: _BridgeDirectories) -> dict[str, Value]:
    future = view.future or _BridgeCopy()
    return {
        "role": view.role,
        "leaderEpoch": view.leader_epoch,
        "directory": view.directory,
        "moving": view.future is not None,
        "log": _copies(view.current.records, future.records),
        "highWatermark": _copies(view.current.high_watermark, future.high_watermark),
        "epochCache": _copies(_epochs(view.current), _epochs(future)),
        "failed": frozenset(view.failed),
        "fetchState": view.fetch_state,
        "fetchOffset": view.fetch_offset,
        "fetchEpoch": view.fetch_epoch,
        "channel": Fn(
            {
                **dict(zip(_MESSAGE, view.message, strict=True)),
                "overtaken": view.overtaken,
            }
        ),
        "unadded": view.unadded,
        "unmarked": view.unmarked,
    }


def _copies(current: Value, future: Value) -> Value:
    return Fn({"current": current, "future": future})


def _epochs(copy: _BridgeCopy) -> Value:
    return tuple(Fn({"epoch": epoch, "start": start}) for epoch, start in copy.epochs)


class KafkaDirectoriesSystem(BridgedSystem):
    """A broker of Kafka's with two log directories, in a JVM."""

    numbered = ""
    variables = (
        "role", "leaderEpoch", "directory", "moving", "log", "highWatermark", "epochCache",
        "failed", "fetchState", "fetchOffset", "fetchEpoch", "channel", "unadded", "unmarked",
    )  # fmt: skip

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "directories_view", _observed)

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A broker that leads in epoch 0, with one record."""
        self._run("directories_reset", {"assigns": False})


class KafkaAssignmentSystem(BridgedSystem):
    """The same broker, which asks a controller before a future log takes over (KIP-858)."""

    numbered = ""
    variables = (
        *KafkaDirectoriesSystem.variables,
        *("assigned", "promotion", "queued", "sent", "written", "unlearned"),
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(
            channel, constants, _ASSIGNMENT_STEPS, "directories_view", _observed_with_assignment
        )

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A broker that leads in epoch 0, with one record, where the controller knows it."""
        self._run("directories_reset", {"assigns": True})
