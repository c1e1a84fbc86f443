"""Logs of `__transaction_state` and `__share_group_state`: both judges, however wild the log is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.errors import ExitCode
from conformance.kafka.jars import kafka_jars
from conformance.load import transaction_state
from conformance.load.classes import release_classes
from conformance.load.judgement import LoadAnswer, ReleaseVerdict, judge_release
from conformance.load.partition import read_partition
from conformance.load.topics import SHARES, TRANSACTIONS, StateTopic
from conformance.modelcheck.specifications import Specifications
from tests.e2e.load.written import Batch, LogWriter, SharePartition, gone, transaction

RELEASES = ("4.0.0", "4.1.0", "4.2.0", "4.3.0", "4.4.0")
LOGS = 40


def _transaction_batch(chance: random.Random) -> Batch:
    status = chance.choice([0, 1, 2, 3, 4, 5, 6, 7] * 6 + [9, -1])
    record = transaction(
        chance.choice("abc"),
        status,
        *chance.sample(range(3), chance.randrange(3)),
        listed=status != 0 and chance.random() < 0.98,
        at=chance.randrange(4),
        client=chance.choice([0, 1, 2] * 12 + [5]),
    )
    bent = chance.random()
    if bent < 0.02:
        return [replace(record, prefix=b"\x00\x09")]
    if bent < 0.04:
        return [replace(record, number=chance.choice([3, 77]))]
    if bent < 0.06:
        return [replace(record, cut=chance.randrange(1, 20))]
    return [gone(record) if bent < 0.3 else record]


def _share_batch(chance: random.Random) -> Batch:
    share = SharePartition(chance.choice("gh"), chance.randrange(2))
    epoch, leader = chance.randrange(4), chance.randrange(5)
    if chance.random() < 0.4:
        record = share.snapshot(epoch, leader, chance.randrange(4), chance.randrange(5))
        bent = chance.random()
        if bent < 0.04:
            return [replace(record, cut=chance.randrange(1, 12))]
        if bent < 0.08:
            return [replace(record, number=9)]
        return [gone(record) if bent < 0.25 else record]
    update = share.update(epoch, leader, chance.choice([-1, 0, 3]), *range(chance.randrange(3)))
    return [gone(update) if chance.random() < 0.03 else update]


def judged(
    topic: StateTopic, release: str, logs: Iterator[Path], specifications: Specifications
) -> Iterator[ReleaseVerdict]:
    jars = kafka_jars(release).classpath
    for folder in logs:
        log = read_partition(folder, whole=True)
        with release_classes(release) as classes:
            yield judge_release(log, release, jars, specifications, classes, topic)


def written(
    writer: LogWriter, folder: Path, make: Callable[[random.Random], Batch]
) -> Iterator[Path]:
    chance = random.Random(21)
    for number in range(LOGS):
        batches = [make(chance) for _ in range(chance.randrange(4, 16))]
        yield writer.write(folder / str(number), batches)


def answers_of(topic: StateTopic, release: str) -> set[LoadAnswer]:
    """What some of the logs are answered. 4.0 reads no share state that a later release wrote."""
    if topic is TRANSACTIONS:
        return {LoadAnswer.LOADS, LoadAnswer.FAILS}
    if release == "4.0.0":
        return {LoadAnswer.FAILS}
    return {LoadAnswer.LOADS, LoadAnswer.FAILS, LoadAnswer.OTHER_STATE}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("topic", "make"),
    [(TRANSACTIONS, _transaction_batch), (SHARES, _share_batch)],
    ids=["transactions", "shares"],
)
def test_both_judges_agree(
    release: str,
    topic: StateTopic,
    make: Callable[[random.Random], Batch],
    writer: LogWriter,
    specifications: Specifications,
    tmp_path: Path,
) -> None:
    logs = written(writer, tmp_path, make)
    verdicts = list(judged(topic, release, logs, specifications))

    wrong = [text for verdict in verdicts for text in verdict.disagreements]
    assert not wrong, "\n".join(wrong[:20])
    assert answers_of(topic, release) <= {
        unit.answer for verdict in verdicts for unit in verdict.units
    }
    assert sum(unit.compared for verdict in verdicts for unit in verdict.units) > 4 * LOGS


def test_states_that_are_left_out_change_no_answer(
    writer: LogWriter,
    specifications: Specifications,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jars = kafka_jars(RELEASES[-1]).classpath
    logs = [
        read_partition(folder, whole=True)
        for folder in written(writer, tmp_path, _transaction_batch)
    ]

    def answers() -> list[dict[str, tuple[LoadAnswer, set[str]]]]:
        verdicts = [
            judge_release(log, RELEASES[0], jars, specifications, None, TRANSACTIONS)
            for log in logs
        ]
        return [
            {unit.name: (unit.answer, {fault.rule for fault in unit.faults}) for unit in each.units}
            for each in verdicts
        ]

    kept = answers()
    monkeypatch.setattr(transaction_state, "_telling", lambda meanings: list(range(len(meanings))))

    assert answers() == kept


def transaction_log(writer: LogWriter, folder: Path) -> Path:
    """A record of `a` that only 4.3 and later get past; behind it stands the newest one of `b`."""
    return writer.write(
        folder / "__transaction_state-3",
        [
            [transaction("b", 0)],
            [transaction("a", 1, 0)],
            [replace(transaction("a", 2, 0), prefix=b"\x00\x09")],
            [transaction("b", 1, 0)],
        ],
    )


def share_log(writer: LogWriter, folder: Path) -> Path:
    """The state of a share partition begins anew: models/load/boundary-share-begins-anew."""
    share = SharePartition("g")
    return writer.write(
        folder / "__share_group_state-3",
        [[share.snapshot(0, 0, 1)], [share.update(0, 5, 0, 1)], [share.snapshot(1, 0, 2)]],
    )


def test_a_load_that_ends_in_silence_names_what_is_lost(writer: LogWriter, tmp_path: Path) -> None:
    folder = transaction_log(writer, tmp_path)

    ended = CliRunner().invoke(app, ["load", str(folder), "--kafka", "4.2.0,4.4.0"])

    assert ended.exit_code == ExitCode.FAIL
    assert "kafka-4.2.0: transactional id a fails" in ended.output
    assert "by the rule ValueIsUnknown" in ended.output
    assert "stand behind it (1 transactional id)" in ended.output
    assert "kafka-4.4.0: transactional id a loads another state when compacted" in ended.output


def test_a_load_of_a_pruned_log_forgets_the_leader_epoch(writer: LogWriter, tmp_path: Path) -> None:
    folder = share_log(writer, tmp_path)

    ended = CliRunner().invoke(app, ["load", str(folder), "--kafka", "4.4.0"])

    assert ended.exit_code == ExitCode.FAIL
    assert "loads another state when pruned" in ended.output
    assert "When the log begins behind offset 1" in ended.output
    assert "without the records at 0, 1" in ended.output


def test_a_folder_of_another_name_is_not_guessed(writer: LogWriter, tmp_path: Path) -> None:
    folder = share_log(writer, tmp_path).rename(tmp_path / "copy")

    ended = CliRunner().invoke(app, ["load", str(folder), "--kafka", "4.4.0"])

    assert ended.exit_code == ExitCode.USAGE
    assert "is not named as a partition of __consumer_offsets" in " ".join(ended.output.split())
