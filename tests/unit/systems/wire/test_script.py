"""Divergences at a port as scripts: what can be said, how it reads, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.stages.story import read_story, script_of
from conformance.systems.kafka.factory import KafkaFactory

KFAKE = Path(__file__).resolve().parents[4] / "docs" / "cards" / "kfake"
PATHS = KafkaFactory("4.4.0").file("")
NO_ERROR = 'assert answer.error_code.name.upper() == "NONE"'
STARVED = "group-protocols-2m-replay-HandleSyncGroup-not-allowed-channel-groupState.itf.json"


def lines_of(name: str) -> list[str]:
    """What the script does, without its helpers; a script that is no Python fails here."""
    text = script_of(read_story(KFAKE / name))
    compile(text, name, "exec")
    lines = [line for line in text.splitlines() if line]
    return lines[lines.index('m1 = Client("m1")') :]


def test_a_script_reads_as_its_story() -> None:
    assert lines_of(STARVED) == [
        'm1 = Client("m1")',
        'm2 = Client("m2")',
        'm2.join("", "range")',
        'm1.join("", "range", "sticky")',
        "m1.channel.is_answered(PATIENCE)",
        "m2.channel.is_answered(PATIENCE)",
        "m2.answer()",
        "# when",
        "m2.sync(m2.member_id, 1, {'m1': [0], 'm2': [1]})",
        "# then",
        'assert group_state() == "Stable", "state of the group"',
        "answer = m1.answer()",
        f'{NO_ERROR}, f"m1 is answered {{answer.error_code.name}}"',
        "assert answer.generation_id == 1, answer",
        'assert answer.protocol_name == "range", answer',
        'assert client_of(answer.leader) == "m2", answer',
        "answer = m2.answer()",
        f'{NO_ERROR}, f"m2 is answered {{answer.error_code.name}}"',
        'assert list(answer.assignment) == [1], "partitions of m2"',
    ]


def test_who_has_to_wait_is_not_answered() -> None:
    name = "group-protocols-2m-replay-HandleJoinGroup-not-allowed-channel.itf.json"

    assert lines_of(name)[-1] == 'assert not m2.channel.is_answered(0), "m2 waits for its answer"'


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        (PATHS / "initial-delay-cut-short.itf.json", "it has no words|brought about at will"),
        (
            KFAKE / "group-store-failure-2m-replay-ProcessJoinGroup-refused.itf.json",
            "does not end where an impl",
        ),
    ],
    ids=["a timer", "a step that is refused"],
)
def test_what_no_script_can_bring_about_is_refused_with_a_reason(story: Path, reason: str) -> None:
    with pytest.raises(
        UserError, match=f"No such test or script can be written of this file: .*({reason})"
    ):
        script_of(read_story(story))


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        ("Matches", '("t.*" :> {"topic"})'),
        ("Reads", '[m \\in Members |-> {"topic", "other"}]'),
    ],
)
def test_a_script_of_kip_848_subscribes_to_one_topic(
    constant: str, value: str, tmp_path: Path
) -> None:
    saved = json.loads((PATHS / "join-always-accepted.itf.json").read_text())
    saved["#meta"]["kconform"]["constants"][constant] = value
    file = tmp_path / "story.itf.json"
    file.write_text(json.dumps(saved))

    with pytest.raises(UserError, match="several topics, or a regular expression"):
        script_of(read_story(file))


@pytest.mark.parametrize("path", ["re-elected-leader", "kafka-19367", "kafka-20634"])
def test_other_protocols_are_refused(path: str) -> None:
    with pytest.raises(UserError, match="for groups of both protocols, for idempotent produce"):
        script_of(read_story(PATHS / f"{path}.itf.json"))


def test_a_script_of_the_data_path_reads_as_its_story() -> None:
    text = script_of(read_story(PATHS / "stable-below-start.itf.json"))
    compile(text, "stable-below-start", "exec")

    lines = [line for line in text.splitlines() if line]
    assert lines[lines.index("partition = Partition()") :] == [
        "partition = Partition()",
        "partition.produce_in_transaction([1, 2])",
        "partition.delete_records(1)",
        "# when",
        'answer = partition.list_offsets("read_committed", -1, "current")',
        "# then",
        'assert answer["offset"] == 1, answer',
    ]


def test_a_script_of_kip_848_counts_epochs_as_the_broker_does() -> None:
    text = script_of(read_story(PATHS / "pending-revocation-described.itf.json"))
    compile(text, "pending-revocation-described", "exec")

    lines = [line for line in text.splitlines() if line]
    assert lines[lines.index("group = Group(new_topic())") :] == [
        "group = Group(new_topic())",
        'group.begins_with(1, group.heartbeat("m2", 0, set()))',
        'group.heartbeat("m2", 1, {0, 1})',
        'group.heartbeat("m1", 0, set())',
        "# when",
        'answer = group.heartbeat("m2", 1)',
        "# then",
        'assert partitions_of(group.member("m2").assignment) == {1}, group.member("m2")',
    ]


def test_a_script_of_transactions_reads_as_its_story() -> None:
    name = "transaction-port-v1-replay-ProduceBlocked-not-allowed-highWatermark-log-producers"
    text = script_of(read_story(KFAKE / f"{name}.itf.json"))
    compile(text, name, "exec")

    lines = [line for line in text.splitlines() if line]
    assert lines[lines.index('transactions = Transactions("p")') : -3] == [
        'transactions = Transactions("p")',
        'transactions.add_partition("p", 0)',
        'transactions.produce("p", 0, 0, 1)',
        "transactions.end(0, False)",
        'transactions.produce("p", 0, 0, 1)',
        'transactions.add_partition("p", 0)',
        "# when",
        'transactions.produce("p", 0, 1, 2)',
        "# then",
        'assert transactions.log("p") == ["1 0", "Aborted"], transactions.log("p")',
    ]
