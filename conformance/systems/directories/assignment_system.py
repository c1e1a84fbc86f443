"""The system under test of DirectoryAssignment: the same broker, and a controller that it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conformance.systems.directories.broker import TOPIC_PARTITION, TwoDirectoryBroker
from conformance.systems.directories.system import DirectoriesSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.systems.threads import take_two_threads
from conformance.tla import Action, Fn, Value
from impl.assignments_manager import Assignment, AssignmentsManager
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.fetcher.replica_alter_log_dirs_thread import PROMOTION
from impl.types import TopicPartition

_SUFFIX = "InKRaft"
"""AInKRaft is the action A of DirectoryMove, and what it does to the assignment."""
_ASSIGNMENTS = frozenset({"SendAssignment", "AnswerAssignment", "FailAssignment"})
"""The thread of AssignmentsManager takes them."""
_ALONE = frozenset({"WriteAssignment", "LearnAssignment"})
"""Another machine's, and a delta of the metadata, which is several sections in Kafka."""


class AssignmentSystem(DirectoriesSystem):
    """The broker asks by its AssignmentsManager; the controller's end is played here."""

    variables = (
        *DirectoriesSystem.variables,
        *("assigned", "promotion", "queued", "sent", "written", "unlearned"),
    )

    def _steps(self) -> dict[str, Callable[..., None]]:
        steps = {f"{name}{_SUFFIX}": step for name, step in super()._steps().items()}
        return steps | {
            "SendAssignment": self._send,
            "WriteAssignment": self._write,
            "AnswerAssignment": self._answer,
            "FailAssignment": self._fail,
            "LearnAssignment": self._learn,
        }

    def reset(self, initial: Mapping[str, Value]) -> None:
        """The same broker; the controller knows where its replica lies."""
        self._assigned = "d1"
        super().reset(initial)

    def observe(self) -> Observation:
        """What DirectoryMove sees of the broker, and the assignment."""
        return Observation({**super().observe(), **self._assignment()})

    def _assignment(self) -> dict[str, Value]:
        return {
            "assigned": self._assigned,
            "promotion": self._promotion(),
            "queued": _request(self._manager.ready),
            "sent": _request(self._manager.inflight),
            "written": self._written,
            "unlearned": self._unlearned,
        }

    def _promotion(self) -> str:
        for thread in self._broker.moves.fetcher_threads().values():
            state = thread.promotion_states.get(TOPIC_PARTITION)
            if state is not None:
                return state.reassignment_state.value
        return "None"

    # ---- Offers ----------------------------------------------------------------------------

    @property
    def offerable(self) -> frozenset[str]:
        """What the thread of the move is about to do, and that of the assignments."""
        moves = {f"{name}{_SUFFIX}" for name in super().offerable}
        return frozenset({*moves, "SendAssignment"})

    def offers(self) -> frozenset[Action]:
        """What these threads would do next."""
        steps = {Action(f"{step.name}{_SUFFIX}", step.args) for step in super().offers()}
        if self._manager.ready and not self._manager.inflight:
            steps.add(Action("SendAssignment", ()))
        return frozenset(steps)

    # ---- Interruptible ---------------------------------------------------------------------

    @property
    def voluntary(self) -> frozenset[str]:
        """What the broker's threads start by themselves, and what its leader may send."""
        return self.offerable | {f"AppendAsFollower{_SUFFIX}"}

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether two threads of the broker take these."""
        names = {running.name, between.name}
        if names & _ALONE:
            return False
        if names & _ASSIGNMENTS:
            return take_two_threads(
                (_ASSIGNMENTS, frozenset(names - _ASSIGNMENTS)), running, between
            )
        return super().concurrent(_of_move(running), _of_move(between))

    # ---- steps -----------------------------------------------------------------------------

    def _make_broker(self, disk: MemoryDisk) -> TwoDirectoryBroker:
        self._manager = AssignmentsManager(self._take)
        self._request: str | None = None
        self._written = self._unlearned = False
        broker = TwoDirectoryBroker(disk, self._concurrency, self._manager)
        broker.replicas.log_manager.recover_abandoned_future_logs(lambda _: self._assigned)
        # Its first delta is the whole metadata.
        self._registration = replace(self._registration, directory=self._assigned)
        return broker

    def _elect(self, *, leads: bool) -> None:
        super()._elect(leads=leads)
        self._registration = replace(self._registration, directory=None)

    def _take(self, request: Mapping[TopicPartition, str]) -> None:
        self._request = request[TOPIC_PARTITION]

    def _send(self) -> None:
        self._manager.maybe_send_assignments()

    def _write(self) -> None:
        if self._request is None or self._written:
            raise ActionRefused("the controller is asked nothing")
        self._written = True
        self._unlearned |= self._request != self._assigned
        self._assigned = self._request

    def _answer(self) -> None:
        if not self._written:
            raise ActionRefused("the controller has answered nothing")
        self._end({TOPIC_PARTITION: Errors.NONE})

    def _fail(self) -> None:
        self._end(None)

    def _end(self, errors: Mapping[TopicPartition, Errors] | None) -> None:
        self._request, self._written = None, False
        self._manager.handle_response(errors)

    def _learn(self) -> None:
        """The record of the assignment: nothing else of the registration changes."""
        if not self._unlearned:
            raise ActionRefused("the metadata have nothing new")
        self._unlearned = False
        before = self._registration
        learned = replace(
            before, partition_epoch=before.partition_epoch + 1, directory=self._assigned
        )
        self._broker.hear(learned)
        self._registration = replace(learned, directory=None)


def _request(assignments: Mapping[TopicPartition, Assignment]) -> Value:
    assignment = assignments.get(TOPIC_PARTITION)
    if assignment is None:
        return Fn({"directory": "none", "promotes": False})
    return Fn({"directory": assignment.directory, "promotes": assignment.reason == PROMOTION})


def _of_move(action: Action) -> Action:
    return Action(action.name.removesuffix(_SUFFIX), action.args)
