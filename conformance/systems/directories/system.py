"""The system under test: a broker with two log directories, driven by DirectoryMove.tla."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conformance.systems.directories.broker import (
    TOPIC_PARTITION,
    DirectoryRegistration,
    TwoDirectoryBroker,
)
from conformance.systems.directories.mover import Mover
from conformance.systems.directories.observation import OF_BROKER, VARIABLES, DirectoriesView
from conformance.systems.protocol import Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    interrupted,
    take_two_threads,
)
from conformance.tla import Action, Value
from impl.disk import MemoryDisk, everything
from impl.log import Log

_MOVER = frozenset(
    {
        "TruncateToHighWatermark",
        "SendEpochRequest",
        "HandleEpochRequest",
        "ProcessEpochResponse",
        "SendFetch",
        "HandleFetch",
        "ProcessFetchResponse",
    }
)
_METADATA = frozenset({"BecomeLeader", "BecomeFollower", "AddFetcher"})
_ADMINISTRATOR = frozenset({"AlterReplicaLogDirs"})
_THREADS: tuple[frozenset[str], ...] = (
    _MOVER,
    _METADATA,
    _ADMINISTRATOR,
    frozenset({"AppendAsLeader"}),
    frozenset({"AppendAsFollower", "TruncateCurrent", "MarkForTruncation"}),
)
"""Which actions one thread takes: the mover's, the metadata's, an administrator's, a producer's,
the current log's fetcher's."""


_ELECTIONS = frozenset({"BecomeLeader", "BecomeFollower"})
_NOT_BESIDE_ELECTIONS = frozenset({"TruncateCurrent", "MarkForTruncation", "ProcessFetchResponse"})


class DirectoriesSystem(RewindingSystem):
    """One broker, on a disk in memory; an environment that does what the actions say."""

    variables = VARIABLES
    repeatable = True

    def __init__(self) -> None:
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._actions = self._steps()
        self._rewinder = Rewinder(self, apart=(self._actions,))

    def _steps(self) -> dict[str, Callable[..., None]]:
        return {
            "AlterReplicaLogDirs": self._alter,
            "BecomeLeader": lambda: self._elect(leads=True),
            "BecomeFollower": lambda: self._elect(leads=False),
            "AppendAsLeader": lambda: self._broker.append_as_leader(),
            "AppendAsFollower": lambda epoch: self._broker.append_as_follower(epoch),
            "TruncateCurrent": lambda offset: self._broker.truncate(offset),
            "AddFetcher": lambda: self._broker.moves.deliver_added(),
            "MarkForTruncation": lambda: self._broker.moves.deliver_marked(),
            "TruncateToHighWatermark": lambda: self._mover.truncate_to_high_watermark(),
            "SendEpochRequest": lambda: self._mover.send_epoch_request(),
            "SendFetch": lambda: self._mover.send_fetch(),
            "HandleEpochRequest": lambda: self._mover.handle(),
            "HandleFetch": lambda: self._mover.handle(),
            "ProcessEpochResponse": lambda: self._mover.process(),
            "ProcessFetchResponse": lambda: self._mover.process(),
            "FailDirectory": lambda d: self._broker.replicas.handle_log_dir_failure(d),
            "Restart": self._restart,
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A broker that leads in epoch 0, with one record. There is one initial state."""
        self._rewinder.forget()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        self._registration = DirectoryRegistration(-1, -1, leads=True)
        self._start(MemoryDisk())
        self._elect(leads=True)
        self._broker.append_as_leader()
        self._remember_logs()

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        step = step_of(self._actions, action)
        step(*action.args)
        self._remember_logs()

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        self._concurrency.demand_started()
        view = DirectoriesView(self._broker, self._mover, self._current, self._future)
        return Observation({name: value(view) for name, value in OF_BROKER.items()})

    def _remember_logs(self) -> None:
        """Of a directory that fails the logs are seen as they were."""
        partition = self._broker.partition
        if partition is not None and partition.log is not None:
            self._current: Log = partition.log
            if partition.future_log is not None:
                self._future: Log | None = partition.future_log

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """The mover's steps, and what other threads are about to tell it."""
        return _MOVER | {"AddFetcher", "MarkForTruncation"}

    def offers(self) -> frozenset[Action]:
        """What these threads would do next."""
        moves = self._broker.moves
        steps = self._mover.next_steps()
        if moves.added is not None:
            steps.append("AddFetcher")
        if moves.marked is not None:
            steps.append("MarkForTruncation")
        return frozenset(Action(name, ()) for name in steps)

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the broker has locks at which its steps can be stopped."""
        self._interruptible = True
        return True

    @property
    def voluntary(self) -> frozenset[str]:
        """What the broker's threads start by themselves, and what its leader may send."""
        return self.offerable | {"AppendAsFollower"}

    @property
    def unconditional(self) -> frozenset[str]:
        """Nothing: a leader may stop to lead, a move may end."""
        return frozenset()

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of the broker take these.

        Of an election some interruptions are none. It waits for a truncation, the mark included,
        which is a step of its own here. No move begins or is given up until it is over, its
        registration of fetchers included, which is a step of its own, too. And it reads the future
        log's high watermark without the mover's lock, so what it registers may lie between two
        values of the specification: the thread drops what was registered of a move that ended, and
        truncates by epochs.
        """
        names = {running.name, between.name}
        if names & _ELECTIONS and names & _NOT_BESIDE_ELECTIONS:
            return False
        if names & _METADATA and names & _ADMINISTRATOR:
            return False
        return take_two_threads(_THREADS, running, between)

    def in_parts(self, _running: Action, _between: Action) -> bool:
        """Every action is one section under a lock."""
        return False

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of the broker stand still while another takes its action."""
        return interrupted(self._concurrency, self.apply, running, point, between)

    # ---- steps -----------------------------------------------------------------------------

    def _start(self, disk: MemoryDisk) -> None:
        self._broker = self._make_broker(disk)
        self._mover = Mover(self._broker)
        self._future = None

    def _make_broker(self, disk: MemoryDisk) -> TwoDirectoryBroker:
        return TwoDirectoryBroker(disk, self._concurrency)

    def _alter(self, directory: str) -> None:
        self._broker.replicas.alter_replica_log_dir(TOPIC_PARTITION, directory)

    def _elect(self, *, leads: bool) -> None:
        before = self._registration
        self._registration = replace(
            before,
            leader_epoch=before.leader_epoch + 1,
            partition_epoch=before.partition_epoch + 1,
            leads=leads,
        )
        self._broker.elect(self._registration)

    def _restart(self, role: str, saved: bool) -> None:
        """The process is killed: what it has written is there, whether or not it was flushed."""
        if saved:
            self._broker.replicas.checkpoint_high_watermarks()
        else:
            self._broker.forget_checkpoints()
        disk = self._broker.disk
        disk.crash(everything)
        self._start(disk)
        self._elect(leads=role == "leader")
