"""The system under test: one share partition, without a coordinator behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.share.surroundings import HeldPersister, LockTask, LockTimer, Write
from conformance.tla import Action, Fn, Value, make_function
from impl.errors import Errors
from impl.share.in_flight_state import EMPTY_MEMBER_ID, InFlightState
from impl.share.share_partition import AcknowledgeType, SharePartition

_NO_MEMBER = "none"
_NOT_CACHED = Fn(
    {"state": "NONE", "count": 0, "member": _NO_MEMBER, "owner": _NO_MEMBER, "timer": "NONE"}
)


class ShareSystem(RewindingSystem):
    """A share partition whose locks and writes wait for an action."""

    variables = ("rec", "start", "end", "flag", "writes", "logStart", "answer")
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._records = _number(constants, "Records")
        self._locks = _number(constants, "MaxInFlight")
        self._deliveries = _number(constants, "DeliveryLimit")
        self._actions: dict[str, Callable[..., None]] = {
            "Acquire": self._acquire,
            "Acknowledge": self._acknowledge,
            "EndSession": self._end_session,
            "CompleteWrite": lambda number, ok: self._persister.complete(number, ok),
            "ExpireLock": self._expire_lock,
            "MoveLogStart": self._move_log_start,
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Nothing was given out yet."""
        self._rewinder.forget()
        self._persister = HeldPersister()
        self._partition = SharePartition(
            self._locks, self._deliveries, LockTimer(), self._persister
        )
        self._log_start = 0
        self._answer = "none"

    def apply(self, action: Action) -> None:
        """Let a member, the coordinator, time or the log take one step."""
        step = step_of(self._actions, action)
        self._answer = "none"
        self._persister.kind = "timeout" if action.name == "ExpireLock" else "ack"
        step(*action.args)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        partition = self._partition
        cached = partition.cached_state
        return Observation(
            {
                "rec": make_function({o: _record(cached.get(o)) for o in range(self._records)}),
                "start": partition.start_offset,
                "end": partition.end_offset,
                "flag": partition.find_next_fetch_offset,
                "writes": tuple(map(_write, self._persister.writes)),
                "logStart": self._log_start,
                "answer": self._answer,
            }
        )

    # ---- actions ---------------------------------------------------------------------------

    def _acquire(self, member: str, size: int) -> None:
        if not self._partition.can_acquire_records():
            raise ActionRefused("nothing can be acquired")
        offset = self._partition.next_fetch_offset()
        self._partition.acquire(member, size, offset, self._records - 1)

    def _acknowledge(self, member: str, first: int, last: int, kind: str) -> None:
        offsets = range(first, last + 1)
        self._partition.acknowledge(member, offsets, AcknowledgeType[kind], self._done)

    def _end_session(self, member: str) -> None:
        self._partition.release_acquired_records(member, self._done)

    def _done(self, error: Errors) -> None:
        if error is Errors.NONE:
            self._answer = "ok"
        else:
            self._answer = "refused" if error is Errors.INVALID_RECORD_STATE else "failed"

    def _expire_lock(self, offset: int) -> None:
        record = self._partition.cached_state.get(offset)
        task = record.lock_task if record else None
        if not isinstance(task, LockTask) or task.has_expired:
            raise ActionRefused(f"no lock of offset {offset} runs")
        task.expire()

    def _move_log_start(self, to: int) -> None:
        """A fetch from the next offset on is out of range."""
        self._partition.next_fetch_offset()
        self._partition.update_cache_and_offsets(to)
        self._log_start = to


def _number(constants: Mapping[str, Value], name: str) -> int:
    value = constants[name]
    if not isinstance(value, int):
        raise UserError(f"{name} must be a number.")
    return value


def _record(record: InFlightState | None) -> Value:
    if record is None:
        return _NOT_CACHED
    return Fn(
        {
            "state": str(record.state),
            "count": record.delivery_count,
            "member": _member(record.member_id),
            "owner": _member(record.rollback_member_id),
            "timer": _timer(record),
        }
    )


def _member(identity: str | None) -> str:
    return _NO_MEMBER if identity in (None, EMPTY_MEMBER_ID) else str(identity)


def _timer(record: InFlightState) -> str:
    if record.lock_task is None:
        return "NONE"
    return "EXPIRED" if record.lock_task.has_expired else "RUNNING"


def _write(write: Write) -> Value:
    return Fn(
        {
            "kind": write.kind,
            "entries": frozenset(
                Fn({"offset": b.offset, "state": str(b.state), "count": b.delivery_count})
                for b in write.batches
            ),
        }
    )


def create(constants: Mapping[str, Value]) -> ShareSystem:
    """The system for a model's constants."""
    return ShareSystem(constants)
