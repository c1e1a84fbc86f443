"""Server logs: each wording of each version gives its kind and its fields."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import UserError
from conformance.inspect.evidence import Evidence
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of
from conformance.inspect.reading.lines import patterns
from conformance.inspect.reading.reader import read

LEADER_38 = (
    "[Broker id=2] Leader t-1 with topic id Some(88Cnx1IkTlmmPjK51qdjIw) starts at leader epoch 3 "
    "from offset 7 with partition epoch 5, high watermark 6, ISR [2,3,1], adding replicas [] and "
    "removing replicas [4] . Previous leader Some(1) and previous leader epoch was 2."
)
FOLLOWER_38 = (
    "[Broker id=2] Follower t-0 starts at leader epoch 1 from offset 12 with partition epoch 2 and "
    "high watermark 11. Current leader is 1. Previous leader Some(1) and previous leader epoch was "
    "0."
)
FETCHER = "[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0] "
TABLE: list[tuple[str, str, dict[str, Any]]] = [
    (LEADER_38, "become-leader", {"tp": "t-1", "epoch": 3, "offset": 7, "partition_epoch": 5,
     "high_watermark": 6, "isr": [2, 3, 1], "adding": [], "removing": [4], "previous_leader": 1,
     "previous_epoch": 2, "broker": 2}),
    ("[Broker id=1] Leader t-0 with topic id None starts at leader epoch 0 from offset 0 with "
     "partition epoch 0, high watermark 0, ISR [1], adding replicas [] and removing replicas [] "
     "(under-min-isr). Previous leader None and previous leader epoch was -1.",
     "become-leader", {"previous_leader": "None", "under_min_isr": "(under-min-isr)"}),
    ("[Broker id=1] Leader t-0 with topic id Some(abc) starts at leader epoch 4 from offset 9 with "
     "partition epoch 2, high watermark 9, ISR [1,2], adding replicas [] and removing replicas []. "
     "Previous leader epoch was 3.", "become-leader", {"epoch": 4, "previous_epoch": 3}),
    ("[Broker id=1] Leader t-0 starts at leader epoch 4 from offset 9 with high watermark 8 ISR "
     "[1,2] addingReplicas [] removingReplicas []. Previous leader epoch was 3.",
     "become-leader", {"epoch": 4, "high_watermark": 8, "isr": [1, 2]}),
    ("[Partition t-0 broker=1] t-0 starts at leader epoch 4 from offset 9 with high watermark 8. "
     "Previous leader epoch was 3.", "become-leader", {"tp": "t-0", "broker": 1}),
    ("[Partition t-0 broker=1] t-0 starts at Leader Epoch 4 from offset 9. Previous Leader Epoch "
     "was: 3", "become-leader", {"epoch": 4, "offset": 9}),
    (FOLLOWER_38, "become-follower", {"tp": "t-0", "epoch": 1, "offset": 12, "leader": 1,
     "partition_epoch": 2, "high_watermark": 11}),
    ("[Broker id=3] Follower t-0 starts at leader epoch 1 from offset 12 with high watermark 11. "
     "Previous leader epoch was 0.", "become-follower", {"offset": 12, "high_watermark": 11}),
    ("[Broker id=1] Skipped the become-follower state change for t-0 with topic id Some(x) and "
     "partition state LeaderAndIsrPartitionState(leaderEpoch=1) since it is already the follower "
     "with leader epoch 1.", "become-follower-skipped", {"tp": "t-0", "epoch": 1}),
    ("[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 5, "
     "endOffset: 9). Out of sync replicas: (brokerId: 3, endOffset: 5, lastCaughtUpTimeMs: 7).",
     "isr-shrink", {"tp": "t-0", "isr_before": [1, 2, 3], "isr": [1, 2], "high_watermark": 5}),
    ("[Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1", "isr-shrink", {"isr": [1]}),
    ("[Partition t-0 broker=1] Expanding ISR from 1 to 1,2", "isr-expand", {"isr": [1, 2]}),
    ("[Partition t-0 broker=1] ISR updated to 2,3,1  and version updated to 4", "isr-updated",
     {"isr": [2, 3, 1], "partition_epoch": 4}),
    ("[Partition t-0 broker=1] ISR updated to 2 (under-min-isr) and version updated to 4",
     "isr-updated", {"isr": [2], "partition_epoch": 4}),
    ("[Partition t-0 broker=1] ISR updated to [1,2] and zkVersion updated to [7]", "isr-updated",
     {"isr": [1, 2], "partition_epoch": 7}),
    ("[Partition t-0 broker=1] ISR updated from AlterIsr to 1,2 and version updated to [7]",
     "isr-updated", {"isr": [1, 2]}),
    ("[Partition t-1 broker=2] Log loaded for partition t-1 with initial high watermark 60",
     "log-loaded", {"tp": "t-1", "high_watermark": 60}),
    ("[UnifiedLog partition=t-0, dir=/d] Non-monotonic update of high watermark from "
     "LogOffsetMetadata(offset=9, segmentBaseOffset=0, relativePositionInSegment=10) to "
     "LogOffsetMetadata(offset=4, segmentBaseOffset=-1, relativePositionInSegment=-1)",
     "high-watermark-fell", {"tp": "t-0", "high_watermark_before": 9, "high_watermark": 4}),
    ("[Log partition=t-0, dir=/d] Non-monotonic update of high watermark from (offset=9 "
     "segment=[0:10]) to (offset=4 segment=[-1:-1])", "high-watermark-fell",
     {"high_watermark_before": 9, "high_watermark": 4}),
    (FETCHER + "Truncating partition t-0 with TruncationState(offset=4, completed=true) due to "
     "local high watermark 4", "truncate-to-high-watermark",
     {"tp": "t-0", "offset": 4, "leaderId": 1, "broker": 3}),
    (FETCHER + "Truncating partition t-0 to local high watermark 4", "truncate-to-high-watermark",
     {"high_watermark": 4}),
    (FETCHER + "Truncating partition t-0 with TruncationState(offset=8, completed=true) due to "
     "leader epoch and offset EpochEndOffset(errorCode=0, partition=0, leaderEpoch=2, "
     "endOffset=8)", "truncate-to-epoch", {"tp": "t-0", "offset": 8, "epoch": 2, "end_offset": 8}),
    ("[UnifiedLog partition=t-0, dir=/d/x] Truncating to offset 8", "truncated",
     {"tp": "t-0", "offset": 8, "dir": "/d/x"}),
    ("[Log partition=t-0, dir=/d/x] Truncating to 9 has no effect as the largest offset in the log "
     "is 7", "truncation-without-effect", {"offset": 9, "last_offset": 7}),
    (FETCHER + "Truncating t-0 to offset 3 below high watermark 5", "truncate-below-high-watermark",
     {"offset": 3, "high_watermark": 5}),
    (FETCHER + "Reset fetch offset for partition t-0 from 9 to current leader's latest offset 7",
     "reset-fetch-offset", {"end_offset": 9, "offset": 7}),
    (FETCHER + "Truncate fully and reset fetch offset for partition t-0 from 3 to the current "
     "leader's start offset 7 because the local replica's end offset is smaller than the current "
     "leader's start offsets.", "reset-fetch-offset", {"end_offset": 3, "offset": 7}),
    (FETCHER + "Current offset 9 for partition t-0 is out of range, which typically implies a "
     "leader change. Reset fetch offset to 7", "fetch-out-of-range", {"new_offset": 7}),
    (FETCHER + "Partition t-0 has an older epoch (1) than the current leader. Will await the new "
     "LeaderAndIsr state before resuming fetching.", "fetcher-in-older-epoch", {"epoch": 1}),
    (FETCHER + "Partition t-0 has an new epoch (1) than the current leader. retry the partition "
     "later", "fetcher-in-newer-epoch", {"epoch": 1}),
    ("[LeaderEpochCache t-0] New epoch entry EpochEntry(epoch=5, startOffset=8) caused truncation "
     "of conflicting entries ListBuffer(EpochEntry(epoch=4, startOffset=9)). Cache now contains 2 "
     "entries.", "epoch-conflict", {"tp": "t-0", "epoch": 5, "offset": 8}),
    ("[LogLoader partition=t-0, dir=/d] Recovering unflushed segment 0. 0/1 recovered for t-0.",
     "segment-recovered", {"tp": "t-0", "segment": 0}),
    ("Completed load of Log(dir=/d/t-0, topicId=88C, topic=t, partition=0, highWatermark=0, "
     "lastStableOffset=0, logStartOffset=0, logEndOffset=12) with 1 segments",
     "log-load-completed", {"tp": "t-0", "end_offset": 12, "high_watermark": 0}),
    ("Recovering 2 logs from /d since no clean shutdown file was found", "unclean-shutdown", {}),
    ("[QuorumController id=1] UNCLEAN partition change for t-0 with topic ID 88C: leader: 1 -> 2, "
     "leaderEpoch: 1 -> 2", "unclean-election", {"tp": "t-0", "topic_id": "88C"}),
    ("[RaftManager id=2] Completed transition to Leader(localId=2, epoch=1, epochStartOffset=0) "
     "from CandidateState(localId=2)", "quorum-state", {"state": "Leader", "before": "Candidate"}),
    ("[QuorumController id=2] Fencing broker 1 because its session has timed out.",
     "broker-fenced", {"fenced": 1}),
    ("[GroupCoordinator 1]: Preparing to rebalance group g in state PreparingRebalance with old "
     "generation 3 (__consumer_offsets-5) (reason: leaving)", "group-rebalance",
     {"group": "g", "generation": 3, "reason": "leaving"}),
    ("[GroupCoordinator id=1 topic=__consumer_offsets partition=5] Stabilized group g h generation "
     "4 with 2 members.", "group-stabilized",
     {"tp": "__consumer_offsets-5", "group": "g h", "generation": 4, "members": 2}),
    ("[GroupCoordinator id=1 topic=__consumer_offsets partition=0] [Group g] Member m-1 has left "
     "group through explicit `LeaveGroup` request; client reason: not provided",
     "group-member-left", {"group_java": "g", "member": "m-1"}),
    ("[UnifiedLog partition=t-0, dir=/d] Appended message set with last offset: 9, first offset: "
     "7, next offset: 10, and messages: x", "appended",
     {"tp": "t-0", "offset": 7, "last_offset": 9, "end_offset": 10}),
    ("[UnifiedLog partition=t-0, dir=/d] Setting high watermark LogOffsetMetadata(offset=7, x)",
     "high-watermark-set", {"high_watermark": 7}),
    (FETCHER + "Follower received high watermark 9 from the leader and updated replica high "
     "watermark to 8 for partition t-0", "follower-high-watermark",
     {"leader_high_watermark": 9, "high_watermark": 8}),
    ("[Partition t-0 broker=1] High watermark updated from (offset=3 segment=[0:1]) to (offset=4 "
     "segment=[0:2])", "high-watermark-updated", {"high_watermark_before": 3, "high_watermark": 4}),
]  # fmt: skip


def lines_of(
    tmp_path: Path, text: str | bytes, name: str = "server.log", **options: Any
) -> Evidence:
    (tmp_path / "b1" / "data").mkdir(parents=True, exist_ok=True)
    (tmp_path / "b2").mkdir(exist_ok=True)
    content = text.encode() if isinstance(text, str) else text
    (tmp_path / "b1" / name).write_bytes(content)
    inputs = Inputs(
        brokers_of([f"b1={tmp_path / 'b1' / 'data'}", f"b2={tmp_path / 'b2'}"]),
        (str(tmp_path / "b1" / "*.log*"),),
        **options,
    )
    return read(inputs, tmp_path / "out", ())


def line(message: str, time: str = "2024-05-04 10:11:12,345", level: str = "INFO") -> str:
    return f"[{time}] {level} {message} (kafka.Some$Class)\n"


def test_each_wording_gives_its_kind_and_fields(tmp_path: Path) -> None:
    evidence = lines_of(tmp_path, "".join(line(message) for message, _, _ in TABLE))
    rows = list(evidence.rows("log_lines"))
    assert [row["line"] for row in rows] == list(range(1, len(TABLE) + 1))
    for row, (message, kind, fields) in zip(rows, TABLE, strict=True):
        assert row["kind"] == kind, message
        found = json.loads(row["fields"])
        found["tp"] = f"{row['topic']}-{row['partition']}"
        assert fields.items() <= found.items(), message
        assert row["text"] == message


def test_every_wording_of_the_table_has_literal_words_and_tells_something() -> None:
    for pattern in patterns():
        assert pattern.level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
        assert re.fullmatch(r"\d\.\d+(\.\d)?(-(\d\.\d+(\.\d)?)?)?", pattern.versions)
        assert re.fullmatch(r"[a-z-]+", pattern.kind)
        assert len(pattern.words) > 5


def test_what_tells_nothing_and_what_is_no_log_is_passed_over(tmp_path: Path) -> None:
    text = line("Kafka version: 3.8.1") + "Truncating to offset 3\n\tat stack.trace\n\n"
    evidence = lines_of(tmp_path, text.encode() + b"\xff\xfe Truncating to offset \x00\n")
    assert evidence.table("log_lines").num_rows == 0
    assert [row["status"] for row in evidence.rows("files")] == ["read"]


def test_other_prefixes_are_understood(tmp_path: Path) -> None:
    """A container's prefix, a line number behind the logger."""
    text = "kafka_1  | " + line("[Log partition=t-0, dir=/d] Truncating to offset 3")
    text += text.replace("Class)", "Class:412)").replace(",345", ".345")
    rows = list(lines_of(tmp_path, text).rows("log_lines"))
    assert [row["time"] for row in rows] == [1714817472345] * 2
    assert rows[1]["text"].endswith("offset 3")


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    text = line("[Log partition=t-0, dir=/d] Truncating to offset 3").encode()
    evidence = lines_of(tmp_path, text + b"Truncating to offset " * 200_000 + b"\n" + text)
    assert [row["line"] for row in evidence.rows("log_lines")] == [1, 3]


def test_rotated_and_compressed_logs(tmp_path: Path) -> None:
    text = line("[Log partition=t-0, dir=/d] Truncating to offset 3")
    evidence = lines_of(tmp_path, gzip.compress(text.encode()), "server.log.1.gz")
    (row,) = evidence.rows("log_lines")
    assert (row["broker"], row["path"]) == ("b1", str(tmp_path / "b1" / "server.log.1.gz"))


def test_a_damaged_archive_is_in_error(tmp_path: Path) -> None:
    data = gzip.compress(line("Truncating to offset 3").encode() * 100)
    evidence = lines_of(tmp_path, data[:-12], "server.log.gz")
    assert [row["status"] for row in evidence.rows("files")] == ["error"]


def test_time_zone_and_filters(tmp_path: Path) -> None:
    message = "[Log partition={}, dir=/d] Truncating to offset 3"
    text = line(message.format("t-0")) + line(message.format("u-0"))
    text += line(message.format("t-0"), "2024-05-04 12:00:00,000")
    text += line("Fencing broker 1 because its session has timed out")
    filters = Filters(topics=frozenset({"t"}), until=1714817472345 - 7_200_000)
    evidence = lines_of(tmp_path, text, zone="Europe/Berlin", filters=filters)
    assert [row["line"] for row in evidence.rows("log_lines")] == [1, 4]


def test_a_log_belongs_to_the_broker_whose_folder_is_beside_it_or_that_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "b1" / "data").mkdir(parents=True)
    (tmp_path / "b2" / "data").mkdir(parents=True)
    for place in ("b1/x.log", "b2/data/x.log", "x.log", "y.log"):
        (tmp_path / place).write_text(line("[Log partition=t-0, dir=/d] Truncating to offset 3"))
    inputs = Inputs(
        brokers_of([f"b1={tmp_path}/b1/data", f"b2={tmp_path}/b2/data"]),
        (f"b2={tmp_path}/y.log", f"{tmp_path}/**/*.log"),
    )
    evidence = read(inputs, tmp_path / "out", ())
    owners = {Path(row["path"]).relative_to(tmp_path).as_posix(): row["broker"]
              for row in evidence.rows("log_lines")}  # fmt: skip
    assert owners == {"b1/x.log": "b1", "b2/data/x.log": "b2", "x.log": "", "y.log": "b2"}


def test_a_log_that_lies_elsewhere_belongs_to_the_broker_whose_node_id_it_tells(
    tmp_path: Path,
) -> None:
    told = {
        "one.log": line("KafkaConfig values:\n\tnode.id = 1\n", "2024-05-04 10:11:12,345"),
        "two.log": line("[BrokerServer id=2] Transition from SHUTDOWN to STARTING"),
        "both.log": line("[Broker id=2] x") + line("[Broker id=1] x"),
        "none.log": "",
    }
    (tmp_path / "logs").mkdir()
    for name, text in told.items():
        text += line("[Log partition=t-0, dir=/d] Truncating to offset 3")
        (tmp_path / "logs" / name).write_text(text)
    for node in (1, 2):
        (tmp_path / "data" / f"b{node}").mkdir(parents=True)
        properties = tmp_path / "data" / f"b{node}" / "meta.properties"
        properties.write_text(f"version=1\nnode.id={node}\n")
    brokers = brokers_of([f"x={tmp_path}/data/b1", f"y={tmp_path}/data/b2"])
    evidence = read(Inputs(brokers, (f"{tmp_path}/logs/*",)), tmp_path / "out", ())
    owners = {Path(row["path"]).name: row["broker"] for row in evidence.rows("log_lines")}
    assert owners == {"one.log": "x", "two.log": "y", "both.log": "", "none.log": ""}


def test_patterns_that_name_nothing_and_unknown_zones_are_the_users(tmp_path: Path) -> None:
    (tmp_path / "b1").mkdir()
    brokers = brokers_of([f"b1={tmp_path / 'b1'}"])
    with pytest.raises(UserError, match="names no file"):
        read(Inputs(brokers, (f"{tmp_path}/no*",)), tmp_path / "out", ())
    with pytest.raises(UserError, match="no time zone"):
        read(Inputs(brokers, zone="Mars"), tmp_path / "out2", ())
