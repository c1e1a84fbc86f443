"""Transactions at the wire server's broker: every request, in the versions that differ."""

from __future__ import annotations

from typing import Any

import pytest

from impl.clock import MockClock
from impl.errors import Errors
from impl.record_format import ProducerInfo, Record
from impl.records import RecordBatch, decode_batches
from impl.types import BrokerEndPoint
from impl.wire.broker import OFFERED, Broker, BrokerConfig
from impl.wire.entities import make, milliseconds, module_of
from impl.wire.transactions import FIRST_PRODUCER_ID, SCAN_MS
from tests.unit.impl.wire.test_wire_logs import asked, topic_id

TIMEOUT_MS = 60_000
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
VERSION_1, VERSION_2 = (11, 4, 4), (12, 5, 5)
"""Versions of Produce, EndTxn and TxnOffsetCommit."""


class Session:
    """Transactional id "t" at a broker of its own."""

    def __init__(self, versions: tuple[int, int, int]) -> None:
        self.clock = MockClock()
        config = BrokerConfig(BrokerEndPoint(0, "h", 1), {"orders": 2})
        self.broker = Broker(config, self.clock, lambda _, call: call())
        self.produces, self.ends, self.commits = versions
        self.epoch = -1

    def ask(self, api: str, version: int, **values: object) -> Any:
        module = module_of(api, version, "request")
        name = "".join(map(str.capitalize, api.split("_"))) + "Request"
        return asked(self.broker, make(getattr(module, name), **values))

    def init(self, version: int = 5, **values: object) -> Errors:
        answer = self.ask(
            "init_producer_id",
            version,
            transactional_id="t",
            transaction_timeout=milliseconds(TIMEOUT_MS),
            **values,
        )
        if not answer.error_code:
            self.epoch = answer.producer_epoch
        return Errors(int(answer.error_code))

    def add(self, partition: int, epoch: int | None = None, version: int = 3) -> Errors:
        module = module_of("add_partitions_to_txn", version, "request")
        topic = module.AddPartitionsToTxnTopic(name="orders", partitions=(partition,))
        answer = self.ask(
            "add_partitions_to_txn",
            version,
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=FIRST_PRODUCER_ID,
            v3_and_below_producer_epoch=self.epoch if epoch is None else epoch,
            v3_and_below_topics=(topic,),
        )
        ((result,),) = (t.results_by_partition for t in answer.results_by_topic_v3_and_below)
        return Errors(int(result.partition_error_code))

    def produce(
        self, sequence: int, partition: int = 0, epoch: int | None = None, version: int = 0
    ) -> Errors:
        version = version or self.produces
        module = module_of("produce", version, "request")
        producer = ProducerInfo(FIRST_PRODUCER_ID, self.epoch if epoch is None else epoch, sequence)
        batch = RecordBatch.create((Record(b"v"),), producer=producer, is_transactional=True)
        data = make(module.PartitionProduceData, index=partition, records=batch.to_bytes())
        id = topic_id(self.broker) if version > 12 else None
        topic = make(module.TopicProduceData, name="orders", topic_id=id, partition_data=(data,))
        answer = self.ask(
            "produce",
            version,
            transactional_id="t",
            acks=-1,
            timeout=milliseconds(10),
            topic_data=(topic,),
        )
        ((result,),) = (t.partition_responses for t in answer.responses)
        return Errors(int(result.error_code))

    def end(self, *, commits: bool, epoch: int | None = None) -> tuple[Errors, int]:
        answer = self.ask(
            "end_txn",
            self.ends,
            transactional_id="t",
            producer_id=FIRST_PRODUCER_ID,
            producer_epoch=self.epoch if epoch is None else epoch,
            committed=commits,
        )
        return Errors(int(answer.error_code)), getattr(answer, "producer_epoch", -1)

    def add_offsets(self, version: int = 4) -> Errors:
        answer = self.ask(
            "add_offsets_to_txn",
            version,
            transactional_id="t",
            producer_id=FIRST_PRODUCER_ID,
            producer_epoch=self.epoch,
            group_id="g",
        )
        return Errors(int(answer.error_code))

    def commit_offset(self, offset: int, epoch: int | None = None, version: int = 0) -> Errors:
        version = version or self.commits
        module = module_of("txn_offset_commit", version, "request")
        partition = make(
            module.TxnOffsetCommitRequestPartition,
            partition_index=0,
            committed_offset=offset,
            committed_metadata=None,
        )
        topic = module.TxnOffsetCommitRequestTopic(name="orders", partitions=(partition,))
        answer = self.ask(
            "txn_offset_commit",
            version,
            transactional_id="t",
            group_id="g",
            producer_id=FIRST_PRODUCER_ID,
            producer_epoch=self.epoch if epoch is None else epoch,
            topics=(topic,),
        )
        ((result,),) = (t.partitions for t in answer.topics)
        return Errors(int(result.error_code))

    def committed_offset(self) -> tuple[Errors, int]:
        module = module_of("offset_fetch", 7, "request")
        topic = module.OffsetFetchRequestTopic(name="orders", partition_indexes=(0,))
        answer = self.ask("offset_fetch", 7, group_id="g", topics=(topic,), require_stable=True)
        ((result,),) = (t.partitions for t in answer.topics)
        return Errors(int(result.error_code)), result.committed_offset

    def read(self, isolation: int, partition: int = 0) -> tuple[int, int, Any]:
        """How many batches, the last stable offset, and the aborted transactions."""
        module = module_of("fetch", 12, "request")
        data = make(
            module.FetchPartition, partition=partition, fetch_offset=0, partition_max_bytes=1000
        )
        topic = make(module.FetchTopic, topic="orders", partitions=(data,))
        answer = self.ask(
            "fetch",
            12,
            max_wait=milliseconds(0),
            min_bytes=0,
            isolation_level=isolation,
            topics=(topic,),
            forgotten_topics_data=(),
        )
        ((read,),) = (t.partitions for t in answer.responses)
        aborted = read.aborted_transactions
        return (
            len(decode_batches(bytes(read.records))),
            read.last_stable_offset,
            None if aborted is None else [(a.producer_id, a.first_offset) for a in aborted],
        )

    def latest(self, isolation: int) -> int:
        module = module_of("list_offsets", 6, "request")
        data = make(module.ListOffsetsPartition, partition_index=0, timestamp=-1)
        topic = make(module.ListOffsetsTopic, name="orders", partitions=(data,))
        answer = self.ask(
            "list_offsets", 6, replica_id=-1, isolation_level=isolation, topics=(topic,)
        )
        ((listed,),) = (t.partitions for t in answer.topics)
        return int(listed.offset)

    def described(self, transactional_id: str = "t") -> tuple[Errors, str, int, list[Any]]:
        answer = self.ask("describe_transactions", 0, transactional_ids=(transactional_id,))
        (state,) = answer.transaction_states
        return (
            Errors(int(state.error_code)),
            state.transaction_state,
            state.producer_epoch,
            [(topic.topic, topic.partitions) for topic in state.topics],
        )

    def producer(self) -> tuple[int, int, int, int]:
        """Epoch, last sequence, coordinator epoch, where the open transaction begins."""
        module = module_of("describe_producers", 0, "request")
        topic = make(module.TopicRequest, name="orders", partition_indexes=(0,))
        answer = self.ask("describe_producers", 0, topics=(topic,))
        ((described,),) = (t.partitions for t in answer.topics)
        (state,) = described.active_producers
        return (
            state.producer_epoch,
            state.last_sequence,
            state.coordinator_epoch,
            state.current_txn_start_offset,
        )

    def write_marker(
        self, version: int, epoch: int, *, commits: bool = True, topic: str = "orders"
    ) -> Errors:
        module = module_of("write_txn_markers", version, "request")
        where = module.WritableTxnMarkerTopic(name=topic, partition_indexes=(0,))
        marker = make(
            module.WritableTxnMarker,
            producer_id=FIRST_PRODUCER_ID,
            producer_epoch=epoch,
            transaction_result=commits,
            topics=(where,),
            coordinator_epoch=0,
            transaction_version=2,
        )
        (answer,) = self.ask("write_txn_markers", version, markers=(marker,)).markers
        ((result,),) = (t.partitions for t in answer.topics)
        return Errors(int(result.error_code))


@pytest.mark.parametrize("commits", [True, False])
def test_version_1_keeps_the_epoch_and_shows_what_is_committed(commits: bool) -> None:
    session = Session(VERSION_1)
    assert session.init() is Errors.NONE
    assert session.produce(0) is Errors.TRANSACTION_ABORTABLE, "it was not added"
    assert session.add(0) is Errors.NONE
    assert session.described()[1:] == ("Ongoing", 0, [("orders", (0,))])
    assert session.produce(0) is Errors.NONE
    assert session.producer() == (0, 0, -1, 0)
    assert session.read(READ_COMMITTED) == (0, 0, [])
    assert (session.latest(READ_COMMITTED), session.latest(READ_UNCOMMITTED)) == (0, 1)
    assert session.end(commits=commits) == (Errors.NONE, -1)
    ended = "CompleteCommit" if commits else "CompleteAbort"
    assert session.described()[1:] == (ended, 0, [])
    assert session.read(READ_COMMITTED) == (2, 2, [] if commits else [(FIRST_PRODUCER_ID, 0)])
    assert session.read(READ_UNCOMMITTED) == (2, 2, None)
    assert session.producer() == (0, 0, 0, -1)
    assert session.end(commits=not commits)[0] is Errors.INVALID_TXN_STATE


@pytest.mark.parametrize("commits", [True, False])
def test_version_2_adds_by_itself_and_raises_the_epoch(commits: bool) -> None:
    session = Session(VERSION_2)
    session.init()
    assert session.produce(0) is Errors.NONE
    assert session.described()[1:] == ("Ongoing", 0, [("orders", (0,))])
    assert session.end(commits=commits) == (Errors.NONE, 1)
    assert session.end(commits=commits) == (Errors.NONE, 1), "the same request once more"
    assert session.read(READ_COMMITTED)[:2] == (2, 2)
    assert session.produce(1) is Errors.INVALID_PRODUCER_EPOCH, "a late batch"
    assert session.producer() == (1, -1, 0, -1)


@pytest.mark.parametrize("version", range(3, 14))
def test_the_version_of_produce_decides_what_an_unadded_partition_is(version: int) -> None:
    session = Session(VERSION_2)
    session.init()
    error = session.produce(0, version=version)
    if version >= 12:
        assert error is Errors.NONE
    else:
        old = version < 11
        assert error is (Errors.INVALID_TXN_STATE if old else Errors.TRANSACTION_ABORTABLE)


@pytest.mark.parametrize("version", range(OFFERED["init_producer_id"][2] + 1))
def test_another_instance_fences_the_first(version: int) -> None:
    session = Session(VERSION_2)
    session.init()
    session.produce(0)
    assert session.init(version) is Errors.CONCURRENT_TRANSACTIONS
    assert session.described()[1:] == ("CompleteAbort", 1, [])
    assert session.init(version) is Errors.NONE
    assert session.epoch == 2
    assert session.produce(1, epoch=0) is Errors.INVALID_PRODUCER_EPOCH
    assert session.end(commits=True, epoch=0)[0] is Errors.PRODUCER_FENCED
    assert session.commit_offset(1, epoch=0) is Errors.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("version", "error"), [(1, Errors.INVALID_PRODUCER_EPOCH), (2, Errors.PRODUCER_FENCED)]
)
def test_old_versions_know_the_fence_by_another_name(version: int, error: Errors) -> None:
    session = Session((11, version, 4))
    session.init()
    session.init()
    assert session.add(0, epoch=0, version=version) is error
    assert session.end(commits=True, epoch=0)[0] is error


def test_an_expected_epoch_without_its_producer_id_is_no_request() -> None:
    session = Session(VERSION_2)
    assert session.init(producer_id=-1, producer_epoch=3) is Errors.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 3, 4, 5])
@pytest.mark.parametrize("commits", [True, False])
def test_offsets_show_once_they_are_committed(version: int, commits: bool) -> None:
    session = Session((12, 5, version))
    session.init()
    if version < 5:
        refused = Errors.TRANSACTION_ABORTABLE if version == 4 else Errors.INVALID_TXN_STATE
        assert session.commit_offset(7) is refused
        assert session.add_offsets() is Errors.NONE
    assert session.commit_offset(7) is Errors.NONE
    assert session.committed_offset() == (Errors.UNSTABLE_OFFSET_COMMIT, -1)
    assert session.end(commits=commits)[0] is Errors.NONE
    assert session.committed_offset() == (Errors.NONE, 7 if commits else -1)


def test_a_late_marker_leaves_the_offsets_of_the_next_transaction_pending() -> None:
    session = Session(VERSION_2)
    session.init()
    session.commit_offset(7)
    _, session.epoch = session.end(commits=True)
    assert session.commit_offset(8) is Errors.NONE
    late = session.write_marker(2, session.epoch, topic="__consumer_offsets")
    assert late is Errors.INVALID_PRODUCER_EPOCH
    assert session.committed_offset() == (Errors.UNSTABLE_OFFSET_COMMIT, -1)


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    session = Session(VERSION_2)
    session.init()
    session.produce(0)
    session.clock.sleep(TIMEOUT_MS)
    session.broker.expire_due()
    assert session.described()[1] == "Ongoing"
    session.clock.sleep(SCAN_MS)
    session.broker.expire_due()
    assert session.described()[1:] == ("CompleteAbort", 1, [])
    assert session.read(READ_COMMITTED)[2] == [(FIRST_PRODUCER_ID, 0)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_by_hand_needs_an_epoch_of_its_own_from_version_2_on(version: int) -> None:
    session = Session(VERSION_2)
    session.init()
    session.produce(0)
    expected = Errors.INVALID_PRODUCER_EPOCH if version == 2 else Errors.NONE
    assert session.write_marker(version, 0) is expected
    assert (session.read(READ_COMMITTED)[1] == 2) == (version == 1)


def test_what_no_client_sends_has_an_error_and_changes_nothing() -> None:
    session = Session(VERSION_2)
    session.init()
    session.produce(0)
    before = session.described(), session.producer(), session.read(READ_UNCOMMITTED)
    assert session.produce(1, epoch=9) is Errors.INVALID_PRODUCER_EPOCH
    assert session.add(9) is Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert session.end(commits=True, epoch=9)[0] is Errors.PRODUCER_FENCED
    assert session.described("unknown")[0] is Errors.TRANSACTIONAL_ID_NOT_FOUND
    assert session.described("")[0] is Errors.INVALID_REQUEST
    assert (session.described(), session.producer(), session.read(READ_UNCOMMITTED)) == before


def test_a_list_is_filtered() -> None:
    session = Session(VERSION_2)
    session.init()
    session.produce(0)

    def listed(**filters: object) -> tuple[Errors, list[str], tuple[str, ...]]:
        values: dict[str, object] = {"state_filters": (), "producer_id_filters": (), **filters}
        answer = session.ask("list_transactions", 2, **values)
        names = [state.transactional_id for state in answer.transaction_states]
        return Errors(int(answer.error_code)), names, answer.unknown_state_filters

    assert listed() == (Errors.NONE, ["t"], ())
    assert listed(state_filters=("Ongoing", "What")) == (Errors.NONE, ["t"], ("What",))
    assert listed(state_filters=("Empty",))[1] == []
    assert listed(producer_id_filters=(1,))[1] == []
    assert listed(duration_filter=1)[1] == []
    assert listed(transactional_id_pattern="x.*")[1] == []
    assert listed(transactional_id_pattern="(")[0] is Errors.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_feature_says_by_which_rules_clients_end(level: int) -> None:
    config = BrokerConfig(BrokerEndPoint(0, "h", 1), {}, transaction_version=level)
    broker = Broker(config, MockClock(), lambda _, call: call())
    module = module_of("api_versions", 3, "request")
    body = module.ApiVersionsRequest(client_software_name="k", client_software_version="1")
    answer = asked(broker, body)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert levels.get("transaction.version", 0) == level
