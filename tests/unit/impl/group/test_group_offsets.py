"""Commits: who may, what shows when, what expires. Scenarios of GroupCoordinator/MetadataTest."""

from __future__ import annotations

import dataclasses

import pytest

from impl.errors import Errors, IllegalStateException
from impl.group.config import GroupConfig
from impl.group.group_offsets import (
    CommitRecordMetadataAndOffset,
    GroupOffsets,
    OffsetAndMetadata,
)
from impl.group.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from impl.scheduler import DeferredScheduler
from impl.types import TopicPartition
from tests.unit.impl.group.driver import CONFIG, GROUP, TP, Driver

NONE = Errors.NONE
RETENTION = dataclasses.replace(CONFIG, offsets_retention_ms=1000)


def at(log_offset: int | None, position: int) -> CommitRecordMetadataAndOffset:
    return CommitRecordMetadataAndOffset(log_offset, OffsetAndMetadata(position))


def test_g35_an_unknown_group_has_no_generation() -> None:
    assert Driver().commit("memberId", 1) is Errors.ILLEGAL_GENERATION


def test_g35_outside_groups_anybody_commits() -> None:
    driver = Driver()
    assert driver.commit(offset=3) is NONE
    assert driver.fetched() == (3, NONE)


def test_g35_positions_stay_when_the_group_is_empty() -> None:
    driver = Driver()
    member_id = driver.stable()
    assert driver.commit(member_id, 1, offset=5) is NONE
    driver.leave((member_id, None))
    assert driver.commit(offset=0) is NONE
    assert driver.fetched() == (0, NONE)


@pytest.mark.parametrize(("member", "instance"), [("", "instance"), ("unknown", None), ("u", "i")])
def test_g37_outside_groups_ids_do_not_count(member: str, instance: str | None) -> None:
    assert Driver().commit(member, -1, instance) is NONE
    driver = Driver()
    driver.leave((driver.stable(), None))
    assert driver.commit(member, -1, instance) is NONE


def test_a_generation_of_zero_is_a_generation() -> None:
    driver = Driver()
    assert driver.commit(offset=3) is NONE
    assert driver.commit("memberId", 0) is Errors.UNKNOWN_MEMBER_ID


def test_a_group_with_members_takes_commits_of_members_only() -> None:
    driver = Driver()
    member_id = driver.stable()
    assert driver.commit() is Errors.UNKNOWN_MEMBER_ID
    assert driver.commit(member_id, 2) is Errors.ILLEGAL_GENERATION
    assert driver.commit("other", 1) is Errors.UNKNOWN_MEMBER_ID
    assert driver.commit(member_id, 1) is NONE


def test_commits_by_state() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    driver.join(leader)
    assert driver.state == "PreparingRebalance"
    assert driver.commit(follower, 1) is NONE
    driver.join(follower)
    assert driver.state == "CompletingRebalance"
    assert driver.commit(follower, 2) is Errors.REBALANCE_IN_PROGRESS
    assert driver.txn_commit(follower, 2) is NONE


STORE_ERRORS = [
    (Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
    (Errors.KAFKA_STORAGE_ERROR, Errors.NOT_COORDINATOR),
    (Errors.MESSAGE_TOO_LARGE, Errors.INVALID_COMMIT_OFFSET_SIZE),
    (Errors.RECORD_LIST_TOO_LARGE, Errors.INVALID_COMMIT_OFFSET_SIZE),
    (Errors.INVALID_FETCH_SIZE, Errors.INVALID_COMMIT_OFFSET_SIZE),
    (Errors.CORRUPT_MESSAGE, Errors.CORRUPT_MESSAGE),
]


@pytest.mark.parametrize(
    ("stored", "answered"), STORE_ERRORS, ids=[e.name for e, _ in STORE_ERRORS]
)
def test_a_failed_append_commits_nothing(stored: Errors, answered: Errors) -> None:
    driver = Driver()
    driver.topic.fail_with = stored
    assert driver.commit(offset=3) is answered
    assert driver.txn_commit(offset=3) is answered
    assert not driver.group.offsets.has_offsets()
    assert driver.fetched(require_stable=True) == (-1, NONE)


def test_metadata_may_be_too_large_for_one_partition_only() -> None:
    driver = Driver()
    other = TopicPartition("topic", 1)
    partitions = (
        OffsetCommitRequestPartition(TP, 1, committed_metadata="x" * 4097),
        OffsetCommitRequestPartition(other, 2, committed_metadata="x" * 4096),
    )
    answers: list[OffsetCommitResponse] = []
    driver.coordinator.handle_commit_offsets(OffsetCommitRequest(GROUP, partitions), answers.append)
    errors = [partition.error_code for partition in answers[0].partitions]
    assert errors == [Errors.OFFSET_METADATA_TOO_LARGE, NONE]
    assert driver.commit(metadata="x" * 4097) is Errors.OFFSET_METADATA_TOO_LARGE
    everything = driver.coordinator.handle_fetch_offsets(OffsetFetchRequest(GROUP))
    assert [(p.topic_partition, p.committed_offset) for p in everything.partitions] == [(other, 2)]


def test_a_fetch_of_nothing_committed() -> None:
    driver = Driver()
    assert driver.fetched() == (-1, NONE)
    driver.pending()
    assert driver.fetched() == (-1, NONE)
    assert driver.coordinator.handle_fetch_offsets(OffsetFetchRequest(GROUP)).partitions == ()


# -- GM08: what is on its way


def test_gm08_a_commit_on_its_way_makes_the_position_unstable() -> None:
    driver = Driver()
    driver.commit(offset=1)
    driver.topic.hold = True
    answer = driver.commit_answer(offset=2)
    assert not answer.done
    assert driver.fetched() == (1, NONE)
    assert driver.fetched(require_stable=True) == (-1, Errors.UNSTABLE_OFFSET_COMMIT)
    driver.topic.release()
    assert answer.response.partitions[0].error_code is NONE
    assert driver.fetched(require_stable=True) == (2, NONE)


def test_gm08_a_transaction_shows_when_it_is_committed() -> None:
    driver = Driver()
    driver.txn_commit(offset=4)
    assert driver.fetched() == (-1, NONE)
    assert driver.fetched(require_stable=True) == (-1, Errors.UNSTABLE_OFFSET_COMMIT)
    driver.coordinator.handle_txn_completion(7, {0}, True)
    assert driver.fetched(require_stable=True) == (4, NONE)


def test_gm08_an_aborted_transaction_leaves_nothing() -> None:
    driver = Driver()
    driver.commit(offset=1)
    driver.txn_commit(offset=4)
    driver.coordinator.handle_txn_completion(8, {0}, True)  # somebody else's
    driver.coordinator.handle_txn_completion(7, {1}, True)  # somewhere else
    driver.coordinator.handle_txn_completion(7, {0}, False)
    assert driver.fetched(require_stable=True) == (1, NONE)


@pytest.mark.parametrize("reloaded", [False, True], ids=["in memory", "after fail-over"])
@pytest.mark.parametrize("txn_first", [True, False], ids=["plain last", "transaction last"])
def test_gm08_the_last_in_the_log_wins_not_the_last_to_end(txn_first: bool, reloaded: bool) -> None:
    driver = Driver()
    if txn_first:
        driver.txn_commit(offset=4)
        driver.commit(offset=9)
    else:
        driver.commit(offset=9)
        driver.txn_commit(offset=4)
    driver.coordinator.handle_txn_completion(7, {0}, True)
    if reloaded:
        driver = driver.failed_over()
    assert driver.fetched() == (9 if txn_first else 4, NONE)


def test_gm08_an_older_append_acknowledged_late_does_not_win() -> None:
    offsets = GroupOffsets()
    first, second = at(10, 1), at(11, 2)
    offsets.prepare_offset_commit({TP: first.offset_and_metadata})
    offsets.prepare_offset_commit({TP: second.offset_and_metadata})
    offsets.on_offset_commit_append(TP, second)
    assert offsets.offset(TP) == second.offset_and_metadata
    offsets.on_offset_commit_append(TP, first)
    assert offsets.offset(TP) == second.offset_and_metadata
    assert not offsets.has_pending_offset_commits_for(TP)


def test_gm08_the_failure_of_an_older_commit_leaves_the_newer_one_pending() -> None:
    offsets = GroupOffsets()
    offsets.prepare_offset_commit({TP: OffsetAndMetadata(1)})
    offsets.prepare_offset_commit({TP: OffsetAndMetadata(2)})
    offsets.fail_pending_offset_write(TP, OffsetAndMetadata(1))
    assert offsets.has_pending_offset_commits_for(TP)


@pytest.mark.parametrize("known", [{TP: at(1, 1)}, {}], ids=["a position before", "none before"])
def test_gm08_a_transaction_cannot_commit_what_is_not_appended(
    known: dict[TopicPartition, CommitRecordMetadataAndOffset],
) -> None:
    offsets = GroupOffsets()
    offsets.initialize(known, {})
    offsets.prepare_txn_offset_commit(7, {TP: OffsetAndMetadata(4)})
    with pytest.raises(IllegalStateException):
        offsets.complete_pending_txn_offset_commit(7, True)


def test_an_open_transaction_survives_a_fail_over() -> None:
    driver = Driver()
    driver.txn_commit(offset=4)
    driver = driver.failed_over()
    assert driver.fetched(require_stable=True) == (-1, Errors.UNSTABLE_OFFSET_COMMIT)
    driver.coordinator.handle_txn_completion(7, {0}, True)
    assert driver.fetched() == (4, NONE)
    assert driver.failed_over(epoch=2).fetched(require_stable=True) == (4, NONE)


def test_an_aborted_transaction_is_not_loaded() -> None:
    driver = Driver()
    driver.commit(offset=1)
    driver.txn_commit(offset=4)
    driver.coordinator.handle_txn_completion(7, {0}, False)
    assert driver.failed_over().fetched(require_stable=True) == (1, NONE)


def test_a_position_that_expires_leaves_what_an_open_transaction_commits() -> None:
    driver = Driver(RETENTION)
    driver.commit(offset=1)
    driver.txn_commit(offset=4)
    driver.clock.sleep(1_000)
    assert driver.coordinator.cleanup_expired_offsets() == 1
    driver.coordinator.handle_txn_completion(7, {0}, True)
    assert driver.fetched() == (4, NONE)
    assert driver.failed_over(RETENTION).fetched() == (4, NONE)


def test_an_aborted_transaction_ends_in_the_log_although_its_append_was_refused() -> None:
    driver = Driver()
    driver.topic.refuse_after_append = Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    driver.txn_commit(offset=4)
    driver.topic.refuse_after_append = None
    driver.coordinator.handle_txn_completion(7, {0}, False)
    assert driver.failed_over().fetched(require_stable=True) == (-1, NONE)


def test_a_fetch_from_another_broker() -> None:
    answer = Driver(owned=[]).coordinator.handle_fetch_offsets(OffsetFetchRequest(GROUP, (TP,)))
    assert (answer.error_code, answer.partitions) == (Errors.NOT_COORDINATOR, ())


# -- expiry (KIP-211)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("reloaded", [False, True], ids=["in memory", "after fail-over"])
def test_positions_outside_groups_expire_after_the_retention(version: int, reloaded: bool) -> None:
    config = dataclasses.replace(RETENTION, offset_commit_value_version=version)
    driver = Driver(config)
    assert driver.commit(offset=3) is NONE
    if reloaded:
        driver = driver.failed_over(config)
    driver.clock.sleep(999)
    assert driver.coordinator.cleanup_expired_offsets() == 0
    assert driver.fetched() == (3, NONE)
    driver.clock.sleep(1)
    assert driver.coordinator.cleanup_expired_offsets() == 1
    assert driver.coordinator.group(GROUP) is None
    assert driver.failed_over(config, epoch=2).fetched() == (-1, NONE)


@pytest.mark.parametrize("reloaded", [False, True], ids=["in memory", "after fail-over"])
def test_an_explicit_retention_counts_by_itself(reloaded: bool) -> None:
    driver = Driver(RETENTION)
    driver.commit(offset=3, retention_ms=100)
    if reloaded:
        driver = driver.failed_over(RETENTION)
    driver.clock.sleep(99)
    assert driver.coordinator.cleanup_expired_offsets() == 0
    driver.clock.sleep(1)
    assert driver.coordinator.cleanup_expired_offsets() == 1


def test_a_position_does_not_expire_while_it_is_committed_anew() -> None:
    driver = Driver(RETENTION)
    driver.commit(offset=3)
    driver.clock.sleep(1_000)
    driver.topic.hold = True
    driver.commit_answer(offset=4)
    assert driver.coordinator.cleanup_expired_offsets() == 0
    driver.topic.release()
    assert driver.fetched() == (4, NONE)


@pytest.mark.parametrize("version", [1, 2, 3], ids=lambda version: f"value v{version}")
def test_positions_of_an_empty_group_expire_from_when_it_became_so(version: int) -> None:
    config = dataclasses.replace(RETENTION, group_metadata_value_version=version)
    driver = Driver(config)
    member_id = driver.stable()
    driver.commit(member_id, 1, offset=3)
    driver.clock.sleep(400)
    driver.leave((member_id, None))
    driver = driver.failed_over(config)
    driver.clock.sleep(700)
    # Version 1 does not say when: what is left is the time of the commit.
    assert driver.coordinator.cleanup_expired_offsets() == (1 if version == 1 else 0)
    driver.clock.sleep(300)
    assert driver.coordinator.cleanup_expired_offsets() == (0 if version == 1 else 1)
    assert driver.coordinator.group(GROUP) is None


def subscription(*topics: str) -> bytes:
    names = b"".join(len(t).to_bytes(2, "big") + t.encode() for t in topics)
    return b"\x00\x00" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("metadata", "expired"),
    [
        pytest.param(subscription("topic", "x"), 0, id="subscribed"),
        pytest.param(subscription("x"), 1, id="not subscribed"),
        pytest.param(b"", 0, id="unreadable"),
        pytest.param(subscription("topic")[:9], 0, id="torn"),
        pytest.param(b"\x00\x00\x00\x00\x00\x01\x00\x01\xff", 0, id="not text"),
    ],
)
def test_a_stable_group_keeps_what_it_consumes(metadata: bytes, expired: int) -> None:
    driver = Driver(RETENTION)
    join = driver.join(metadata=metadata, session=5000)
    driver.advance(51)
    member_id = join.response.member_id
    driver.sync(member_id, 1, {member_id: b""})
    driver.commit(member_id, 1)
    driver.clock.sleep(1000)
    assert driver.coordinator.cleanup_expired_offsets() == expired
    assert driver.coordinator.group(GROUP) is not None


def test_a_group_of_another_type_keeps_everything_while_it_has_members() -> None:
    driver = Driver(RETENTION)
    join = driver.join(protocol_type="connect", session=5000)
    driver.advance(51)
    member_id = join.response.member_id
    driver.sync(member_id, 1, {member_id: b""})
    driver.commit(member_id, 1)
    driver.clock.sleep(1000)
    assert driver.coordinator.cleanup_expired_offsets() == 0
    assert driver.group.is_subscribed_to_topic("topic")


def deleted(driver: Driver) -> tuple[Errors, list[Errors]]:
    response = driver.coordinator.handle_delete_offsets(OffsetDeleteRequest(GROUP, (TP,)))
    return response.error_code, [partition.error_code for partition in response.partitions]


def test_offsets_of_an_absent_group_are_not_deleted() -> None:
    assert deleted(Driver()) == (Errors.GROUP_ID_NOT_FOUND, [])


def test_the_last_offset_takes_a_group_without_members_along() -> None:
    driver = Driver()
    driver.commit(offset=3)
    assert deleted(driver) == (NONE, [NONE])
    assert driver.coordinator.group(GROUP) is None
    assert driver.failed_over().fetched() == (-1, NONE)


@pytest.mark.parametrize(
    ("topic", "error"),
    [("topic", Errors.GROUP_SUBSCRIBED_TO_TOPIC), ("x", NONE)],
    ids=["subscribed", "not subscribed"],
)
def test_members_keep_the_offsets_of_what_they_subscribe_to(topic: str, error: Errors) -> None:
    driver = Driver()
    join = driver.join(metadata=subscription(topic), session=5000)
    driver.advance(51)
    member_id = join.response.member_id
    driver.sync(member_id, 1, {member_id: b""})
    driver.commit(member_id, 1, offset=3)
    assert deleted(driver) == (NONE, [error])
    assert driver.fetched() == ((-1 if error is NONE else 3), NONE)


def test_what_a_member_will_subscribe_to_protects_nothing_before_it_has_joined() -> None:
    driver = Driver()
    first = driver.join(metadata=subscription("x"), session=5000)
    driver.advance(51)
    member_id = first.response.member_id
    driver.sync(member_id, 1, {member_id: b""})
    driver.commit(member_id, 1, offset=3)
    driver.join(metadata=subscription("topic"))
    assert driver.state == "PreparingRebalance"
    assert deleted(driver) == (NONE, [NONE])


def test_a_group_of_another_type_keeps_its_offsets_while_it_has_members() -> None:
    driver = Driver()
    driver.join(protocol_type="connect", session=5000)
    driver.advance(51)
    assert deleted(driver) == (Errors.NON_EMPTY_GROUP, [])


def test_the_marker_of_a_transaction_is_applied_by_the_scheduler() -> None:
    scheduler = DeferredScheduler()
    driver = Driver(scheduler=scheduler)
    scheduler.run_pending()  # the load
    driver.txn_commit(offset=3)
    driver.coordinator.handle_txn_completion(7, {0}, True)
    assert driver.fetched(require_stable=True) == (-1, Errors.UNSTABLE_OFFSET_COMMIT)
    assert driver.failed_over().fetched() == (3, NONE)
    scheduler.run_pending()
    assert driver.fetched(require_stable=True) == (3, NONE)


def test_the_default_settings_are_kafkas() -> None:
    config = GroupConfig()
    assert (config.group_min_session_timeout_ms, config.group_max_session_timeout_ms) == (
        6_000,
        1_800_000,
    )
    assert config.group_initial_rebalance_delay_ms == 3_000
    assert (config.group_max_size, config.new_member_join_timeout_ms) == (2**31 - 1, 300_000)
