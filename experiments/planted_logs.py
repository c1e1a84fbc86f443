"""Planted faults in logs of real clusters: does `kconform load` give the right answer for each?

On each chosen log that real_logs has made a segment is put behind the last one, with records of a
group (a transactional id, a share partition) of its own; or bytes of the real segments are damaged.
The answer to a kind is known before: what each release makes of the planted records, that all other
units come to what they came to without, and which bytes are damaged.

    python -m experiments.real_logs -o real-logs
    python -m experiments.planted_logs real-logs [--each 4] [--seed 1]

Exit code 0: every answer is the right one, by both judges. 1: one is not.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from conformance.kafka.batches import header_at
from conformance.kafka.jars import NEWEST, kafka_jars, release_of
from conformance.kafka.schemas import Schemas
from conformance.load.classes import release_classes
from conformance.load.judgement import ReleaseVerdict, judge_release
from conformance.load.partition import PartitionLog, read_partition
from conformance.load.topics import OFFSETS, SHARES, TOPICS, TRANSACTIONS, StateTopic, topic_of
from conformance.modelcheck.specifications import Specifications
from tests.e2e.load.test_planted import (
    FAILS,
    FORGOTTEN,
    GROUP,
    KINDS,
    LOADS,
    RELEASES,
    Expected,
    Kind,
    Log,
)
from tests.e2e.load.written import (
    LogWriter,
    SharePartition,
    TransactionBatch,
    gone,
    offset,
    transaction,
)


def _two_of_an_id(chance: random.Random) -> Log:
    return [[transaction(GROUP, 0)], [transaction(GROUP, 1, 0, at=chance.randrange(1, 9))]]


def _new_value(chance: random.Random) -> Log:
    return [[replace(transaction(GROUP, 1, 0), prefix=bytes([0, chance.randrange(5, 90)]))]]


def _new_key(chance: random.Random) -> Log:
    return [[replace(transaction(GROUP, 1, 0), number=chance.randrange(5, 90))]]


def _cut_id(chance: random.Random) -> Log:
    return [[replace(transaction(GROUP, 1, 0), cut=chance.randrange(4, 12))]]


def _unknown_status(chance: random.Random) -> Log:
    return [[transaction(GROUP, chance.randrange(9, 90), 0)]]


def _unknown_client(chance: random.Random) -> Log:
    return [[transaction(GROUP, 1, 0, client=chance.randrange(4, 90))]]


def _partitions_missing(_: random.Random) -> Log:
    return [[transaction(GROUP, 4, listed=False)]]


def _acknowledged(chance: random.Random) -> Log:
    share = SharePartition(GROUP)
    return [[share.snapshot(0, 1, 1)], [share.update(0, 1, -1, chance.randrange(9))]]


def _begins_anew(chance: random.Random) -> Log:
    share, leader = SharePartition(GROUP), chance.randrange(2, 9)
    return [[share.snapshot(0, 0, 1)], [share.update(0, leader, 0, 1)], [share.snapshot(1, 0, 2)]]


def _cut_snapshot(chance: random.Random) -> Log:
    return [[replace(SharePartition(GROUP).snapshot(0, 0, 1), cut=chance.randrange(4, 12))]]


def _new_share_value(chance: random.Random) -> Log:
    record = SharePartition(GROUP).snapshot(0, 0, 1)
    return [[replace(record, prefix=bytes([0, chance.randrange(5, 90)]))]]


def _new_share_record(chance: random.Random) -> Log:
    record = SharePartition(GROUP).snapshot(0, 0, 1)
    return [[replace(record, number=chance.randrange(9, 90))]]


def _share_deleted(_: random.Random) -> Log:
    share = SharePartition(GROUP)
    return [[share.snapshot(0, 1, 1)], [gone(share.snapshot(0, 1, 1))]]


def _marker_without_data(chance: random.Random) -> Log:
    return [[offset(GROUP, 0, 1)], TransactionBatch(chance.randrange(10**6, 10**7), ())]


def _open_transaction(chance: random.Random) -> Log:
    producer = chance.randrange(10**6, 10**7)
    return [[offset(GROUP, 0, 1)], TransactionBatch(producer, [offset(GROUP, 1, 2)])]


PLANTED: Mapping[StateTopic, Mapping[str, Kind]] = {
    OFFSETS: {
        **KINDS,
        "a marker without data": Kind(_marker_without_data, [LOADS] * 3),
        "a transaction that stays open": Kind(_open_transaction, [LOADS] * 3),
    },
    TRANSACTIONS: {
        "healthy": Kind(_two_of_an_id, [LOADS] * 3),
        "version of a value": Kind(
            _new_value, [(FAILS, "ValueIsUnknown"), (FAILS, "ValueIsUnknown"), FORGOTTEN]
        ),
        "a type of record that nobody knows": Kind(_new_key, [FORGOTTEN] * 3),
        "cut off": Kind(_cut_id, [(FAILS, "Unreadable")] * 3),
        "an unknown status": Kind(_unknown_status, [(FAILS, "StatusIsUnknown")] * 3),
        "an unknown transaction version": Kind(_unknown_client, [(FAILS, "VersionIsUnknown")] * 3),
        "completed without partitions": Kind(
            _partitions_missing, [(FAILS, "PartitionsAreMissing")] * 3
        ),
    },
    SHARES: {
        "healthy": Kind(_acknowledged, [LOADS] * 3),
        # The log is pruned up to the newest snapshots of all partitions: here not that far.
        "a state that begins anew behind others": Kind(_begins_anew, [LOADS] * 3),
        "version of a value": Kind(_new_share_value, [(FAILS, "Unreadable")] * 3),
        "cut off": Kind(_cut_snapshot, [(FAILS, "Unreadable")] * 3),
        "a type of record that nobody knows": Kind(_new_share_record, [FORGOTTEN] * 3),
        "deleted": Kind(_share_deleted, [LOADS] * 3),
    },
}
"""By the topic, what is planted, and what each of RELEASES makes of it."""


def _cut_short(data: bytearray, positions: Sequence[int], chance: random.Random) -> int:
    start = positions[-1]
    del data[chance.randrange(start + 1, len(data)) :]
    return start


def _flipped(data: bytearray, positions: Sequence[int], chance: random.Random) -> int:
    start = chance.choice(positions)
    data[start + 61 + chance.randrange(4)] ^= 1 << chance.randrange(8)
    return start


def _old_magic(data: bytearray, positions: Sequence[int], chance: random.Random) -> int:
    start = chance.choice(positions)
    data[start + 16] = chance.choice([0, 1, 3])
    return start


def _zeros(data: bytearray, positions: Sequence[int], chance: random.Random) -> int:
    start = chance.choice(positions)
    data[start:] = bytes(len(data) - start)
    return start


DAMAGES: Mapping[str, Callable[[bytearray, Sequence[int], random.Random], int]] = {
    "the last batch is cut short": _cut_short,
    "a bit of a batch is flipped": _flipped,
    "a batch of another format": _old_magic,
    "zeros, as after a power failure": _zeros,
}
"""Each damages a segment, and says from which byte on it is not read."""


class Planter:
    """Plants, judges, and compares with what is known."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer
        self._specifications = Specifications()
        self._specifications.prepare([topic.model for topic in TOPICS.values()])
        self._real: dict[tuple[Path, str], Mapping[str, Expected]] = {}

    def behind(self, real: Path, release: str, log: Log, expected: Expected) -> list[str]:
        """What is wrong with the answer to a real log that has planted records behind it."""
        with _copy(real) as folder:
            end = max(record.offset for record in _read(folder).records) + 1
            (folder / f"{end:020}.log").write_bytes(shifted(self._writer.segment(log), end))
            verdict = self._judged(folder, release)
        known, answers = self._answers_without(real, release), _answers(verdict)
        wrong = {n: given for n, given in answers.items() if given != known.get(n, expected)}
        texts = [f"{name} {answer} {rule}" for name, (answer, rule) in wrong.items()]
        seen = len(answers) == len(known) + 1
        return [*texts, *([] if seen else ["it is not seen"]), *verdict.disagreements]

    def damaged(self, real: Path, kind: str, chance: random.Random) -> list[str]:
        """What is wrong with the answer to a real log whose last segment is damaged.

        The damage is named, and all records before it are read, and none behind it.
        """
        with _copy(real) as folder:
            path = max(path for path in folder.glob("*.log") if path.stat().st_size)
            whole, data = _read(folder), path.read_bytes()
            damaged = bytearray(data)
            position = DAMAGES[kind](damaged, [*_positions(data)], chance)
            first = _base_offset(data, position)
            path.write_bytes(damaged)
            log, verdict = _read(folder), self._judged(folder, NEWEST)
        before = tuple(record for record in whole.records if record.offset < first)
        named = any(damage.segment == path.name for damage in log.damage)
        texts = [] if named else ["the damage is not named"]
        texts += [] if log.records == before else ["other records are read than those before it"]
        return [*texts, *verdict.disagreements]

    def _answers_without(self, real: Path, release: str) -> Mapping[str, Expected]:
        if (real, release) not in self._real:
            self._real[real, release] = _answers(self._judged(real, release))
        return self._real[real, release]

    def _judged(self, folder: Path, release: str) -> ReleaseVerdict:
        topic, jars = topic_of(folder), kafka_jars(release).classpath
        log = read_partition(folder, whole=topic is not OFFSETS)
        with release_classes(release) as classes:
            return judge_release(log, release, jars, self._specifications, classes, topic)


def _answers(verdict: ReleaseVerdict) -> Mapping[str, Expected]:
    return {
        unit.name: (unit.answer, unit.faults[0].rule if unit.faults else "")
        for unit in verdict.units
    }


def _read(folder: Path) -> PartitionLog:
    return read_partition(folder, whole=True)


@contextmanager
def _copy(real: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(shutil.copytree(real, Path(place) / real.name))


def _positions(data: bytes) -> Iterator[int]:
    """Where the batches of a segment begin."""
    position = 0
    while (header := header_at(data, position)) is not None:
        yield position
        position += header.size


def _base_offset(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "big")


def shifted(segment: bytes, by: int) -> bytes:
    """The segment with greater offsets; the checksums do not cover them."""
    data = bytearray(segment)
    for position in _positions(segment):
        data[position : position + 8] = (_base_offset(segment, position) + by).to_bytes(8, "big")
    return bytes(data)


def loadable(logs: Path, topic: StateTopic, release: str) -> list[Path]:
    """Real logs of a topic that a release has to load: of no younger release, and undamaged."""
    found = []
    for folder in sorted(logs.glob(f"*/[0-9]-*/{topic.name}-*")):
        written = folder.parent.name.partition("-")[2]
        if release_of(written) <= release_of(release) and _read(folder).records:
            found.append(folder)
    return found


def main() -> int:
    """Plant, judge, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    parser.add_argument("--each", type=int, default=4, help="Real logs for each kind.")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    count, bad = 0, 0
    with release_classes(NEWEST) as classes:
        planter = Planter(LogWriter(classes.channel, Schemas.of(kafka_jars(NEWEST).classpath)))
        print("| topic | kind | logs | loads | right |\n|---|---|---|---|---|")
        for topic in TOPICS.values():
            for kind in (*PLANTED[topic], *DAMAGES):
                answers = list(_tried(planter, given.logs, topic, kind, given.each, given.seed))
                wrong = [text for _, text in answers if text]
                logs, right = len({log for log, _ in answers}), len(answers) - len(wrong)
                print(f"| `{topic.name}` | {kind} | {logs} | {len(answers)} | {right} |")
                for text in wrong:
                    print(f"  wrong: {text}")
                count, bad = count + logs, bad + len(wrong)
    print(f"{count} planted logs, {bad} wrong answers")
    return 1 if bad or not count else 0


def _tried(
    planter: Planter, logs: Path, topic: StateTopic, kind: str, each: int, seed: int
) -> Iterator[tuple[str, str]]:
    """For each planted log and release the log's name, and what is wrong, empty if nothing is."""
    chance = random.Random(f"{seed} {topic.name} {kind}")
    for number, release in enumerate(RELEASES):
        if kind in DAMAGES and release != NEWEST:
            continue
        chosen = loadable(logs, topic, release)
        for real in chance.sample(chosen, min(each, len(chosen))):
            if kind in DAMAGES:
                wrong = planter.damaged(real, kind, chance)
            else:
                planted = PLANTED[topic][kind]
                log, expected = planted.make(chance), planted.expected[number]
                wrong = planter.behind(real, release, log, expected)
            name = f"{real.relative_to(logs)} {release}"
            yield name, f"{name}: {'; '.join(wrong)}" if wrong else ""


if __name__ == "__main__":
    sys.exit(main())
