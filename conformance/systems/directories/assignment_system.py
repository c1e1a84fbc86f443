"""The system under test of DirectoryAssignment: the same broker, and a controller that it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from conformance.systems.directories.broker import TOPIC_PARTITION, TwoDirectoryBroker
from conformance.systems.directories.controller import AssignmentController
from conformance.systems.directories.system import DirectoriesSystem
from conformance.systems.protocol import Observation
from conformance.systems.threads import take_two_threads
from conformance.tla import Action, Value
from impl.disk import MemoryDisk

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
            "SendAssignment": lambda: self._controller.manager.maybe_send_assignments(),
            "WriteAssignment": lambda: self._controller.write(),
            "AnswerAssignment": lambda: self._controller.answer(),
            "FailAssignment": lambda: self._controller.fail(),
            "LearnAssignment": self._learn,
        }

    def reset(self, initial: Mapping[str, Value]) -> None:
        """The same broker; the controller knows where its replica lies."""
        self._controller = AssignmentController()
        super().reset(initial)

    def observe(self) -> Observation:
        """What DirectoryMove sees of the broker, and the assignment."""
        assignment = {**self._controller.observe(), "promotion": self._promotion()}
        return Observation({**super().observe(), **assignment})

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
        manager = self._controller.manager
        if manager.ready and not manager.inflight:
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
        controller = self._controller
        broker = TwoDirectoryBroker(disk, self._concurrency, controller.meet_new_process())
        broker.replicas.log_manager.recover_abandoned_future_logs(lambda _: controller.assigned)
        # Its first delta is the whole metadata.
        self._registration = replace(self._registration, directory=controller.assigned)
        return broker

    def _elect(self, *, leads: bool) -> None:
        super()._elect(leads=leads)
        self._registration = replace(self._registration, directory=None)

    def _learn(self) -> None:
        """The record of the assignment: nothing else of the registration changes."""
        directory = self._controller.tell()
        before = self._registration
        learned = replace(before, partition_epoch=before.partition_epoch + 1, directory=directory)
        self._broker.hear(learned)
        self._registration = replace(learned, directory=None)


def _of_move(action: Action) -> Action:
    return Action(action.name.removesuffix(_SUFFIX), action.args)
