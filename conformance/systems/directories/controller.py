"""The controller's end of an assignment of directories (KIP-858), played for one replica."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.directories.broker import TOPIC_PARTITION
from conformance.systems.protocol import ActionRefused
from conformance.tla import Fn, Value
from impl.assignments_manager import Assignment, AssignmentsManager
from impl.errors import Errors
from impl.fetcher.replica_alter_log_dirs_thread import PROMOTION
from impl.types import TopicPartition


class AssignmentController:
    """What it knows, and a broker's AssignmentsManager that asks it."""

    def __init__(self) -> None:
        self.assigned = "d1"
        self.meet_new_process()

    def meet_new_process(self) -> AssignmentsManager:
        """The broker starts: what was on its way is forgotten, its first delta is all metadata."""
        self._request: str | None = None
        self._written = self._unlearned = False
        self.manager = AssignmentsManager(self._take)
        return self.manager

    def observe(self) -> dict[str, Value]:
        """The variables of DirectoryAssignment but for the thread's own."""
        return {
            "assigned": self.assigned,
            "queued": _request(self.manager.ready),
            "sent": _request(self.manager.inflight),
            "written": self._written,
            "unlearned": self._unlearned,
        }

    def write(self) -> None:
        """Write what is asked."""
        if self._request is None or self._written:
            raise ActionRefused("the controller is asked nothing")
        self._written = True
        self._unlearned |= self._request != self.assigned
        self.assigned = self._request

    def answer(self) -> None:
        """Answer what is written."""
        if not self._written:
            raise ActionRefused("the controller has answered nothing")
        self._end({TOPIC_PARTITION: Errors.NONE})

    def fail(self) -> None:
        """The request times out, written or not."""
        self._end(None)

    def tell(self) -> str:
        """The metadata's record of the assignment reaches the broker: the directory."""
        if not self._unlearned:
            raise ActionRefused("the metadata have nothing new")
        self._unlearned = False
        return self.assigned

    def _take(self, request: Mapping[TopicPartition, str]) -> None:
        self._request = request[TOPIC_PARTITION]

    def _end(self, errors: Mapping[TopicPartition, Errors] | None) -> None:
        self._request, self._written = None, False
        self.manager.handle_response(errors)


def _request(assignments: Mapping[TopicPartition, Assignment]) -> Value:
    assignment = assignments.get(TOPIC_PARTITION)
    if assignment is None:
        return Fn({"directory": "none", "promotes": False})
    return Fn({"directory": assignment.directory, "promotes": assignment.reason == PROMOTION})
