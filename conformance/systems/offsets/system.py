"""The system under test: a coordinator of a group without members, and who commits to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.offsets.observation import OF_OFFSETS, POSITION, VARIABLES, OffsetsView
from conformance.systems.offsets.topic import DeferredTopic
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.tla import Action, Value
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import Errors
from impl.group.config import GroupConfig
from impl.group.group_coordinator import GroupCoordinator, seeded_ids
from impl.group.group_metadata import DEAD
from impl.group.group_offsets import GroupOffsets
from impl.group.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
)

_GROUP, _PARTITION = "group", 0
_REFUSED = Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
_ANSWERED = {
    "AcknowledgeAppend": [Errors.NONE],
    "FailAppend": [Errors.COORDINATOR_NOT_AVAILABLE],
}
"""What the client of a commit is told as its append is answered; else nobody is told anything."""


class OffsetsSystem(RewindingSystem):
    """One coordinator at a time; no time passes but where positions expire."""

    variables = VARIABLES
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        producers = constants["Producers"]
        if not isinstance(producers, frozenset):
            raise UserError("Producers must be a set.")
        self._ids = {str(name): number for number, name in enumerate(sorted(map(str, producers)))}
        self._config = GroupConfig()
        self._actions: dict[str, Callable[..., None]] = {
            "CommitOffset": self._commit,
            "CommitInTransaction": self._commit_in_transaction,
            "AcknowledgeAppend": lambda place: self._topic.answer(place, Errors.NONE),
            "FailAppend": lambda place: self._topic.answer(place, _REFUSED),
            "EndTransaction": self._end_transaction,
            "ExpireOffsets": self._expire,
            "FailOver": self._fail_over,
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, and a coordinator that has loaded it."""
        self._rewinder.forget()
        self._clock = MockClock(1_000_000)
        self._topic = DeferredTopic()
        self._epoch = 0
        self._answers: list[OffsetCommitResponse] = []
        self._coordinator = self._elect()

    def apply(self, action: Action) -> None:
        """Let a client, the log or the coordinator take one step."""
        step = step_of(self._actions, action)
        self._answers.clear()
        step(*action.args)
        errors = [part.error_code for answer in self._answers for part in answer.partitions]
        if errors != _ANSWERED.get(action.name, []):
            raise ActionRefused(f"clients are told {errors}")

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        group = self._coordinator.group(_GROUP)
        offsets = GroupOffsets() if group is None else group.offsets
        view = OffsetsView(self._topic, offsets, self._ids)
        return Observation({name: value(view) for name, value in OF_OFFSETS.items()})

    # ---- clients ---------------------------------------------------------------------------

    def _next(self) -> tuple[OffsetCommitRequestPartition, ...]:
        commits = sum(entry.is_commit for entry in self._topic.entries)
        return (OffsetCommitRequestPartition(POSITION, commits + 1),)

    def _commit(self) -> None:
        request = OffsetCommitRequest(_GROUP, self._next())
        self._coordinator.handle_commit_offsets(request, self._answers.append)

    def _commit_in_transaction(self, producer: str) -> None:
        request = TxnOffsetCommitRequest(_GROUP, self._next(), producer, self._ids[producer], 0)
        self._coordinator.handle_txn_commit_offsets(request, self._answers.append)

    def _end_transaction(self, producer: str, commits: bool) -> None:
        self._coordinator.handle_txn_completion(self._ids[producer], (_PARTITION,), commits)

    # ---- time, and another coordinator -----------------------------------------------------

    def _expire(self) -> None:
        """Positions go, and with the last one the group: who still holds it finds it dead."""
        before = self._coordinator.group(_GROUP)
        self._clock.sleep(self._config.offsets_retention_ms)
        self._coordinator.cleanup_expired_offsets()
        if before is None:
            return
        stays = self._coordinator.group(_GROUP) is before
        if stays is not before.offsets.has_offsets() or stays is before.is_in(DEAD):
            raise ActionRefused(f"a group that is {before.state.value} stays: {stays}")

    def _fail_over(self) -> None:
        self._epoch += 1
        self._coordinator = self._elect()

    def _elect(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(
            self._topic,
            self._clock,
            unique_id=seeded_ids(0),
            config=self._config,
            concurrency=NoConcurrency(),
        )
        coordinator.startup()
        coordinator.on_election(_PARTITION, self._epoch)
        return coordinator
