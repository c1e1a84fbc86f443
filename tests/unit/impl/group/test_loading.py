"""Loading, unloading and coordinator epochs, and the records that carry a group over."""

from __future__ import annotations

import dataclasses

import pytest

from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, Surviving, everything, nothing
from impl.errors import CorruptRecordException, Errors
from impl.group.find_coordinator import find_coordinator
from impl.group.group_metadata import GroupState
from impl.group.group_metadata_manager import partition_for
from impl.group.group_offsets import OffsetAndMetadata
from impl.group.group_records import (
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetKey,
    UnknownKey,
    group_metadata_key,
    group_metadata_value,
    offset_commit_key,
    offset_commit_value,
    read_group_metadata_value,
    read_message_key,
    read_offset_commit_value,
)
from impl.group.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
)
from impl.group.offsets_topic import LocalOffsetsTopic
from impl.records import MemoryRecords, Record
from impl.scheduler import DeferredScheduler, ImmediateScheduler
from impl.types import BrokerEndPoint
from tests.unit.impl.group.driver import CONFIG, GROUP, SUPERSET, TP, Driver, HeldOffsetsTopic

NONE = Errors.NONE
NOT_COORDINATOR = Errors.NOT_COORDINATOR


def test_a_fail_over_reloads_what_was_persisted() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    driver.commit(leader, 1, "leader", offset=3)
    after = driver.failed_over()
    group = after.group
    assert (after.state, group.generation_id, group.leader_id) == ("Stable", 1, leader)
    assert group.static_members == {"leader": leader, "follower": follower}
    assert after.heartbeat(follower, 1, "follower") is NONE
    assert after.sync(follower, 1, instance="follower").response.assignment == b"follower's"
    assert after.fetched() == (3, NONE)


def test_a_fail_over_in_a_rebalance_falls_back_to_the_generation_before() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    driver.join(leader)
    driver.join(follower)
    assert (driver.state, driver.group.generation_id) == ("CompletingRebalance", 2)
    after = driver.failed_over()
    assert (after.state, after.group.generation_id) == ("Stable", 1)
    assert after.heartbeat(leader, 2) is Errors.ILLEGAL_GENERATION


def test_a_group_that_was_empty_comes_back_empty() -> None:
    driver = Driver()
    driver.leave((driver.stable(), None))
    after = driver.failed_over()
    assert (after.state, after.group.generation_id, after.timers()) == ("Empty", 2, [])


def test_a_pending_member_is_lost_in_a_fail_over() -> None:
    driver = Driver()
    driver.stable()
    pending = driver.pending()
    after = driver.failed_over()
    assert after.join(pending).response.error_code is Errors.UNKNOWN_MEMBER_ID


def test_loaded_members_that_fell_silent_expire() -> None:
    driver = Driver()
    driver.stable_dynamics(2, session=500)
    after = driver.failed_over()
    after.advance(501)
    assert (after.state, after.group.size) == ("Empty", 0)


def test_the_deposed_coordinator_can_write_nothing() -> None:
    driver = Driver()
    member_id = driver.joined().member_id
    driver.failed_over()
    sync = driver.sync(member_id, 1, {member_id: b""})
    assert sync.response.error_code is NOT_COORDINATOR
    assert driver.commit(member_id, 1) is not NONE


def test_resigning_answers_a_parked_sync() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    driver.join(leader)
    driver.join(follower)
    sync = driver.sync(follower, 2)
    group = driver.group
    driver.coordinator.on_resignation(0, 1)
    assert sync.response.error_code is NOT_COORDINATOR
    assert (group.state.value, driver.coordinator.group(GROUP)) == ("Dead", None)
    assert driver.timers() == []
    assert driver.heartbeat(leader) is NOT_COORDINATOR


def test_resigning_answers_a_parked_join() -> None:
    driver = Driver()
    leader, _ = driver.stable_dynamics(2)
    join = driver.join(leader)
    driver.coordinator.on_resignation(0, 1)
    assert join.response.error_code is NOT_COORDINATOR
    assert join.response.member_id == leader


@pytest.mark.parametrize("pending", [False, True], ids=["member", "pending member"])
def test_timers_of_an_unloaded_group_have_no_effect(pending: bool) -> None:
    driver = Driver()
    driver.pending() if pending else driver.stable()
    (timer,) = driver.coordinator.timers()
    driver.coordinator.on_resignation(0, 1)
    driver.coordinator.fire(timer)
    timer.on_expiration()  # as if it had just won against the unloading
    assert driver.coordinator.group(GROUP) is None


class TestCoordinatorEpochs:
    """KAFKA-10614: elections and resignations may be heard of in the wrong order."""

    def test_an_older_election_after_a_resignation_is_ignored(self) -> None:
        driver = Driver(owned=[])
        driver.coordinator.on_resignation(0, 5)
        driver.coordinator.on_election(0, 4)
        assert driver.join().response.error_code is NOT_COORDINATOR

    def test_an_older_resignation_after_an_election_is_ignored(self) -> None:
        driver = Driver(epoch=5)
        member_id = driver.stable()
        driver.coordinator.on_resignation(0, 4)
        assert driver.heartbeat(member_id) is NONE

    @pytest.mark.parametrize("epoch", [5, 6, None])
    def test_a_resignation_counts(self, epoch: int | None) -> None:
        driver = Driver(epoch=5)
        member_id = driver.stable()
        driver.coordinator.on_resignation(0, epoch)
        assert driver.heartbeat(member_id) is NOT_COORDINATOR

    def test_a_newer_election_of_the_owner_keeps_the_groups(self) -> None:
        driver = Driver(epoch=5)
        member_id = driver.stable()
        driver.coordinator.on_election(0, 6)
        assert driver.heartbeat(member_id) is NONE
        assert driver.commit(member_id, 1) is NONE
        assert driver.coordinator.manager.coordinator_epoch(0) == 6

    def test_coming_back_loads_what_others_wrote(self) -> None:
        driver = Driver(epoch=1)
        driver.stable()
        other = driver.failed_over(epoch=2)
        driver.coordinator.on_resignation(0, 2)
        other.leave((next(iter(other.group.members)), None))
        driver.coordinator.on_election(0, 3)
        assert (driver.state, driver.group.generation_id) == ("Empty", 2)

    def test_a_resignation_while_loading_is_final(self) -> None:
        scheduler = DeferredScheduler()
        driver = Driver(scheduler=scheduler, epoch=1)
        driver.coordinator.on_resignation(0, 2)
        scheduler.run_pending()
        assert driver.join().response.error_code is NOT_COORDINATOR


def test_while_loading_each_request_has_its_own_answer() -> None:
    scheduler = DeferredScheduler()
    driver = Driver(scheduler=scheduler)
    loading = Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert driver.join().response.error_code is loading
    assert driver.sync("m").response.error_code is Errors.REBALANCE_IN_PROGRESS
    assert driver.heartbeat("m") is NONE
    assert driver.leave_response(("m", None)).error_code is loading
    assert driver.commit() is loading
    assert driver.txn_commit() is loading
    driver.coordinator.on_election(0, 0)  # heard twice, loaded once
    assert scheduler.run_pending() == 1
    assert driver.join(version=4).response.error_code is Errors.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("buffer_size", [1, 100, 5 * 1024 * 1024])
def test_batches_larger_than_the_buffer_are_loaded(buffer_size: int) -> None:
    driver = Driver()
    driver.stable_dynamics(4)
    driver.commit(next(iter(driver.group.members)), 1, metadata="x" * 500)
    after = driver.failed_over(dataclasses.replace(CONFIG, load_buffer_size=buffer_size))
    assert after.group.size == 4
    assert after.fetched()[0] == 0


def test_an_oversized_group_has_to_rebalance_when_it_is_loaded() -> None:
    driver = Driver()
    ids = driver.stable_dynamics(4)
    after = driver.failed_over(dataclasses.replace(CONFIG, group_max_size=3))
    assert after.state == "PreparingRebalance"
    assert [after.heartbeat(member_id) for member_id in ids] == [Errors.REBALANCE_IN_PROGRESS] * 4


def test_a_deleted_group_stays_deleted() -> None:
    driver = Driver()
    driver.leave((driver.stable(), None))
    driver.commit(offset=3)
    driver.coordinator.handle_delete_groups(DeleteGroupsRequest((GROUP, GROUP)))
    assert driver.coordinator.group(GROUP) is None
    after = driver.failed_over()
    assert after.coordinator.group(GROUP) is None
    assert after.fetched() == (-1, NONE)


def test_a_partition_that_cannot_be_read_is_not_owned() -> None:
    driver = Driver(owned=[])
    broken = Record(b"\x00\x09", group_metadata_key(GROUP))
    driver.topic.log(0).append_as_leader(MemoryRecords.with_records(broken), 0)
    with pytest.raises(CorruptRecordException):
        driver.coordinator.on_election(0, 1)
    assert driver.join().response.error_code is NOT_COORDINATOR


@pytest.mark.parametrize(
    ("survives", "size"),
    [pytest.param(everything, 2, id="process"), pytest.param(nothing, 0, id="machine")],
)
def test_after_a_crash_a_group_is_what_its_log_holds(survives: Surviving, size: int) -> None:
    disk = MemoryDisk()

    def start(epoch: int) -> Driver:
        inner = LocalOffsetsTopic(disk, ImmediateScheduler(), NoConcurrency(), 1)
        return Driver(topic=HeldOffsetsTopic(inner), epoch=epoch)

    start(0).stable_statics()
    disk.crash(survives)
    after = start(1).coordinator.group(GROUP)
    assert (0 if after is None else after.size) == size


def test_unknown_records_are_skipped() -> None:
    driver = Driver()
    driver.stable()
    unknown = Record(b"?", b"\x00\x07\x00\x01g")
    driver.topic.log(0).append_as_leader(MemoryRecords.with_records(unknown), 0)
    assert driver.failed_over().state == "Stable"


# -- administration and the gate


def test_describing_a_group_in_every_state() -> None:
    driver = Driver()

    def described() -> tuple[str, str, str, int]:
        request = DescribeGroupsRequest((GROUP,))
        (group,) = driver.coordinator.handle_describe_groups(request).groups
        return group.group_state, group.protocol_type, group.protocol_data, len(group.members)

    assert described() == ("Dead", "", "", 0)
    driver.pending()
    assert described() == ("Empty", "", "", 0)
    join = driver.join(metadata=b"m")
    assert described() == ("PreparingRebalance", "consumer", "", 1)
    driver.advance(51)  # the initial delay waits for nobody, not for pending members either
    member_id = join.response.member_id
    assert described() == ("CompletingRebalance", "consumer", "", 1)
    driver.sync(member_id, 1, {member_id: b"a"})
    assert described() == ("Stable", "consumer", "range", 1)
    (group,) = driver.coordinator.handle_describe_groups(DescribeGroupsRequest((GROUP,))).groups
    (member,) = group.members
    assert (member.member_id, member.client_id) == (member_id, "consumer-test")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"a")


def test_describing_another_brokers_group() -> None:
    (group,) = (
        Driver(owned=[]).coordinator.handle_describe_groups(DescribeGroupsRequest((GROUP,))).groups
    )
    assert (group.error_code, group.group_state) == (NOT_COORDINATOR, "")


@pytest.mark.parametrize("api", ["join", "sync", "heartbeat", "leave"])
def test_an_empty_group_id_is_invalid_for_members(api: str) -> None:
    driver = Driver()
    answers = {
        "join": lambda: driver.join(group="").response.error_code,
        "sync": lambda: driver.sync("m", group="").response.error_code,
        "heartbeat": lambda: driver.heartbeat("m", group=""),
        "leave": lambda: driver.leave_response(("m", None), group="").error_code,
    }
    assert answers[api]() is Errors.INVALID_GROUP_ID


def test_an_empty_group_id_may_keep_positions() -> None:
    driver = Driver()
    assert driver.commit(group="") is NONE
    (described,) = driver.coordinator.handle_describe_groups(DescribeGroupsRequest(("",))).groups
    assert described.group_state == "Empty"
    results = driver.coordinator.handle_delete_groups(DeleteGroupsRequest(("",))).results
    assert [result.error_code for result in results] == [NONE]


def test_a_coordinator_that_is_shut_down_answers_nothing_else() -> None:
    driver = Driver()
    member_id = driver.stable()
    driver.coordinator.shutdown()
    assert driver.heartbeat(member_id) is Errors.COORDINATOR_NOT_AVAILABLE
    assert driver.join().response.error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert driver.join(group="").response.error_code is Errors.INVALID_GROUP_ID
    results = driver.coordinator.handle_delete_groups(DeleteGroupsRequest((GROUP,))).results
    assert results[0].error_code is Errors.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    "api", ["join new", "join known", "sync", "heartbeat", "commit", "txn commit", "leave"]
)
def test_a_dead_group_sends_its_members_to_the_coordinator(api: str) -> None:
    """KAFKA-8386: a request that still reaches a Dead group must not cost the member its id."""
    driver = Driver()
    leader, _ = driver.stable_statics()
    driver.group.transition_to(GroupState.DEAD)
    answers = {
        "join new": lambda: driver.join().response.error_code,
        "join known": lambda: driver.join(leader, "leader", SUPERSET).response.error_code,
        "sync": lambda: driver.sync(leader, 1).response.error_code,
        "heartbeat": lambda: driver.heartbeat(leader, 1),
        "commit": lambda: driver.commit(leader, 1),
        "txn commit": lambda: driver.txn_commit(leader, 1),
        "leave": lambda: driver.leave_response((leader, None)).error_code,
    }
    assert answers[api]() is Errors.COORDINATOR_NOT_AVAILABLE
    assert driver.fetched() == (-1, NONE)


def test_errors_come_in_kafkas_order() -> None:
    """Each request is wrong in every way; as each fault is mended, the next one shows."""
    driver = Driver()
    leader, follower = driver.stable_statics()
    wrong = [
        driver.sync("x", 9, instance="leader", protocol_type="connect").response.error_code,
        driver.sync("x", 9, protocol_type="connect").response.error_code,
        driver.sync(leader, 9, protocol_type="connect").response.error_code,
        driver.sync(leader, 1, protocol_type="connect").response.error_code,
        driver.sync(leader, 1, protocol_type="consumer").response.error_code,
    ]
    assert wrong == [
        Errors.FENCED_INSTANCE_ID,
        Errors.UNKNOWN_MEMBER_ID,
        Errors.ILLEGAL_GENERATION,
        Errors.INCONSISTENT_GROUP_PROTOCOL,
        NONE,
    ]
    joins = [
        driver.join("x", "leader", ("none",), session=1).response.error_code,
        driver.join("x", "leader", ("none",)).response.error_code,
        driver.join("x", "leader", SUPERSET).response.error_code,
        driver.join("x", "nobody", SUPERSET).response.error_code,
        driver.join(follower, "follower", SUPERSET).response.error_code,
    ]
    assert joins == [
        Errors.INVALID_SESSION_TIMEOUT,
        Errors.INCONSISTENT_GROUP_PROTOCOL,
        Errors.FENCED_INSTANCE_ID,
        Errors.UNKNOWN_MEMBER_ID,
        NONE,
    ]


# -- records


@pytest.mark.parametrize(
    ("group_id", "expected"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("a", 97 % 50, id="one letter"),
        pytest.param("ab", (31 * 97 + 98) % 50, id="two letters"),
        pytest.param("polygenelubricants", 0, id="the smallest int has no absolute value"),
        pytest.param("\N{GRINNING FACE}", (31 * 0xD83D + 0xDE00) % 50, id="UTF-16"),
    ],
)
def test_the_partition_is_javas_hash(group_id: str, expected: int) -> None:
    assert partition_for(group_id, 50) == expected


def test_a_negative_hash_loses_its_sign() -> None:
    def java_hash(text: str) -> int:
        code = 0
        for char in text:
            code = (31 * code + ord(char)) % 2**32
        return code - 2**32 if code >= 2**31 else code

    negative = next(f"g{i}aaaaaaa" for i in range(100) if java_hash(f"g{i}aaaaaaa") < 0)
    assert partition_for(negative, 50) == -java_hash(negative) % 50


MEMBER = GroupMember("m", "i", "c", "/h", 7, 8, b"s", b"a")
VALUE = GroupMetadataValue("consumer", 3, "range", "m", 99, (MEMBER,))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (3, VALUE),
        (
            2,
            dataclasses.replace(
                VALUE, members=(dataclasses.replace(MEMBER, group_instance_id=None),)
            ),
        ),
        (
            1,
            dataclasses.replace(
                VALUE,
                current_state_timestamp=-1,
                members=(dataclasses.replace(MEMBER, group_instance_id=None),),
            ),
        ),
        (
            0,
            dataclasses.replace(
                VALUE,
                current_state_timestamp=-1,
                members=(
                    dataclasses.replace(MEMBER, group_instance_id=None, rebalance_timeout_ms=-1),
                ),
            ),
        ),
    ],
    ids=["v3", "v2", "v1", "v0"],
)
def test_group_values_of_every_version(version: int, expected: GroupMetadataValue) -> None:
    assert read_group_metadata_value(group_metadata_value(VALUE, version)) == expected


def test_the_bytes_of_a_group_value() -> None:
    empty = GroupMetadataValue("", 1, None, None, 2, ())
    expected = "0003 0000 00000001 ffff ffff 0000000000000002 00000000"
    assert group_metadata_value(empty).hex() == expected.replace(" ", "")


@pytest.mark.parametrize("expiry", [None, 500])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_positions_of_every_version(version: int, expiry: int | None) -> None:
    written = OffsetAndMetadata(5, 2, "meta", 400, expiry)
    read = read_offset_commit_value(offset_commit_value(written, version))
    epoch = 2 if version == 3 and expiry is None else -1
    assert read == dataclasses.replace(written, leader_epoch=epoch)


def test_the_bytes_of_a_position() -> None:
    position = OffsetAndMetadata(5, 2, "m", 400)
    expected = "0001 0000000000000005 0001 6d 0000000000000190 ffffffffffffffff"
    assert offset_commit_value(position, 1).hex() == expected.replace(" ", "")
    expected = "0003 0000000000000005 00000002 0001 6d 0000000000000190"
    assert offset_commit_value(position).hex() == expected.replace(" ", "")


def test_keys() -> None:
    assert read_message_key(group_metadata_key("g")) == GroupMetadataKey("g")
    assert read_message_key(offset_commit_key("g", TP)) == OffsetKey("g", TP)
    assert read_message_key(b"\x00\x08") == UnknownKey(8)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x02\x00\x05g", b"\x00\x02\x00\x01\xff"])
def test_what_is_not_a_key_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecordException):
        read_message_key(data)


@pytest.mark.parametrize("data", [b"", b"\x00\x04", b"\x00\x03\x00\x05g", b"\xff\xff\x00\x01\xff"])
def test_what_is_not_a_value_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptRecordException):
        read_group_metadata_value(data)
    with pytest.raises(CorruptRecordException):
        read_offset_commit_value(data)


def test_finding_the_coordinator() -> None:
    leaders = {partition_for(GROUP, 50): BrokerEndPoint(3)}

    def find(group_id: str) -> tuple[Errors, int | None]:
        answer = find_coordinator(FindCoordinatorRequest(group_id), 50, leaders.get)
        return answer.error_code, answer.coordinator.id if answer.coordinator else None

    assert find(GROUP) == (NONE, 3)
    assert find("another") == (Errors.COORDINATOR_NOT_AVAILABLE, None)
    assert find("") == (Errors.INVALID_GROUP_ID, None)


def test_the_first_epoch_of_a_partition_is_fenced_by_no_number() -> None:
    topic = LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), NoConcurrency(), 5)
    answers: list[Errors] = []
    topic.become_leader(3, 0)
    topic.append(3, 0, (Record(b"value", b"key"),), lambda error, _: answers.append(error))
    assert answers == [Errors.NONE]


def test_only_the_coordinator_of_a_group_knows_that_there_is_none() -> None:
    driver = Driver(num_partitions=2, owned=[])
    manager = driver.coordinator.manager
    assert not manager.group_not_exists(GROUP), "another broker may have it"
    driver = Driver()
    manager = driver.coordinator.manager
    assert manager.group_not_exists(GROUP)
    driver.commit(offset=1)
    assert not manager.group_not_exists(GROUP)


def test_an_empty_name_is_another_one_than_none() -> None:
    value = GroupMetadataValue("consumer", 1, "", None, 5, ())
    assert read_group_metadata_value(group_metadata_value(value)) == value
