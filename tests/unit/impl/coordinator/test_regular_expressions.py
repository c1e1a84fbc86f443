"""Regular expressions of KIP-848's groups beyond their models: times, loads, records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from impl.coordinator.coordinator_executor import CoordinatorExecutorImpl
from impl.coordinator.coordinator_shard import CoordinatorResult
from impl.coordinator.group.messages import ConsumerGroupHeartbeatResponse
from impl.coordinator.group.records import (
    new_regular_expression_record,
    read_key,
    read_value,
    tombstone_of_regular_expression,
)
from impl.coordinator.group.regular_expressions import (
    ResolvedRegularExpression,
    resolve_regular_expressions,
)
from impl.errors import Errors, RejectedExecutionException
from tests.unit.impl.coordinator.test_consumer_groups import IDS, Coordinator, part

BOTH = {part(number, topic) for number in (0, 1) for topic in ("t", "u")}


def joined(coordinator: Coordinator, regex: str = "[tu]") -> ConsumerGroupHeartbeatResponse:
    return coordinator.join("m1", subscribed_topic_names=(), subscribed_topic_regex=regex)


def test_who_joins_with_a_regular_expression_gets_its_topics_with_the_next_heartbeat() -> None:
    coordinator = Coordinator()

    first = joined(coordinator)
    second = coordinator.go_on("m1", 1)

    assert (first.member_epoch, first.assignment) == (1, frozenset())
    assert (second.member_epoch, second.assignment) == (2, BOTH)
    assert coordinator.describe().members[0].subscribed_topic_regex == "[tu]"


def test_a_name_matches_as_a_whole() -> None:
    resolved = resolve_regular_expressions(["t", "t.*"], ["t", "tt", "at"], 3, 7)

    assert resolved["t"] == ResolvedRegularExpression(frozenset({"t"}), 3, 7)
    assert resolved["t.*"].topics == {"t", "tt"}


def test_topics_that_appear_are_read_ten_seconds_after_the_last_look() -> None:
    coordinator = Coordinator()
    coordinator.topics.sizes[IDS["u"]] = 0
    joined(coordinator)
    coordinator.go_on("m1", 1)

    coordinator.topics.sizes[IDS["u"]] = 2
    coordinator.topics.version += 1
    coordinator.service.on_new_metadata_image({"u"}, has_new_topics=True)
    coordinator.timer.sleep(10_000)
    coordinator.go_on("m1", 2)
    too_early = coordinator.group.group_epoch
    coordinator.timer.sleep(1)
    coordinator.go_on("m1", 2)

    assert (too_early, coordinator.group.group_epoch) == (2, 3)
    assert coordinator.go_on("m1", 2, part(0), part(1)).assignment == BOTH


def test_who_gives_up_a_regular_expression_is_assigned_anew_at_once() -> None:
    coordinator = Coordinator()
    coordinator.join("m1", subscribed_topic_regex="u")
    owned = coordinator.go_on("m1", 2).assignment or frozenset()

    answer = coordinator.go_on("m1", 3, *owned, subscribed_topic_regex="")

    assert coordinator.group.group_epoch == 4
    assert answer.assignment == {part(0), part(1)}
    assert not coordinator.group.resolved_regular_expressions()


def test_another_coordinator_loads_what_was_resolved() -> None:
    coordinator = Coordinator()
    joined(coordinator)

    other = Coordinator(coordinator.log)

    assert other.group.resolved_regular_expressions()["[tu]"].topics == {"t", "u"}
    assert other.group.member_or_raise("m1").subscribed_topic_regex == "[tu]"


def test_the_last_member_takes_its_regular_expression_with_it() -> None:
    coordinator = Coordinator()
    joined(coordinator)

    coordinator.go_on("m1", -1)

    assert not coordinator.group.resolved_regular_expressions()


def test_a_regular_expression_that_does_not_compile_changes_nothing() -> None:
    coordinator = Coordinator()
    joined(coordinator)
    end = coordinator.log.log_end_offset

    answer = coordinator.go_on("m1", 1, subscribed_topic_regex="(")

    assert answer.error_code is Errors.INVALID_REGULAR_EXPRESSION
    assert coordinator.log.log_end_offset == end


def test_the_record_has_kafkas_layout() -> None:
    resolved = ResolvedRegularExpression(frozenset({"foo"}), 5, 6)
    record = new_regular_expression_record("g", "f.*", resolved)

    assert record.key == b"\x00\x10\x00\x01g\x00\x03f.*"
    numbers = (5).to_bytes(8, "big") + (6).to_bytes(8, "big")
    assert record.value == b"\x00\x00\x02\x04foo" + numbers + b"\x00"
    key = read_key(record.key)
    assert key is not None
    assert read_value(key, record.value) == resolved
    assert tombstone_of_regular_expression("g", "f.*").key == record.key


# ---- the executor --------------------------------------------------------------------------------


class Executor:
    """An executor and its shard's events, both by hand."""

    def __init__(self) -> None:
        self.submitted: deque[Callable[[], None]] = deque()
        self.writes: deque[Callable[[], CoordinatorResult]] = deque()
        self.tasks = CoordinatorExecutorImpl(self, self._write)
        self.results: list[tuple[object, Exception | None]] = []

    def submit(self, task: Callable[[], None]) -> None:
        self.submitted.append(task)

    def _write(self, _key: str, operation: object, _done: object) -> None:
        assert callable(operation)
        self.writes.append(lambda: operation(None))

    def schedule(self, task: Callable[[], object]) -> bool:
        def take(result: object, error: Exception | None) -> CoordinatorResult:
            self.results.append((result, error))
            return CoordinatorResult()

        return self.tasks.schedule("key", task, take)


def test_one_task_at_a_time_until_its_result_is_written() -> None:
    executor = Executor()

    assert executor.schedule(lambda: 1)
    assert not executor.schedule(lambda: 2)
    executor.submitted.popleft()()
    assert executor.tasks.is_scheduled("key")
    executor.writes.popleft()()

    assert executor.results == [(1, None)]
    assert not executor.tasks.is_scheduled("key")


def test_what_a_task_raises_comes_with_its_result() -> None:
    executor = Executor()
    executor.schedule(lambda: 1 // 0)
    executor.submitted.popleft()()
    executor.writes.popleft()()

    ((result, error),) = executor.results
    assert result is None
    assert isinstance(error, ZeroDivisionError)


def test_a_result_that_was_cancelled_is_not_written() -> None:
    executor = Executor()
    executor.schedule(lambda: 1)
    executor.submitted.popleft()()
    executor.tasks.cancel_all()
    executor.schedule(lambda: 2)
    with pytest.raises(RejectedExecutionException):
        executor.writes.popleft()()

    assert not executor.results
    assert executor.tasks.is_scheduled("key")
