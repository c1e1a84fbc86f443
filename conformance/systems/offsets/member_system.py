"""The system under test of MemberOffsets: positions in a group whose members come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.offsets.members import GroupMembers, subscription
from conformance.systems.offsets.observation import (
    OF_GROUP,
    OF_OFFSETS,
    POSITION,
    MemberOffsetsView,
    OffsetsView,
)
from conformance.systems.offsets.topic import DeferredTopic
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.tla import Action, Value
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import Errors
from impl.group.config import GroupConfig
from impl.group.group_coordinator import GroupCoordinator, seeded_ids
from impl.group.group_metadata import GroupMetadata
from impl.group.group_offsets import GroupOffsets
from impl.group.messages import (
    UNKNOWN_GENERATION_ID,
    DeleteGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from impl.types import TopicPartition

_GROUP, _PARTITION = "group", 0
_OTHER = TopicPartition("other", 0)
"""A partition whose commits have too much metadata."""
_CONFIG = GroupConfig(max_metadata_size=8)
_TOO_MUCH = "x" * 9
_REFUSED = Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
_UNSTABLE, _NO_POSITION = -2, -1


class PendingTasks:
    """A scheduler that runs loads at once, and keeps what ends transactions."""

    def __init__(self) -> None:
        self._tasks: dict[str, Callable[[], None]] = {}

    def schedule_once(self, name: str, task: Callable[[], None]) -> None:
        """As of `impl.scheduler.Scheduler`."""
        if not name.startswith("handleTxnCompletion-"):
            task()
        elif name in self._tasks:
            raise ActionRefused(f"two tasks {name} wait")
        else:
            self._tasks[name] = task

    def run(self, producer_id: int) -> None:
        """Run the producer's task."""
        task = self._tasks.pop(f"handleTxnCompletion-{producer_id}", None)
        if task is None:
            raise ActionRefused(f"no task of producer {producer_id} waits")
        task()


class MemberOffsetsSystem(RewindingSystem):
    """One coordinator at a time. Sessions never expire; the retention passes by an action."""

    variables = (*OF_OFFSETS, *OF_GROUP)
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        producers, members, subscribers = (
            _names(constants, name) for name in ("Producers", "Members", "Subscribers")
        )
        self._ids = {name: number for number, name in enumerate(producers)}
        self._subscriptions = {
            name: subscription([POSITION.topic] if name in subscribers else []) for name in members
        }
        self._actions: dict[str, Callable[..., None]] = {
            "JoinGroup": lambda name: self._members.join(self._coordinator, name),
            "RejoinGroup": lambda name: self._members.rejoin(self._coordinator, name),
            "SyncGroup": lambda: self._members.sync(self._coordinator),
            "LeaveGroup": lambda name: self._members.leave(self._coordinator, name),
            "CommitAs": self._commit,
            "RefuseCommit": self._refuse_commit,
            "CommitInTransactionAs": self._commit_in_transaction,
            "RefuseCommitInTransaction": self._refuse_commit_in_transaction,
            "AcknowledgesAppend": lambda place: self._answer(place, Errors.NONE, Errors.NONE),
            "FailsAppend": lambda place: self._answer(
                place, _REFUSED, Errors.COORDINATOR_NOT_AVAILABLE
            ),
            "FetchOffset": self._fetch,
            "WriteMarker": self._write_marker,
            "CompleteTransaction": self._complete_transaction,
            "DeleteOffset": lambda: self._delete_offset("NONE"),
            "RefuseDeleteOffset": self._delete_offset,
            "DeleteGroup": lambda: self._delete_group("NONE"),
            "RefuseDeleteGroup": self._delete_group,
            "PassRetention": lambda: self._clock.sleep(_CONFIG.offsets_retention_ms),
            "CleanUp": self._clean_up,
            "FailsOver": self._fail_over,
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, and a coordinator that has loaded it."""
        self._rewinder.forget()
        self._clock = MockClock(1_000_000)
        self._topic = DeferredTopic()
        self._members = GroupMembers(_GROUP, self._subscriptions)
        self._epoch = 0
        self._answers: list[OffsetCommitResponse] = []
        self._is_half: dict[int, bool] = {}
        self._appended_by: dict[int, GroupMetadata] = {}
        self._elect()

    def apply(self, action: Action) -> None:
        """Let a client, a member, the log or the coordinator take one step."""
        step = step_of(self._actions, action)
        self._answers.clear()
        step(*action.args)
        if self._answers:
            raise ActionRefused(f"a client is told {self._responses()} though nothing answers it")

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        group = self._coordinator.group(_GROUP)
        positions = GroupOffsets() if group is None else group.offsets
        offsets = OffsetsView(self._topic, positions, self._ids, self._members.names_of)
        view = MemberOffsetsView(
            offsets,
            group,
            self._clock.milliseconds(),
            _CONFIG.offsets_retention_ms,
            self._ended,
            self._appended_by,
        )
        values = {name: value(offsets) for name, value in OF_OFFSETS.items()}
        return Observation(values | {name: value(view) for name, value in OF_GROUP.items()})

    # ---- commits ---------------------------------------------------------------------------

    def _generation(self, generation: str) -> int:
        group = self._coordinator.group(_GROUP)
        current = 0 if group is None else group.generation_id
        return {"none": UNKNOWN_GENERATION_ID, "previous": current - 1}.get(generation, current)

    def _partitions(self, size: str) -> tuple[OffsetCommitRequestPartition, ...]:
        commits = sum(entry.is_commit for entry in self._topic.entries)
        metadata = _TOO_MUCH if size == "large" else ""
        partition = OffsetCommitRequestPartition(POSITION, commits + 1, committed_metadata=metadata)
        other = OffsetCommitRequestPartition(_OTHER, commits + 1, committed_metadata=_TOO_MUCH)
        return (partition, other) if size == "half" else (partition,)

    def _send_commit(self, member: str, generation: str, size: str) -> None:
        self._coordinator.handle_commit_offsets(
            OffsetCommitRequest(
                _GROUP,
                self._partitions(size),
                self._generation(generation),
                self._members.id_of(member),
            ),
            self._answers.append,
        )

    def _send_in_transaction(self, producer: str, member: str, generation: str) -> None:
        self._coordinator.handle_txn_commit_offsets(
            TxnOffsetCommitRequest(
                _GROUP,
                self._partitions("fits"),
                producer,
                self._ids[producer],
                0,
                self._generation(generation),
                self._members.id_of(member),
            ),
            self._answers.append,
        )

    def _commit(self, member: str, generation: str, size: str) -> None:
        self._send_commit(member, generation, size)
        self._note_append(is_half=size == "half")

    def _commit_in_transaction(self, producer: str, member: str, generation: str) -> None:
        self._send_in_transaction(producer, member, generation)
        self._note_append(is_half=False)

    def _note_append(self, *, is_half: bool) -> None:
        """Keep for whom the append is that now waits for its answer."""
        place, group = len(self._topic.entries), self._coordinator.group(_GROUP)
        if group is None or place not in self._topic.in_flight:
            raise ActionRefused(f"the commit is not taken: {self._responses()}")
        self._is_half[place], self._appended_by[place] = is_half, group

    def _refuse_commit(self, member: str, generation: str, size: str, error: str) -> None:
        self._send_commit(member, generation, size)
        both = (error, "OFFSET_METADATA_TOO_LARGE" if error == "NONE" else error)
        self._expect(*(both if size == "half" else (error,)))

    def _refuse_commit_in_transaction(
        self, producer: str, member: str, generation: str, error: str
    ) -> None:
        self._send_in_transaction(producer, member, generation)
        self._expect(error)

    def _answer(self, place: int, error: Errors, response: Errors) -> None:
        self._topic.answer(place, error)
        half = ("OFFSET_METADATA_TOO_LARGE",) if self._is_half[place] else ()
        self._expect(response.name, *half)

    def _responses(self) -> list[str]:
        return [part.error_code.name for answer in self._answers for part in answer.partitions]

    def _expect(self, *errors: str) -> None:
        if self._responses() != list(errors):
            raise ActionRefused(f"the client is told {self._responses() or 'nothing'}")
        self._answers.clear()

    def _fetch(self, requires_stable: bool, offset: int) -> None:
        request = OffsetFetchRequest(_GROUP, (POSITION,), requires_stable)
        (partition,) = self._coordinator.handle_fetch_offsets(request).partitions
        is_unstable = partition.error_code is Errors.UNSTABLE_OFFSET_COMMIT
        answer = _UNSTABLE if is_unstable else partition.committed_offset
        if answer != offset:
            raise ActionRefused(f"the position is {answer}")

    # ---- transactions ----------------------------------------------------------------------

    def _write_marker(self, producer: str, commits: bool) -> None:
        self._coordinator.handle_txn_completion(self._ids[producer], (_PARTITION,), commits)
        self._ended[producer] = "Committed" if commits else "Aborted"

    def _complete_transaction(self, producer: str) -> None:
        self._tasks.run(self._ids[producer])
        self._ended[producer] = "none"

    # ---- removal ---------------------------------------------------------------------------

    def _delete_offset(self, error: str) -> None:
        request = OffsetDeleteRequest(_GROUP, (POSITION,))
        answer = self._coordinator.handle_delete_offsets(request)
        errors = [answer.error_code, *(part.error_code for part in answer.partitions)]
        names = [each.name for each in errors if each is not Errors.NONE] or ["NONE"]
        if names != [error]:
            raise ActionRefused(f"OffsetDelete is answered {names}")

    def _delete_group(self, error: str) -> None:
        answer = self._coordinator.handle_delete_groups(DeleteGroupsRequest((_GROUP,)))
        names = [result.error_code.name for result in answer.results]
        if names != [error]:
            raise ActionRefused(f"DeleteGroups is answered {names}")

    def _clean_up(self) -> None:
        self._coordinator.cleanup_expired_offsets()

    # ---- another coordinator ---------------------------------------------------------------

    def _fail_over(self) -> None:
        self._epoch += 1
        self._elect()

    def _elect(self) -> None:
        self._tasks = PendingTasks()
        self._ended: dict[Value, Value] = dict.fromkeys(self._ids, "none")
        self._coordinator = GroupCoordinator(
            self._topic,
            self._clock,
            unique_id=seeded_ids(self._epoch),
            config=_CONFIG,
            concurrency=NoConcurrency(),
            scheduler=self._tasks,
        )
        self._coordinator.startup()
        self._coordinator.on_election(_PARTITION, self._epoch)


def _names(constants: Mapping[str, Value], name: str) -> list[str]:
    value = constants[name]
    if not isinstance(value, frozenset):
        raise UserError(f"{name} must be a set.")
    return sorted(map(str, value))
