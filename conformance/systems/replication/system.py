"""The system under test: one partition's brokers, driven by the actions of Replication.tla."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, CannotSnapshot, Observation, Turn
from conformance.systems.replication.broker import (
    LOG_DIRECTORY,
    BrokerSettings,
    CrashableDisk,
    MakeRequests,
)
from conformance.systems.replication.cluster import ReplicationCluster
from conformance.systems.replication.cluster_view import ClusterView
from conformance.systems.replication.failing_disk import FailingDisk
from conformance.systems.replication.fetcher_turns import FetcherTurns
from conformance.systems.replication.steps import STEPS
from conformance.systems.rewinding import Rewinder, Snapshot
from conformance.systems.shared.replication.fetcher_loop import FetcherLoop
from conformance.systems.shared.replication.model import names_in, partition_model
from conformance.systems.shared.replication.observation import VARIABLES
from conformance.systems.shared.replication.offers import OfferedSteps
from conformance.systems.shared.replication.threads import concurrent, in_parts, of_log_start
from conformance.systems.threads import InterruptibleThreads
from conformance.tla import Action, Value
from impl.disk import MemoryDisk
from impl.real_disk import ShadowedDisk
from impl.types import ProtocolConfig

PROTOCOLS = {
    "Kip320": ProtocolConfig(truncation_on_fetch=False),
    "TruncateOnFetch": ProtocolConfig(truncation_on_fetch=True),
}
"""The implementation's switch for each protocol of the spec that it implements."""


class ReplicationSystem:
    """A cluster of brokers, and what the harness can do with it besides stepping it."""

    variables = VARIABLES
    repeatable = True
    unconditional: frozenset[str] = frozenset()
    """A leader may stop to lead, a fetcher to follow."""
    loop = FetcherLoop()

    def __init__(
        self,
        constants: Mapping[str, Value],
        make_disk: Callable[[str], CrashableDisk],
        *,
        min_insync_replicas: int = 1,
        make_requests: MakeRequests | None = None,
    ) -> None:
        model = self._model = partition_model(constants)
        failing = names_in(constants, "FailingBrokers") if "FailingBrokers" in constants else ()
        # A reset to the leader's log start waits for ListOffsets with a lock held, and ends in a
        # later action: its thread cannot stand still anywhere else.
        self._resets = True in (constants["LogStartMoves"], constants["UncleanElection"])
        self._restarts = constants["Crashes"] is True or bool(failing)
        settings = BrokerSettings(
            _protocol(constants["Protocol"]),
            two_step_isr=model.two_step,
            min_insync_replicas=min_insync_replicas,
        )

        def disk(name: str) -> CrashableDisk:
            made = make_disk(name)
            return FailingDisk(made, LOG_DIRECTORY) if name in failing else made

        self.cluster = ReplicationCluster(model, settings, disk, make_requests)
        self._view = ClusterView(self.cluster)
        self._steps = OfferedSteps(model, self.cluster.controller)
        self._turns = FetcherTurns(self.cluster)
        self._rewinder = Rewinder(self, apart=self.remembered)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, initial: Mapping[str, Value]) -> None:
        """As `ReplicationCluster.reset`."""
        self._rewinder.forget()
        self._view.begin()
        self.cluster.reset(initial)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        ids = self._model.ids
        self._view.forget([ids[arg] for arg in action.args if isinstance(arg, str)])
        STEPS[action.name](self.cluster, *self._model.arguments(action))

    def observe(self) -> Observation:
        """The observed variables as the brokers' objects have them now."""
        return self._view.observe()

    def look_again(self) -> None:
        """Something has changed brokers that no action names."""
        self._view.forget_all()

    # ---- Snapshots -------------------------------------------------------------------------

    @property
    def remembered(self) -> tuple[object, ...]:
        """What is true in every state: not a part of any snapshot."""
        return (self._model, *self._view.remembered)

    def snapshot(self) -> Snapshot:
        """The brokers, their disks in memory, the controller and what is under way."""
        if any(channel.waits for channel in self.cluster.channels.values()):
            raise CannotSnapshot("a fetcher waits for an answer to ListOffsets")
        return self._rewinder.take()

    def restore(self, snapshot: Snapshot) -> None:
        """All of it as it was."""
        self.cluster.end_threads()
        self._rewinder.restore(snapshot)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers start by themselves: ISR changes and the fetchers' next requests."""
        return self._steps.kinds

    def offers(self) -> frozenset[Action]:
        """The ISR changes that leaders would propose, the requests that fetchers would send."""
        running = [broker for broker, runs in self.cluster.online.items() if runs]
        return frozenset(step for broker in running for step in self._offered_by(broker))

    def _offered_by(self, broker: int) -> list[Action]:
        cluster, channel = self.cluster, self.cluster.channels[broker]
        steps = channel.next_steps()
        leader = channel.leader() if steps and not self._model.fine else None
        runs = leader is not None and cluster.online[leader]
        requests = self._steps.requests(broker, steps, leader, leader_runs=runs)
        return [*requests, *self._steps.isr_changes(cluster.brokers[broker].proposals())]

    # ---- Looping ---------------------------------------------------------------------------

    @property
    def threads(self) -> tuple[str, ...]:
        """Every broker has a fetcher, as long as it follows."""
        return self._model.names

    def make_looping(self) -> bool:
        """From the next reset on leaders answer fetchers at once, and errors are waited out."""
        if self._model.fine:
            self._turns.begin()
        return self._model.fine

    def take_turn(self, thread: str, *, lost: bool) -> Turn:
        """AbstractFetcherThread.doWork of this broker's fetcher, once."""
        self.look_again()  # the leader changes, too
        return self._turns.take(self._model.ids[thread], lost=lost)

    def backs_off(self, thread: str) -> bool:
        """Whether the partition is delayed in the fetcher."""
        return self._turns.backs_off(self._model.ids[thread])

    def end_back_off(self, thread: str) -> None:
        """Let the broker's clock go on by as much."""
        self._turns.end_back_off(self._model.ids[thread])

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on brokers have locks at which their steps can be stopped."""
        self.cluster.is_interruptible = True
        return True

    @property
    def voluntary(self) -> frozenset[str]:
        """What brokers start by themselves."""
        return self.offerable

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of one broker take these."""
        if self._resets:
            return of_log_start(running, between)
        return concurrent(running, between, restarts=self._restarts)

    def in_parts(self, running: Action, between: Action) -> bool:
        """Whether one is a single step of the spec that the other may see in parts."""
        return in_parts(running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of a broker stand still while another takes its action."""
        return self.interrupt_calls(lambda: self.apply(running), point, lambda: self.apply(between))

    def interrupt_calls(
        self, running: Callable[[], None], point: int, between: Callable[[], None]
    ) -> str:
        """As `interrupt`, of two calls that take steps of these brokers."""
        threads = self.cluster.concurrency
        if not isinstance(threads, InterruptibleThreads):
            raise ActionRefused("the steps of these brokers cannot be interrupted")
        return threads.interrupt(running, point, between)


def _protocol(value: Value) -> ProtocolConfig:
    protocol = PROTOCOLS.get(str(value))
    if protocol is None:
        raise UserError(
            f"The implementation does not speak the protocol {value!r}: the historical variants "
            f"exist in the spec only. Replay a model of {' or '.join(PROTOCOLS)}."
        )
    return protocol


def create(constants: Mapping[str, Value]) -> ReplicationSystem:
    """The system on disks in memory, which lose in a crash what real ones would."""
    return ReplicationSystem(constants, lambda _name: MemoryDisk())


def create_on_files(constants: Mapping[str, Value]) -> FileReplicationSystem:
    """The system on real files with fsync, in a temporary folder of its own."""
    return FileReplicationSystem(constants)


_MEMORY = Path("/dev/shm")


def _scratch() -> Path:
    """TMPDIR where it is set; else files in memory: a disk's fsync takes longer than all steps.

    What is tested is which files are written, flushed, renamed and read, not how long it takes.
    """
    in_memory = "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK)
    return Path(tempfile.mkdtemp(prefix="kconform-", dir=_MEMORY if in_memory else None))


class FileReplicationSystem(ReplicationSystem):
    """The system on real files; `close` removes them."""

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._folder = _scratch()
        self._runs = 0

        def make_disk(name: str) -> CrashableDisk:
            return ShadowedDisk(self._folder / str(self._runs) / name)

        super().__init__(constants, make_disk)

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers on empty folders."""
        shutil.rmtree(self._folder / str(self._runs), ignore_errors=True)
        self._runs += 1
        super().reset(initial)

    def snapshot(self) -> Snapshot:
        """None: files stay as they are."""
        raise CannotSnapshot("the logs are files")

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
