"""The system under test: one partition's brokers of Kafka itself, driven by Replication.tla.

What the controller decides and what is observed is as for `impl` (`systems/replication`); the
brokers are processes' worth of Kafka's objects in a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from conformance.errors import UserError
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.brokers import BridgedBrokers, IsrChange
from conformance.systems.protocol import ActionRefused, Turn
from conformance.systems.shared.replication.controller import (
    DECISIONS,
    AlterPartitionItem,
    Controller,
    DecidedIsr,
    OfferedSteps,
    PartitionRegistration,
)
from conformance.systems.shared.replication.fetcher_loop import FetcherLoop
from conformance.systems.shared.replication.observation import VARIABLES, ReplicationObserver
from conformance.systems.shared.replication.threads import in_parts
from conformance.systems.shared.replication.views import BrokerView
from conformance.tla import Action, Fn, Value

_MEETS_FETCHES = frozenset({"BecomeLeader", "BecomeFollower", "UpdateIsr", "AppendAsLeader"})
"""What may come between the parts of a fetch's handling, and is one command."""


class KafkaSystem:
    """Kafka's brokers in a JVM, an environment that does what the actions say."""

    variables = VARIABLES
    sometimes: frozenset[str] = frozenset({"channel"})
    """Not where a fetch is read and not counted: what was read is in a handler's hands."""

    def __init__(
        self, channel: AdapterChannel, constants: Mapping[str, Value], metadata_version: str | None
    ) -> None:
        self._channel = channel
        self._metadata_version = metadata_version
        self._names = tuple(sorted(str(name) for name in _set(constants["Brokers"])))
        self._ids = {name: number for number, name in enumerate(self._names, 1)}
        self._all = tuple(self._ids.values())
        self._fine = constants["Fine"] is True
        self._two_step = constants["TwoStepIsr"] is True
        self._observer = ReplicationObserver(self._names)
        self._brokers = BridgedBrokers(channel, len(self._names), partition_epochs=self._two_step)
        self._items: dict[int, AlterPartitionItem] = {}
        self._uncounted: set[int] = set()
        self._actions = self._by_action()
        self._steps = OfferedSteps(self._names, self._fine, self._two_step)

    def _by_action(self) -> dict[str, Callable[..., None]]:
        """What each action of the specification does here."""
        return {
            **{name: partial(self._decide, decision) for name, decision in DECISIONS.items()},
            "BecomeLeader": self._hear,
            "BecomeFollower": self._hear,
            "UpdateIsr": self._hear,
            "AppendAsLeader": self._append_as_leader,
            "AdvanceLogStartOffset": self._advance_log_start_offset,
            "ExpandIsr": partial(self._change_isr, expand=True),
            "ShrinkIsr": partial(self._change_isr, expand=False),
            "SubmitExpandIsr": partial(self._submit, expand=True),
            "SubmitShrinkIsr": partial(self._submit, expand=False),
            "HandleAlterPartition": self._handle_alter_partition,
            "ProcessAlterPartition": self._process_alter_partition,
            "TruncateToHighWatermark": partial(self._brokers.step, "truncate"),
            "SendEpochRequest": partial(self._brokers.step, "send_epoch_request"),
            "SendFetch": partial(self._brokers.step, "send_fetch"),
            "HandleEpochRequest": partial(self._round_trip, "handle"),
            "HandleFetch": partial(self._round_trip, "handle"),
            "HandleListOffsets": partial(self._round_trip, "handle"),
            "ReadFetch": self._read_fetch,
            "CountFetch": self._count_fetch,
            "ProcessEpochResponse": partial(self._brokers.step, "process"),
            "ProcessFetchResponse": partial(self._brokers.step, "process"),
            "ProcessListOffsetsResponse": partial(self._brokers.step, "process"),
            "LoseMessage": partial(self._brokers.step, "lose"),
            "EpochRoundTrip": partial(self._round_trip, "send_epoch_request", "handle", "process"),
            "FetchRoundTrip": partial(self._round_trip, "send_fetch", "handle", "process"),
            "ListOffsetsRoundTrip": partial(self._round_trip, "handle", "process"),
            "Crash": self._crash,
            "Restart": self._restart,
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers with empty logs, in the first leader epoch; only `Init` can be set up."""
        first = cast("Fn", initial["registration"])
        leader, epoch = self._ids[str(first["leader"])], cast("int", first["leaderEpoch"])
        # Kafka ignores a registration whose partition epoch has not grown: they always count here,
        # and are hidden where the specification has no numbers for them.
        self._controller = Controller(
            self._all,
            PartitionRegistration(leader, epoch, frozenset(self._all), 0),
            counts_partition_epochs=True,
        )
        self._items = {}
        self._uncounted = set()
        state = self._controller.registered(epoch)
        self._brokers.reset(dict.fromkeys(self._all, state), self._metadata_version)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if Kafka cannot."""
        ids = self._ids
        self._actions[action.name](
            *[ids[arg] if isinstance(arg, str) else arg for arg in action.args]
        )

    def observe(self) -> Mapping[str, Value]:
        """The observed variables as the brokers' objects have them."""
        registration = self._controller.registration
        if not self._two_step:
            registration = replace(registration, partition_epoch=0)
        seen = self._observer.observe(registration, tuple(map(self._view, self._all)))
        if not self._uncounted:
            return seen
        return {name: value for name, value in seen.items() if name not in self.sometimes}

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)

    def _view(self, broker: int) -> BrokerView:
        return self._brokers.view(broker, self._items.get(broker))

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What brokers start by themselves: ISR changes and the fetchers' next requests."""
        return self._steps.kinds

    def offers(self) -> frozenset[Action]:
        """The ISR changes that leaders would propose, the requests that fetchers would send."""
        running = [broker for broker in self._all if self._view(broker).online]
        changes = [change for leader in running for change in self._conceivable(leader)]
        requests, proposals = self._brokers.intentions(running, changes)
        result = [
            step
            for broker, steps in zip(running, requests, strict=True)
            for step in self._next_requests(broker, steps)
        ]
        result += [
            self._steps.isr_change(
                "ExpandIsr" if change.expand else "ShrinkIsr", change.leader, change.follower
            )
            for change, proposed in zip(changes, proposals, strict=True)
            if proposed and (self._two_step or self._controller.accepts(proposed))
        ]
        return frozenset(result)

    def _next_requests(self, broker: int, steps: Sequence[str]) -> list[Action]:
        leader = self._view(broker).leader
        runs = leader in self._ids.values() and self._view(cast("int", leader)).online
        return self._steps.requests(broker, steps, leader, leader_runs=runs)

    def _conceivable(self, leader: int) -> list[IsrChange]:
        """Changes that a leader may look at; AlterPartitionManager has one in flight at most."""
        if self._view(leader).leader != leader or leader in self._items:
            return []
        followers = [broker for broker in self._all if broker != leader]
        return [
            IsrChange(leader, follower, expand)
            for follower in followers
            for expand in (True, False)
        ]

    # ---- Looping ---------------------------------------------------------------------------

    loop = FetcherLoop()

    @property
    def threads(self) -> tuple[str, ...]:
        """Every broker has a fetcher, as long as it follows."""
        return self._names

    def make_looping(self) -> bool:
        """The bridge needs no preparation; a model must have the steps apart."""
        return self._fine

    def take_turn(self, thread: str, *, lost: bool) -> Turn:
        """ReplicaFetcherThread.doWork of this broker's fetcher, once."""
        follower = self._ids[thread]
        leader = self._view(follower).leader
        if leader not in self._all:
            raise ActionRefused("no fetcher follows the partition")
        asked, waited = self._brokers.do_work(leader, follower, lost=lost)
        return Turn(asked, waited, self.backs_off(thread))

    def backs_off(self, thread: str) -> bool:
        """Whether the partition is delayed in the fetcher."""
        return self._brokers.backs_off(self._ids[thread])

    def end_back_off(self, thread: str) -> None:
        """As if replica.fetch.backoff.ms had passed."""
        self._brokers.step("end_back_off", self._ids[thread])

    # ---- Interruptible ---------------------------------------------------------------------

    unconditional: frozenset[str] = frozenset()

    @property
    def voluntary(self) -> frozenset[str]:
        """What brokers start by themselves."""
        return self.offerable

    def make_interruptible(self) -> bool:
        """A fetch must be handled in a step of its own."""
        return self._fine

    def concurrent(self, running: Action, between: Action) -> bool:
        """A fetch that a leader handles can meet what else that broker does in one command."""
        handles = running.name == "HandleFetch" and running.args[:1] == between.args[:1]
        return handles and between.name in _MEETS_FETCHES

    def in_parts(self, running: Action, between: Action) -> bool:
        """The read and the count are one step of the specification: as for `impl`."""
        return in_parts(running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """The one point: between Partition.fetchRecords' read and updateFollowerFetchState."""
        leader, follower = (self._ids[str(name)] for name in running.args)
        if point == 1 and self._brokers.read_fetch(leader, follower):
            self.apply(between)
            self._brokers.count_fetch(leader, follower)
            return "updateFollowerFetchState"
        if point > 1:
            self.apply(running)
        self.apply(between)
        return ""

    # ---- controller ------------------------------------------------------------------------

    def _decide(self, decision: Callable[..., None], *args: int) -> None:
        decision(self._controller, *args)

    # ---- leader ----------------------------------------------------------------------------

    def _hear(self, broker: int, epoch: int) -> None:
        self._brokers.hear(broker, self._controller.registered(epoch))

    def _append_as_leader(self, leader: int, offset: int) -> None:
        appended = self._brokers.append(leader)
        if appended != offset:
            raise ActionRefused(f"the record was appended at {appended}")

    def _advance_log_start_offset(self, leader: int, offset: int) -> None:
        self._brokers.step("delete_records", leader, offset=offset)

    def _change_isr(self, leader: int, follower: int, *, expand: bool) -> None:
        proposed = self._brokers.change_isr(leader, follower, expand=expand)
        if proposed is not None:
            self._complete(leader, self._controller.alter_partition(leader, proposed))

    def _complete(self, leader: int, decision: DecidedIsr) -> None:
        self._brokers.complete(leader, decision.error, decision.partition_epoch)

    def _submit(self, leader: int, follower: int, *, expand: bool) -> None:
        proposed = self._brokers.change_isr(leader, follower, expand=expand)
        if proposed is not None:
            self._items[leader] = AlterPartitionItem(proposed)

    def _handle_alter_partition(self, leader: int) -> None:
        item = self._items.get(leader)
        if item is None or item.decision is not None:
            raise ActionRefused("no AlterPartition is in flight")
        item.decision = self._controller.alter_partition(leader, item.proposed)

    def _process_alter_partition(self, leader: int) -> None:
        item = self._items.pop(leader, None)
        if item is None or item.decision is None:
            raise ActionRefused("no answer to an AlterPartition has arrived")
        self._complete(leader, item.decision)

    # ---- fetches in two sections (ReplicationInterruptedFetches) -----------------------------

    def _read_fetch(self, leader: int, follower: int) -> None:
        if not self._brokers.read_fetch(leader, follower):
            raise ActionRefused("the fetch was answered, and not counted")
        self._uncounted.add(follower)

    def _count_fetch(self, leader: int, follower: int) -> None:
        self._brokers.count_fetch(leader, follower)
        self._uncounted.discard(follower)

    # ---- round trips, crashes ----------------------------------------------------------------

    def _round_trip(self, *steps_and_brokers: object) -> None:
        *steps, leader, follower = steps_and_brokers
        self._brokers.round_trip(
            cast("int", leader), cast("int", follower), cast("list[str]", steps)
        )

    def _crash(self, broker: int, log_end: int, high_watermark: int) -> None:
        """The process and the machine die: of the log only what lies below `log_end` survives."""
        self._controller.online.discard(broker)
        self._items.pop(broker, None)
        self._brokers.step("crash", broker, log_end=log_end, high_watermark=high_watermark)

    def _restart(self, broker: int) -> None:
        self._controller.online.add(broker)
        self._controller.broker_epochs[broker] += 1
        self._brokers.step("restart", broker)


def _set(value: Value) -> frozenset[Value]:
    if not isinstance(value, frozenset):
        raise UserError("The constant Brokers of the model must be a set of strings.")
    return value
