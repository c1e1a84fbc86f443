"""The actions of ShareCoordinator.tla, for whatever stores the state of a share partition.

Played here are the group coordinator, the leaders of the partition, and the requests under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.tla import Action, Fn, Value, make_function

VARIABLES: Final = (
    *("share", "complete", "fences", "updates", "cold"),
    *("group", "leaders", "writes", "answer"),
)
NO_EPOCH: Final = -1
UNINITIALIZED: Final = -1
STATES: Final = {0: "AVAILABLE", 2: "ACKNOWLEDGED", 4: "ARCHIVED"}
"""RecordState by its id, of what is stored."""
STATE_IDS: Final = {state: number for number, state in STATES.items()}
_TERMINAL: Final = ("ACKNOWLEDGED", "ARCHIVED")
_STATES: Final = {"ACCEPT": "ACKNOWLEDGED", "RELEASE": "AVAILABLE", "REJECT": "ARCHIVED"}

RecordStates = Mapping[int, tuple[str, int]]
"""By offset a record's state and delivery count; what is not there was never given out."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """WriteShareGroupState of one record."""

    leader: int
    epoch: int
    generation: int
    start: int
    complete: int
    offset: int
    state: str
    count: int


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """What ReadShareGroupState is answered; of an error all else is empty."""

    error: str
    epoch: int = NO_EPOCH
    start: int = UNINITIALIZED
    records: RecordStates = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareView:
    """What is stored of the share partition; `complete` is None before 4.2: not counted."""

    known: bool = False
    epoch: int = NO_EPOCH
    leader: int = NO_EPOCH
    start: int = UNINITIALIZED
    complete: int | None = 0
    records: RecordStates = field(default_factory=dict)
    leader_fence: int = NO_EPOCH
    epoch_fence: int = NO_EPOCH
    updates: int = NO_EPOCH
    cold: bool = False


class StoreOfShares(Protocol):
    """The shard of a share coordinator with one share partition. Errors are names of `Errors`."""

    def reset(self) -> None:
        """Nothing is stored."""

    def initialize(self, epoch: int, start: int) -> str:
        """InitializeShareGroupState."""

    def read(self, leader: int) -> ReadAnswer:
        """ReadShareGroupState."""

    def write(self, request: WriteRequest) -> str:
        """WriteShareGroupState."""

    def write_nothing(self, leader: int | None, epoch: int | None) -> str:
        """The same without a record; None: what the state has."""

    def delete(self) -> str:
        """DeleteShareGroupState."""

    def snapshot_cold(self) -> None:
        """The job that writes snapshots of what had none for long."""

    def fail_over(self, *, pruned: bool) -> None:
        """Another shard loads the log, or what is left of it."""

    def view(self) -> ShareView:
        """What is stored."""


@dataclass(frozen=True, slots=True)
class _Leader:
    """A SharePartition, and what it knows of its records."""

    alive: bool = False
    epoch: int = NO_EPOCH
    generation: int = 0
    start: int = 0
    records: RecordStates = field(default_factory=dict)


_NO_LEADER = _Leader()


class PersisterSteps:
    """One share partition: its coordinator's store, and all who ask it."""

    variables: tuple[str, ...] = VARIABLES

    def __init__(self, constants: Mapping[str, Value], store: StoreOfShares) -> None:
        self._records = _number(constants, "Records")
        self._limit = _number(constants, "DeliveryLimit")
        epochs = constants["LeaderEpochs"]
        assert isinstance(epochs, frozenset), "a set in every model"
        self._epochs = sorted(epoch for epoch in epochs if isinstance(epoch, int))
        self._store = store
        self._actions: dict[str, Callable[..., None]] = {
            "Join": self._join,
            "Alter": self._alter,
            "Initialize": self._initialize,
            "Delete": self._delete,
            "Read": self._read,
            "Acknowledge": self._acknowledge,
            "Write": self._write,
            "SnapshotCold": self._snapshot_cold,
            "FailOver": lambda pruned: self._store.fail_over(pruned=pruned),
            "HandleForged": self._handle_forged,
        }

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """The group is empty, and nothing is stored."""
        self._store.reset()
        self._group_epoch = 0
        self._initialized = False
        self._requests: list[tuple[int, int]] = []
        self._leaders = dict.fromkeys(self._epochs, _NO_LEADER)
        self._writes: list[WriteRequest] = []
        self._generation = 0
        self._answer = "none"

    def apply(self, action: Action) -> None:
        """Let a member, an administrator, a leader, the coordinator or time take one step."""
        step = step_of(self._actions, action)
        self._answer = "none"
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables; `complete` is none of a release that does not count."""
        view = self._store.view()
        observed: dict[str, Value] = {
            "share": Fn(
                {
                    "known": view.known,
                    "epoch": view.epoch,
                    "leader": view.leader,
                    "start": view.start,
                    "rec": self._states(view.records),
                }
            ),
            "fences": Fn({"leader": view.leader_fence, "epoch": view.epoch_fence}),
            "updates": view.updates,
            "cold": view.cold,
            "group": Fn({"epoch": self._group_epoch, "initialized": self._initialized}),
            "leaders": make_function({n: self._leader(each) for n, each in self._leaders.items()}),
            "writes": tuple(map(_write, self._writes)),
            "answer": self._answer,
        }
        if view.complete is not None:
            observed["complete"] = view.complete
        return Observation(observed)

    # ---- the group coordinator -------------------------------------------------------------

    def _join(self) -> None:
        if self._initialized:
            raise ActionRefused("the partition is initialised")
        self._group_epoch += 1
        self._requests.append((self._group_epoch, UNINITIALIZED))

    def _alter(self, start: int) -> None:
        self._group_epoch += 1
        self._requests.append((self._group_epoch, start))

    def _initialize(self, number: int) -> None:
        epoch, start = self._requests[number - 1]
        self._answer = self._store.initialize(epoch, start)
        if self._answer == "NONE":
            self._initialized = True
            self._generation = number

    def _delete(self) -> None:
        self._answer = self._store.delete()
        self._initialized = False
        self._generation = 0

    # ---- the leaders -----------------------------------------------------------------------

    def _read(self, epoch: int) -> None:
        """SharePartition.maybeInitialize: a start that nobody knows is the earliest offset."""
        answer = self._store.read(epoch)
        self._answer = answer.error
        if answer.error == "NONE":
            self._leaders[epoch] = _Leader(
                True, answer.epoch, self._generation, max(answer.start, 0), answer.records
            )

    def _acknowledge(self, epoch: int, offset: int, kind: str) -> None:
        leader = self._leaders[epoch]
        count = leader.records.get(offset, ("NONE", 0))[1] + 1
        state = _STATES[kind]
        if state == "AVAILABLE" and count >= self._limit:
            state = "ARCHIVED"
        records = {**leader.records, offset: (state, count)}
        start = leader.start
        while start in records and records[start][0] in _TERMINAL:
            start += 1
        complete = sum(o >= start and s in _TERMINAL for o, (s, _) in records.items())
        self._leaders[epoch] = replace(leader, start=start, records=records)
        self._writes.append(
            WriteRequest(
                epoch, leader.epoch, leader.generation, start, complete, offset, state, count
            )
        )

    def _write(self, number: int, again: bool) -> None:
        if number > len(self._writes):
            raise ActionRefused(f"no write {number} is under way")
        request = self._writes[number - 1]
        self._answer = self._store.write(request)
        if again:
            return
        del self._writes[number - 1]
        leader = self._leaders[request.leader]
        if self._answer != "NONE" and leader.generation == request.generation:
            self._leaders[request.leader] = _NO_LEADER

    # ---- time, and what nobody should send -------------------------------------------------

    def _snapshot_cold(self) -> None:
        self._store.snapshot_cold()

    def _handle_forged(self, kind: str) -> None:
        """By which error it is refused is left open."""
        error = self._forged(kind)
        self._answer = error if error == "NONE" else "refused"

    def _forged(self, kind: str) -> str:
        if kind == "Read":
            return self._store.read(NO_EPOCH).error
        if kind == "Initialize":
            return self._store.initialize(NO_EPOCH, UNINITIALIZED)
        if kind == "WriteLeaderEpoch":
            return self._store.write_nothing(NO_EPOCH, None)
        return self._store.write_nothing(None, NO_EPOCH)

    # ---- as the specification has it -------------------------------------------------------

    def _states(self, records: RecordStates) -> Value:
        return make_function(
            {
                offset: Fn(
                    dict(zip(("state", "count"), records.get(offset, ("NONE", 0)), strict=True))
                )
                for offset in range(self._records)
            }
        )

    def _leader(self, leader: _Leader) -> Value:
        return Fn(
            {
                "alive": leader.alive,
                "epoch": leader.epoch,
                "generation": leader.generation,
                "start": leader.start,
                "rec": self._states(leader.records),
            }
        )


def _record(state: str, count: int) -> Value:
    return Fn({"state": state, "count": count})


def _write(request: WriteRequest) -> Value:
    names = ("leader", "epoch", "generation", "start", "complete", "offset", "state", "count")
    return Fn({name: getattr(request, name) for name in names})


def _number(constants: Mapping[str, Value], name: str) -> int:
    value = constants[name]
    if not isinstance(value, int):
        raise UserError(f"{name} must be a number.")
    return value
