"""The system under test: Kafka's own log on a real disk, driven by LogStorage.tla's actions.

LogManager, ReplicaManager, UnifiedLog, LogLoader and the fetcher's steps are Kafka's
(java/storage). The scheduler keeps each task until an action names it, and the channels of segment
files count what an fsync has covered.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.bridged import BridgedSystem, BridgeSteps
from conformance.systems.protocol import Observation
from conformance.tla import Fn, Value

_STEPS: BridgeSteps = MappingProxyType(
    {
        "Elect": ("storage_elect", ("role",)),
        "AppendAsLeader": ("storage_append_as_leader", ()),
        "AppendAsFollower": ("storage_append_as_follower", ("epoch", "commits")),
        "LearnLogStart": ("storage_learn_log_start", ("offset",)),
        "Truncate": ("storage_truncate", ("offset",)),
        "StartAnew": ("storage_start_anew", ("offset",)),
        "DeleteRecords": ("storage_delete_records", ("offset",)),
        "TimePasses": ("storage_time_passes", ()),
        "Retain": ("storage_retain", ()),
        "Flush": ("storage_flush", ()),
        "CheckpointRecoveryPoint": ("storage_checkpoint_recovery_point", ()),
        "CheckpointLogStart": ("storage_checkpoint_log_start", ()),
        "CheckpointHighWatermark": ("storage_checkpoint_high_watermark", ()),
        "RunTask": ("storage_run_task", ("number",)),
        "Shutdown": ("storage_shutdown", ()),
        "FailingShutdown": ("storage_failing_shutdown", ()),
        "Kill": ("storage_kill", ()),
        "LosePower": ("storage_lose_power", ("number", "kept", "torn")),
        "Start": ("storage_start", ("role",)),
        "FailToLoad": ("storage_fail_to_load", ()),
        "Refuse": ("storage_refuse", ("message",)),
    }
)
"""By action, the bridge's command and the members that take the action's arguments."""

_Entries = tuple[tuple[int, int], ...]
"""Leader epochs, and where each begins."""


class _LoadedLog(msgspec.Struct, frozen=True, array_like=True):
    """What the process has in memory."""

    leads: bool
    leader_epoch: int
    log_start: int
    high_watermark: int
    recovery_point: int
    epoch_cache: _Entries
    tasks: tuple[str, ...]


class _BridgeDisk(msgspec.Struct, frozen=True, array_like=True):
    """What lies in the log directory."""

    segments: tuple[tuple[int, tuple[int, ...], int, bool], ...]
    """Of each file: base offset, epochs of its records, how many are flushed, torn or not."""
    deleted: frozenset[int]
    epochs: _Entries
    recovery_point: int
    log_start: int
    high_watermark: int
    marked: bool


_NO_PROCESS: Final = _LoadedLog(False, -1, 0, 0, 0, (), ())
_as_view = msgspec.json.Decoder(tuple[_LoadedLog | None, _BridgeDisk, str]).decode


@cache
def _observed(_names: tuple[str, ...], text: bytes) -> Observation:
    loaded, disk, answer = _as_view(text)
    log = loaded or _NO_PROCESS
    return Observation(
        {
            "role": _role(loaded),
            "leaderEpoch": log.leader_epoch,
            "segments": tuple(
                Fn({"base": base, "records": records, "durable": durable, "torn": torn})
                for base, records, durable, torn in disk.segments
            ),
            "logStart": log.log_start,
            "highWatermark": log.high_watermark,
            "recoveryPoint": log.recovery_point,
            "epochCache": _cache_of(log.epoch_cache),
            "tasks": log.tasks,
            "deleted": disk.deleted,
            "epochFile": _cache_of(disk.epochs),
            "recoveryPointFile": disk.recovery_point,
            "logStartFile": disk.log_start,
            "highWatermarkFile": disk.high_watermark,
            "cleanShutdown": disk.marked,
            "answer": answer,
        }
    )


def _role(loaded: _LoadedLog | None) -> str:
    if loaded is None:
        return "down"
    return "leader" if loaded.leads else "follower"


def _cache_of(entries: _Entries) -> Value:
    return tuple(Fn({"epoch": epoch, "start": start}) for epoch, start in entries)


class KafkaStorageSystem(BridgedSystem):
    """One broker in a JVM with one log directory; a restart is a new LogManager on it."""

    numbered = ""
    variables = (
        *("role", "leaderEpoch", "segments", "logStart", "highWatermark", "recoveryPoint"),
        *("epochCache", "tasks", "deleted", "epochFile", "recoveryPointFile", "logStartFile"),
        *("highWatermarkFile", "cleanShutdown", "answer"),
    )

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        super().__init__(channel, constants, _STEPS, "storage_view", _observed)
        self._settings = {
            "segment": constants["SegmentRecords"],
            "retained": constants["RetainedRecords"],
        }

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A broker that leads in epoch 0, without a record."""
        self._run("storage_reset", self._settings)
