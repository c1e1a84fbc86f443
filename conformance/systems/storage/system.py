"""The system under test: a log on its disk, driven by LogStorage.tla."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.storage import files
from conformance.systems.storage.broker import (
    LOG_DIRECTORY,
    RETENTION_MS,
    Retention,
    StorageBroker,
)
from conformance.systems.storage.dishonest import refusal
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    interrupted,
    take_two_threads,
)
from conformance.tla import Action, Fn, Value
from impl.checkpoint import OffsetCheckpointFile
from impl.clock import MockClock
from impl.disk import MemoryDisk
from impl.log import Log

_NO_LIMIT = -1
_NO_EPOCH = -1
_BACKGROUND = (
    frozenset({"RunTask"}),
    frozenset({"Retain"}),
    frozenset({"Flush"}),
    frozenset({"CheckpointRecoveryPoint"}),
    frozenset({"CheckpointLogStart"}),
    frozenset({"CheckpointHighWatermark"}),
)
_THREADS: tuple[frozenset[str], ...] = (
    frozenset({"AppendAsLeader"}),
    frozenset({"AppendAsFollower", "LearnLogStart", "Truncate", "StartAnew"}),
    frozenset({"DeleteRecords"}),
    *_BACKGROUND,
)
"""Which actions one thread takes: a producer's, the fetcher's, an administrator's, the scheduler's
threads, of which each task has its own."""


@dataclass(frozen=True, slots=True)
class _View:
    """A broker's process, if there is one, on its disk."""

    disk: MemoryDisk
    broker: StorageBroker | None
    answer: str


def _role(view: _View) -> Value:
    if view.broker is None:
        return "down"
    return "leader" if view.broker.partition.is_leader else "follower"


def _of_log(show: Callable[[Log], Value], absent: Value) -> Callable[[_View], Value]:
    return lambda view: absent if view.broker is None else show(view.broker.log)


def _epoch_cache(log: Log) -> Value:
    cache = log.leader_epoch_cache
    entries = () if cache is None else cache.epoch_entries()
    return tuple(Fn({"epoch": entry.epoch, "start": entry.start_offset}) for entry in entries)


def _on_disk(show: Callable[[MemoryDisk], Value]) -> Callable[[_View], Value]:
    return lambda view: show(view.disk)


_OF_VIEW: dict[str, Callable[[_View], Value]] = {
    "role": _role,
    "leaderEpoch": lambda view: (
        _NO_EPOCH if view.broker is None else view.broker.partition.leader_epoch
    ),
    "segments": _on_disk(files.segments),
    "logStart": _of_log(lambda log: log.log_start_offset, 0),
    "highWatermark": _of_log(lambda log: log.high_watermark, 0),
    "recoveryPoint": _of_log(lambda log: log.recovery_point, 0),
    "epochCache": _of_log(_epoch_cache, ()),
    "tasks": lambda view: () if view.broker is None else view.broker.scheduler.names(),
    "deleted": _on_disk(files.deleted),
    "epochFile": _on_disk(files.epochs),
    "recoveryPointFile": _on_disk(files.checkpoint(OffsetCheckpointFile.RECOVERY_POINT)),
    "logStartFile": _on_disk(files.checkpoint(OffsetCheckpointFile.LOG_START_OFFSET)),
    "highWatermarkFile": _on_disk(files.checkpoint(OffsetCheckpointFile.HIGH_WATERMARK)),
    "cleanShutdown": _on_disk(files.has_mark),
    "answer": lambda view: view.answer,
}
"""Each variable, and how the objects show it. All but the ghosts."""


class StorageSystem(RewindingSystem):
    """One broker, on a disk in memory; an environment that does what the actions say."""

    variables = tuple(_OF_VIEW)
    repeatable = True

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._actions: dict[str, Callable[..., None]] = {
            "Elect": self._elect,
            "AppendAsLeader": lambda: self._up().append_as_leader(),
            "AppendAsFollower": lambda epoch, commits: self._up().append_as_follower(
                epoch, commits=commits
            ),
            "LearnLogStart": lambda offset: self._up().process(log_start_offset=offset),
            "Truncate": lambda offset: self._up().truncate(offset),
            "StartAnew": lambda offset: self._up().start_anew(offset),
            "DeleteRecords": lambda offset: self._expect(
                "NONE", self._up().delete_records(offset).name
            ),
            "TimePasses": lambda: self._clock.sleep(RETENTION_MS + 1),
            "Retain": lambda: self._expect_some(self._up().logs.cleanup_logs()),
            "Flush": lambda: self._up().logs.flush_dirty_logs(),
            "CheckpointRecoveryPoint": lambda: self._up().logs.checkpoint_recovery_points(
                LOG_DIRECTORY
            ),
            "CheckpointLogStart": lambda: self._up().logs.checkpoint_log_start_offsets(
                LOG_DIRECTORY
            ),
            "CheckpointHighWatermark": lambda: self._up().replicas.checkpoint_high_watermarks(),
            "RunTask": lambda number: self._up().scheduler.run(number),
            "Shutdown": lambda: self._shut_down(fails=False),
            "FailingShutdown": lambda: self._shut_down(fails=True),
            "Kill": self._end,
            "LosePower": self._lose_power,
            "Start": self._start,
            "FailToLoad": self._fail_to_load,
            "Refuse": self._refuse,
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A broker that leads in epoch 0, without a record. There is one initial state."""
        self._rewinder.forget()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        self._clock = MockClock(1_000_000)
        self._disk = MemoryDisk()
        self._broker: StorageBroker | None = None
        self._epoch = -1
        self._answer = "NONE"
        self._start("leader")

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        step = step_of(self._actions, action)
        self._answer = "NONE"
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects and the files have them now."""
        self._concurrency.demand_started()
        view = _View(self._disk, self._broker, self._answer)
        return Observation({name: value(view) for name, value in _OF_VIEW.items()})

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What the broker has given its scheduler."""
        return frozenset({"RunTask"})

    def offers(self) -> frozenset[Action]:
        """Each task that waits."""
        waiting = 0 if self._broker is None else len(self._broker.scheduler.names())
        return frozenset(Action("RunTask", (number,)) for number in range(1, waiting + 1))

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the broker has locks at which its steps can be stopped."""
        self._interruptible = True
        return True

    @property
    def voluntary(self) -> frozenset[str]:
        """What the broker's scheduler starts, and what a leader or a client may send."""
        return frozenset().union(*_THREADS)

    @property
    def unconditional(self) -> frozenset[str]:
        """What gives the scheduler tasks: a model bounds how many may wait.

        Where the protocol itself disables one after the other, nothing is judged either.
        """
        return frozenset(
            {"AppendAsLeader", "AppendAsFollower", "DeleteRecords", "LearnLogStart", "Retain"}
        )

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of the broker take these.

        A truncation ends with the recovery point's checkpoint, outside of the log's lock, so
        what another thread changes in the log between may be in that file: not so in the
        specification, where both are one step.
        """
        if running.name in ("Truncate", "StartAnew"):
            return False
        return take_two_threads(_THREADS, running, between)

    def in_parts(self, _running: Action, _between: Action) -> bool:
        """Every action is one section under a lock."""
        return False

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of the broker stand still while another takes its action."""
        return interrupted(self._concurrency, self.apply, running, point, between)

    # ---- steps -----------------------------------------------------------------------------

    def _up(self) -> StorageBroker:
        if self._broker is None:
            raise ActionRefused("there is no process")
        return self._broker

    @staticmethod
    def _expect(expected: str, answered: str) -> None:
        if answered != expected:
            raise ActionRefused(f"the answer is {answered}")

    @staticmethod
    def _expect_some(segments: int) -> None:
        if segments == 0:
            raise ActionRefused("no segment is to be deleted")

    def _elect(self, role: str) -> None:
        self._epoch += 1
        self._up().elect(self._epoch, leads=role == "leader")

    def _start(self, role: str) -> None:
        if self._broker is not None:
            raise ActionRefused("the process is there")
        self._unwilling = files.UnwillingDisk(self._disk)
        self._broker = StorageBroker(
            self._unwilling, self._retention, self._clock, self._concurrency
        )
        self._elect(role)

    def _end(self) -> None:
        self._up()
        self._broker = None

    def _shut_down(self, *, fails: bool) -> None:
        broker = self._up()
        self._unwilling.fails = fails
        broker.replicas.shutdown()
        self._end()

    def _lose_power(self, number: int, kept: int, torn: bool) -> None:
        self._end()
        self._disk.crash(files.losing(self._disk, number, kept, torn=torn))

    def _fail_to_load(self) -> None:
        """The broker goes without its directory, and is shut down in order."""
        unwilling = files.UnwillingDisk(self._disk)
        unwilling.fails = True
        broker = StorageBroker(unwilling, self._retention, self._clock, self._concurrency)
        broker.replicas.shutdown()

    def _refuse(self, message: str) -> None:
        self._answer = refusal(self._up(), message)


def create(constants: Mapping[str, Value]) -> StorageSystem:
    """The system; what the topic keeps differs from model to model."""
    segment, retained = constants["SegmentRecords"], constants["RetainedRecords"]
    assert isinstance(segment, int)
    assert isinstance(retained, int)
    return StorageSystem(Retention(segment, None if retained == _NO_LIMIT else retained))
