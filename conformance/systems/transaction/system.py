"""The system under test: coordinators of one transactional id, and the partitions that it writes.

Driven by Transactions.tla and what extends it. Requests, call-backs of appends, loads and
answers wait for an action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    WholeSections,
    interrupted,
)
from conformance.systems.transaction.epochs import NEVER
from conformance.systems.transaction.observation import StepOrigin
from conformance.systems.transaction.offers import OFFERABLE, candidates
from conformance.systems.transaction.parts import FENCING
from conformance.systems.transaction.refusals import (
    deliver_outdated_marker,
    refuse_add_partition,
    refuse_batch,
    refuse_end,
    refuse_verification,
    refuse_waiting_batch,
)
from conformance.systems.transaction.settings import TransactionSettings
from conformance.systems.transaction.step_clock import StepClock
from conformance.systems.transaction.steps import (
    append_batch,
    restart_leader,
    start_verification,
    take_added,
    take_end,
    take_producer_id,
    verify,
    write_marker,
)
from conformance.systems.transaction.threads import concurrent, in_parts
from conformance.systems.transaction.world import TransactionParts, TransactionWorld, impl_parts
from conformance.tla import Action, Value
from impl.clock import Clock
from impl.errors import KafkaException
from impl.transaction.transaction_state import COMPLETES

_Parts = Callable[[TransactionSettings, str, Clock], TransactionParts]


class TransactionSteps:
    """Coordinators, partitions, and a network that keeps requests until an action delivers them.

    `parts` makes what is under test, given the broker that leads first; `step` says which of two
    steps that take turns asks.
    """

    variables = (
        "leader", "tenure", "transactionLog", "replicated", "coordinators", "calls", "requests",
        "clients", "log", "highWatermark", "entry", "verifying", "leaderless",
    )  # fmt: skip

    def __init__(
        self, settings: TransactionSettings, parts: _Parts, step: Callable[[], str] = lambda: ""
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._step = step
        self._actions: dict[str, tuple[Callable[..., None], Callable[..., StepOrigin]]] = {
            "TakeProducerId": (self._of_world(take_producer_id), _nobody),
            "BeginTransaction": (lambda i: self._world.clients.begin_transaction(i), _nobody),
            "TakeAdded": (self._of_world(take_added), _nobody),
            "SendBatch": (lambda i, p: self._world.clients.send_batch(i, p), _nobody),
            "EndTransaction": (
                lambda i, commits: self._world.clients.end_transaction(i, commits=commits),
                _nobody,
            ),
            "TakeEnd": (self._of_world(take_end), _nobody),
            "TakeEndWithId": (self._of_world(take_end), _nobody),
            "HandleInitProducerId": (self._init_producer_id, lambda _c, i: StepOrigin(client=i)),
            "BeginFence": (self._begin_fence, _nobody),
            "EndFence": (
                lambda c: self._appending(self._world.brokers[c].end_fence),
                _nobody,
            ),
            "AddPartitionOfClient": (
                self._add_partition_of_client,
                lambda _c, client, _p: self._world.origin_of_client(client),
            ),
            "AddPartitionOfLeader": (
                self._add_partition_of_leader,
                lambda c, p: self._world.origin_of_batch(c, p),
            ),
            "Verify": (self._of_world(verify), _nobody),
            "HandleEndTxn": (self._handle_end_txn, lambda _c, t, _commits: StepOrigin(request=t)),
            "AcknowledgeAppend": (
                self._acknowledge_append,
                lambda c, tenure: self._world.origin_of_append(c, tenure),
            ),
            "FailAppend": (self._fail_append, _nobody),
            "AcknowledgeMarker": (self._acknowledge_marker, _nobody),
            "CompleteTransaction": (
                lambda c: self._appending(self._world.brokers[c].complete_transaction),
                _nobody,
            ),
            "Elect": (self._elect, _nobody),
            "Load": (self._load, _nobody),
            "StartVerification": (self._of_world(start_verification), _nobody),
            "AppendBatch": (self._of_world(append_batch), _nobody),
            "WriteMarker": (self._of_world(write_marker), _nobody),
            "Replicate": (lambda p: self._world.partitions[p].leader.replicate(), _nobody),
            "ElectLeader": (lambda p, end: self._world.partitions[p].leader.elect(end), _nobody),
            "StopLeader": (lambda p: self._world.partitions[p].stop(), _nobody),
            "RestartLeader": (self._of_world(restart_leader), _nobody),
            "StartVerificationOfOvertaking": (self._of_world(start_verification), _nobody),
            "RefuseVerification": (self._of_world(refuse_verification), _nobody),
            "RefuseBatch": (self._of_world(refuse_batch), _nobody),
            "DeliverOutdatedMarker": (self._of_world(deliver_outdated_marker), _nobody),
            "RefuseAddPartition": (self._of_world(refuse_add_partition), _nobody),
            "ExpireId": (
                lambda c: self._appending(lambda: self._world.expire_ids(c)),
                _nobody,
            ),
            "CallBackLate": (
                lambda c, tenure: self._world.state.acknowledge(c, tenure),
                _nobody,
            ),
            "RefuseAddOfExpired": (self._of_world(refuse_add_partition), _nobody),
            "RefuseEndOfExpired": (self._of_world(refuse_end), _nobody),
            "RefuseBatchOfExpired": (self._of_world(refuse_waiting_batch), _nobody),
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, initial: Mapping[str, Value]) -> None:
        """The first coordinator has given instance `a` its epoch."""
        leader = str(initial["leader"])
        clock = StepClock(self._step)
        parts = self._parts(self._settings, leader, clock)
        self._world = TransactionWorld(self._settings, parts, clock)
        self._world.brokers[leader].elect(1)
        self._world.brokers[leader].load()
        if self._settings.last_epoch != NEVER:
            self._world.brokers[leader].begin()
        self._world.tick(StepOrigin(client="a"))
        self._init_producer_id(leader, "a")
        self._acknowledge_append(leader, 1)
        take_producer_id(self._world, "a", leader)

    def apply(self, action: Action) -> None:
        """Let an instance, a coordinator or a partition take one step."""
        step, origin = step_of(self._actions, action)
        self._world.tick(origin(*action.args))
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        return self._world.observe()

    # ---- coordinators ----------------------------------------------------------------------

    def _init_producer_id(self, name: str, client: str) -> None:
        self._appending(lambda: self._world.brokers[name].init_producer_id(client))

    def _appending(self, request: Callable[[], None]) -> None:
        before = len(self._world.state.in_flight)
        request()
        if len(self._world.state.in_flight) == before:
            raise ActionRefused("the coordinator appends nothing")

    def _begin_fence(self, name: str) -> None:
        """An instance asks for an epoch; if none does, the transaction's time is over."""
        asking = self._world.clients.names_in("Initializing")
        was_fenced = self._is_fenced(name)
        if not asking:
            self._world.time_out()
        self._world.brokers[name].begin_fence(asking[0] if asking else None)
        if was_fenced or not self._is_fenced(name):
            raise ActionRefused(f"{name} fences no transaction")

    def _is_fenced(self, name: str) -> bool:
        known = self._world.brokers[name].known
        return known is not None and known.pending == FENCING

    def _add_partition_of_client(self, name: str, client: str, partition: str) -> None:
        self._add_partition(name, partition, self._world.clients.by_name[client].epoch)

    def _add_partition_of_leader(self, name: str, partition: str) -> None:
        self._add_partition(name, partition, self._world.waiting(name, partition)[0].epoch)

    def _add_partition(self, name: str, partition: str, epoch: int) -> None:
        broker, leader = self._world.brokers[name], self._world.partitions[partition]
        self._appending(lambda: broker.add_partition(leader.topic_partition, epoch))

    def _handle_end_txn(self, name: str, txn: int, commits: bool) -> None:
        broker = self._world.brokers[name]
        epoch = self._world.network.epoch_of_end(txn, commits=commits)
        is_fenced = self._is_fenced(name)
        self._appending(lambda: broker.end_transaction(txn, epoch, commits=commits))
        if is_fenced:
            broker.end_fence()  # finds that the client was faster

    def _acknowledge_append(self, name: str, tenure: int) -> None:
        self._world.state.acknowledge(name, tenure)
        self._world.send_markers(name)

    def _fail_append(self, name: str) -> None:
        tenure = self._world.state.tenure
        if any(
            append.record.txn_state in COMPLETES
            for append in self._world.state.in_flight
            if (append.broker, append.tenure) == (name, tenure)
        ):
            raise ActionRefused("the append of a completion is repeated for ever")
        self._world.state.fail(name)

    def _acknowledge_marker(self, name: str, partition: str) -> None:
        """The partition's leader answers that the marker is replicated."""
        broker = self._world.brokers[name]
        for sent in list(self._world.network.markers.values()):
            is_own = sent.partition == partition and sent.coordinator_epoch == broker.tenure
            if is_own and self._world.partitions[partition].log.has_replicated(sent):
                broker.complete_marker(sent)
                self._world.network.answered_marker(sent)
                return
        raise ActionRefused(f"{partition} has no marker of {name}")

    def _elect(self, name: str, end: int) -> None:
        if end < self._world.state.high_watermark:
            raise ActionRefused("whoever is elected has what is replicated")
        self._world.state.elect(name, end)
        self._world.network.forget_markers()
        self._world.brokers[name].elect(self._world.state.tenure)

    def _load(self, name: str) -> None:
        broker, state = self._world.brokers[name], self._world.state
        broker.load()
        if self._settings.replicates_loads:
            state.replicate()
        self._world.send_markers(name)

    def _of_world(self, step: Callable[..., None]) -> Callable[..., None]:
        return lambda *args: step(self._world, *args)


class ChosenBatches(TransactionSteps):
    """With offsets partitions several batches of one epoch wait for the coordinator.

    The network says which of them it is asked about.
    """

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """Ask about the batch that is verified there."""
        verifying = wanted["verifying"]
        assert isinstance(verifying, frozenset)
        self._world.preferred = verifying

    def apply(self, action: Action) -> None:
        """See `TransactionSteps.apply`: a choice is for one step."""
        try:
            super().apply(action)
        finally:
            self._world.preferred = ()


class TransactionSystem(WholeSections, RewindingSystem, TransactionSteps):
    """The same of `impl`."""

    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        super().__init__(
            TransactionSettings.of(constants),
            lambda settings, leader, clock: impl_parts(settings, leader, clock, self._threads),
            lambda: self._threads.step,
        )
        self._threads: StartedThreads | InterruptibleThreads = StartedThreads()
        self._interruptible = False
        self._rewinder = Rewinder(self, apart=(self._actions, self._settings))

    def reset(self, initial: Mapping[str, Value]) -> None:
        """See `TransactionSteps.reset`."""
        self._rewinder.forget()
        if self._interruptible:
            self._threads = InterruptibleThreads()
        super().reset(initial)

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on brokers have locks at which their steps can be stopped."""
        self._interruptible = True
        return True

    @property
    def voluntary(self) -> frozenset[str]:
        """A load that an election has come into the middle of is given up."""
        return frozenset({"Load"})

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of one broker take these."""
        expires = self._settings.epochs_of_id != NEVER
        return concurrent(running, between, expires=expires)

    def in_parts(self, running: Action, between: Action) -> bool:
        """Whether an election comes between the parts of a call-back."""
        return in_parts(running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of a broker stand still while another takes its action."""
        return interrupted(self._threads, self.apply, running, point, between)

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers do with the requests that have arrived, and by themselves."""
        return OFFERABLE if self._settings.max_expiries else OFFERABLE - {"ExpireId"}

    def offers(self) -> frozenset[Action]:
        """What they would do now: each step is tried and taken back."""
        before = self.snapshot()
        offered = set()
        for action in candidates(self._world):
            try:
                self.apply(action)
                offered.add(action)
            except (ActionRefused, KafkaException):
                pass
            self.restore(before)
        return frozenset(offered)


class ChoosingTransactionSystem(ChosenBatches, TransactionSystem):
    """The same with offsets partitions."""


def _nobody(*_args: object) -> StepOrigin:
    return StepOrigin()
