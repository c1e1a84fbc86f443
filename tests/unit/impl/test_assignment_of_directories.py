"""Where replicas lie, as the controller is told and as a start finds it (KIP-858)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from impl.assignments_manager import AssignmentsManager
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, parent
from impl.errors import Errors
from impl.log import Log
from impl.log_manager import LogManager
from impl.records import MemoryRecords, Record
from impl.scheduler import ImmediateScheduler
from impl.types import TopicPartition

TP = TopicPartition("topic", 0)
OTHER = TopicPartition("topic", 1)


class Controller:
    """Keeps what it is sent, and whose call-backs have run."""

    def __init__(self) -> None:
        self.sent: list[Mapping[TopicPartition, str]] = []
        self.agreed: list[str] = []
        self.manager = AssignmentsManager(self.sent.append)

    def assign(self, partition: TopicPartition, directory: str) -> None:
        self.manager.handle_assignment(
            partition, directory, "a test", lambda: self.agreed.append(directory)
        )


def test_one_request_is_in_flight_with_all_that_was_ready() -> None:
    controller = Controller()
    controller.assign(TP, "d1")
    controller.assign(OTHER, "d1")
    controller.manager.maybe_send_assignments()
    controller.assign(TP, "d2")
    controller.manager.maybe_send_assignments()
    assert controller.sent == [{TP: "d1", OTHER: "d1"}]

    controller.manager.handle_response({TP: Errors.NONE, OTHER: Errors.NONE})
    controller.manager.maybe_send_assignments()
    assert controller.sent[1:] == [{TP: "d2"}]
    assert controller.agreed == ["d1", "d1"]


def test_the_last_assignment_of_a_partition_is_sent() -> None:
    controller = Controller()
    controller.assign(TP, "d1")
    controller.assign(TP, "d2")
    controller.manager.maybe_send_assignments()
    assert controller.sent == [{TP: "d2"}]


@pytest.mark.parametrize(
    "errors",
    [None, {TP: Errors.NOT_LEADER_OR_FOLLOWER}, {}],
    ids=["time-out", "refused", "not-answered"],
)
def test_what_fails_is_sent_again(errors: Mapping[TopicPartition, Errors] | None) -> None:
    controller = Controller()
    controller.assign(TP, "d1")
    controller.manager.maybe_send_assignments()
    controller.manager.handle_response(errors)
    controller.manager.maybe_send_assignments()
    assert controller.sent == [{TP: "d1"}, {TP: "d1"}]
    assert controller.agreed == []


def test_what_fails_gives_way_to_what_is_newer() -> None:
    controller = Controller()
    controller.assign(TP, "d1")
    controller.manager.maybe_send_assignments()
    controller.assign(TP, "d2")
    controller.manager.handle_response(None)
    controller.manager.maybe_send_assignments()
    assert controller.sent == [{TP: "d1"}, {TP: "d2"}]


def moving(current: int, future: int) -> tuple[LogManager, Log, Log]:
    """A log in d1 and its future log in d2, with so many records."""
    manager = LogManager(MemoryDisk(), ("d1", "d2"), ImmediateScheduler(), NoConcurrency())
    logs = (manager.get_or_create_log(TP, "d1"), manager.get_or_create_future_log(TP, "d2"))
    for log, count in zip(logs, (current, future), strict=True):
        for _ in range(count):
            log.append_as_leader(MemoryRecords.with_records(Record(b"value")), 0)
    return manager, *logs


def test_a_future_log_that_is_assigned_takes_over_at_a_start() -> None:
    manager, _, future = moving(2, 2)
    manager.recover_abandoned_future_logs(lambda _: "d2")
    assert manager.get_log(TP) is future
    assert parent(future.directory) == "d2"
    assert manager.get_log(TP, is_future=True) is None


@pytest.mark.parametrize("assigned", ["d1", None])
def test_a_future_log_that_is_not_assigned_stays_one(assigned: str | None) -> None:
    manager, current, future = moving(2, 2)
    manager.recover_abandoned_future_logs(lambda _: assigned)
    assert manager.get_log(TP) is current
    assert manager.get_log(TP, is_future=True) is future


def test_a_shorter_future_log_goes_on_as_a_move() -> None:
    """Kafka's LogManager promotes it, and removes the log that has more."""
    manager, current, future = moving(2, 1)
    manager.recover_abandoned_future_logs(lambda _: "d2")
    assert manager.get_log(TP) is current
    assert manager.get_log(TP, is_future=True) is future
