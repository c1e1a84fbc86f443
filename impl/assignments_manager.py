"""Tells the controller in which log directories replicas lie (AssignmentsManager, KIP-858)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .errors import Errors
from .types import TopicPartition


@dataclass(frozen=True, slots=True)
class Assignment:
    """A replica's directory, why it is assigned, and what is run once the controller has agreed."""

    topic_partition: TopicPartition
    directory: str
    reason: str
    success_callback: Callable[[], None]


class AssignmentsManager:
    """One request at a time; of a partition the last assignment counts.

    It is a DirectoryEventHandler. `send` gives a request (AssignReplicasToDirs) to the controller,
    whose answer comes to `handle_response`. Whoever has an event queue calls
    `maybe_send_assignments` when something is ready.
    """

    def __init__(self, send: Callable[[Mapping[TopicPartition, str]], None]) -> None:
        self._send = send
        self.ready: dict[TopicPartition, Assignment] = {}
        self.inflight: dict[TopicPartition, Assignment] = {}

    def handle_assignment(
        self,
        partition: TopicPartition,
        directory: str,
        reason: str,
        callback: Callable[[], None],
    ) -> None:
        """Send it with the next request; what was ready of the partition is forgotten."""
        self.ready[partition] = Assignment(partition, directory, reason, callback)

    def maybe_send_assignments(self) -> None:
        """Send all that is ready, unless a request is in flight."""
        if self.inflight or not self.ready:
            return
        self.inflight, self.ready = self.ready, {}
        self._send({tp: assignment.directory for tp, assignment in self.inflight.items()})

    def handle_response(self, errors: Mapping[TopicPartition, Errors] | None) -> None:
        """Take the controller's answer; None is a time-out, or an error of the whole request.

        What failed, or was not answered, is ready again unless there is something newer.
        """
        sent, self.inflight = self.inflight, {}
        for partition, assignment in sent.items():
            if errors is not None and errors.get(partition) is Errors.NONE:
                assignment.success_callback()
            else:
                self.ready.setdefault(partition, assignment)
