"""A partition judged: stories of what three copies hold, and what must be told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from conformance.inspect.abstraction import CacheEntry
from conformance.inspect.copies import Copies, Copy
from conformance.inspect.formulas import ReplicationFormulas
from conformance.inspect.history import Elections, Registration
from conformance.inspect.judgement import PartitionJudge, PartitionJudgement
from conformance.inspect.lines import ServerLogLine
from conformance.inspect.models import REPLICATION
from conformance.inspect.partitions import EpochRun, ReplicaLog
from conformance.inspect.subjects import InspectedPartition, ReplicaCopy
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict

SPECIFICATION = Specifications()[REPLICATION]
FORMULAS = ReplicationFormulas(SPECIFICATION)
NODES = {"b1": 1, "b2": 2, "b3": 3}
NOW = 1_000_000


def log_of(broker: str, *runs: EpochRun) -> ReplicaLog:
    return ReplicaLog(
        broker, "", runs[0].start, runs[-1].end, runs, (), {}, len(runs), 2, NOW - 900_000
    )


@dataclass(frozen=True)
class Story:
    """What the copies hold: by broker runs, high watermark and epoch cache."""

    logs: Mapping[str, Sequence[EpochRun]]
    watermarks: Mapping[str, int]
    elections: Sequence[Registration]
    caches: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    lines: Sequence[ServerLogLine] = ()
    clean: bool = True
    snapshots: Sequence[Registration] = ()
    nameless: Sequence[str] = ()
    """Brokers of which no meta.properties is here."""

    def judged(self) -> PartitionJudgement:
        held = {broker: self._held(broker) for broker in self.logs}
        subject = InspectedPartition(
            ("orders", 0),
            held,
            (),
            Elections("id", tuple(self.elections), True) if self.elections else None,
            tuple(self.snapshots),
            tuple(self.lines),
            False,
        )
        return PartitionJudge(self._copies(), NOW, FORMULAS).judge(subject)

    def _held(self, broker: str) -> ReplicaCopy:
        runs = self.logs[broker]
        cache = self.caches.get(broker, [(run.epoch, run.start) for run in runs])
        return ReplicaCopy(
            broker,
            "",
            log_of(broker, *runs),
            0,
            NOW - 100_000,
            "orders-0",
            self.watermarks.get(broker),
            NOW - 50_000,
            epoch_cache=tuple(CacheEntry(*entry) for entry in cache),
        )

    def _copies(self) -> Copies:
        shut = frozenset({""}) if self.clean else frozenset[str]()
        return Copies(
            {
                broker: Copy(
                    broker, None if broker in self.nameless else node, "c", shut, NOW, 5_000, 100
                )
                for broker, node in NODES.items()
            }
        )


def registration(epoch: int, leader: int, isr: str, *, change: int = 0) -> Registration:
    members = tuple(int(one) for one in isr)
    number = 10 * epoch + change
    return Registration(number, NOW - 800_000 + number, leader, epoch, members, number, (1, 2, 3))


def started(
    broker: str, epoch: int, offset: int, watermark: int, *, leads: bool = False
) -> ServerLogLine:
    source = f"{broker}.log:{epoch}"
    return ServerLogLine(
        broker, "started", NOW, source, "starts", leads, 1, epoch, offset, watermark
    )


def line_of(broker: str, kind: str, offset: int) -> ServerLogLine:
    return ServerLogLine(broker, kind, NOW, f"{broker}.log:9", f"{kind} at {offset}", offset=offset)


def told(judged: PartitionJudgement) -> set[tuple[str, tuple[int, int] | None, str]]:
    return {(one.kind, one.offsets, str(one.verdict)) for one in judged.notes.discoveries}


ALL = {"b1": [EpochRun(0, 10, 0)], "b2": [EpochRun(0, 10, 0)], "b3": [EpochRun(0, 10, 0)]}
WHOLE = dict.fromkeys(ALL, 10)
QUIET = Story(ALL, WHOLE, [registration(0, 1, "123")])


def in_order(*epochs: Registration) -> list[Registration]:
    """Registrations whose partition epochs count the changes."""
    return [replace(one, partition_epoch=number) for number, one in enumerate(epochs)]


STORIES: dict[str, tuple[Story, set[tuple[str, tuple[int, int] | None, str]]]] = {
    "three equal logs": (QUIET, set()),
    "a follower out of the ISR that is behind lacks nothing that it owes": (
        replace(
            QUIET,
            logs=ALL | {"b3": [EpochRun(0, 4, 0)]},
            watermarks=WHOLE | {"b3": 4},
            elections=[registration(0, 1, "12")],
        ),
        set(),
    ),
    "a member of the ISR lost its end": (
        replace(QUIET, logs=ALL | {"b3": [EpochRun(0, 4, 0)]}),
        {
            ("HighWatermarkWithinLog", (4, 10), "fail"),
            ("ElectableHasExposed", (4, 10), "fail"),
        },
    ),
    "a clean election of a replica without the exposed end loses it": (
        Story(
            {"b1": [EpochRun(0, 10, 0)], "b2": [EpochRun(0, 8, 0), EpochRun(8, 11, 2)]},
            {"b1": 10, "b2": 11},
            in_order(registration(0, 1, "12"), registration(2, 2, "2")),
        ),
        {
            ("CommittedNeverLost", (8, 10), "fail"),
            ("OneExposedRecordPerOffset", (8, 10), "fail"),
        },
    ),
    "an unclean election loses it, and is told as such": (
        Story(
            {"b1": [EpochRun(0, 10, 0)], "b2": [EpochRun(0, 8, 0), EpochRun(8, 11, 1)]},
            {"b1": 10, "b2": 11},
            in_order(registration(0, 1, "1"), registration(1, 2, "2")),
        ),
        {("lost-by-unclean-election", (8, 10), "fail")},
    ),
    "two logs that differ below a record on which they agree": (
        Story(
            {
                "b1": [EpochRun(0, 5, 0), EpochRun(5, 9, 2)],
                "b2": [EpochRun(0, 4, 0), EpochRun(4, 5, 1), EpochRun(5, 9, 2)],
            },
            {"b1": 4, "b2": 4},
            in_order(registration(0, 1, "12"), registration(1, 2, "12"), registration(2, 1, "12")),
        ),
        {("LogMatching", (4, 5), "fail")},
    ),
    "an epoch that the controller never gave out": (
        replace(QUIET, logs=ALL | {"b2": [EpochRun(0, 8, 0), EpochRun(8, 10, 7)]}, watermarks={}),
        {("KnownEpochIsRegistered", (8, 10), "fail")},
    ),
    "an epoch that falls": (
        Story(
            {"b1": [EpochRun(0, 3, 1), EpochRun(3, 6, 0)]},
            {"b1": 0},
            in_order(registration(0, 1, "1"), registration(1, 1, "1")),
            caches={"b1": [(1, 0)]},
        ),
        {("EpochsNonDecreasing", (3, 6), "fail"), ("EpochCacheMatchesLog", (3, 4), "fail")},
    ),
    "an epoch checkpoint from another time": (
        Story(
            {"b1": [EpochRun(0, 3, 0), EpochRun(3, 6, 1)]},
            {"b1": 6},
            in_order(registration(0, 1, "1"), registration(1, 1, "1")),
            caches={"b1": [(0, 0)]},
        ),
        {("EpochCacheMatchesLog", (3, 4), "fail")},
    ),
    "an epoch without records at the log end is as it should be": (
        replace(
            QUIET,
            elections=in_order(registration(0, 1, "123"), registration(1, 1, "123")),
            caches={"b1": [(0, 0), (1, 10)]},
        ),
        set(),
    ),
    "the controller has a leader outside the ISR": (
        replace(QUIET, elections=[registration(0, 1, "23")]),
        {("LeaderInIsr", None, "fail")},
    ),
    "a snapshot has another partition epoch than the log counts": (
        replace(
            QUIET, snapshots=[replace(registration(0, 1, "123"), partition_epoch=5, offset=99)]
        ),
        {("PartitionEpochCountsChanges", None, "fail")},
    ),
    "a log ends below where its broker's own server log says that it followed": (
        replace(QUIET, lines=[started("b2", 0, 20, 0)]),
        {("older-than-its-log", (10, 20), "fail")},
    ),
    "what a broker's server log says that it cut is not missed": (
        replace(QUIET, lines=[started("b2", 0, 20, 0), line_of("b2", "truncated", 10)]),
        set(),
    ),
    "nor what was there before the whole log was cut": (
        replace(QUIET, lines=[started("b2", 0, 20, 0), line_of("b2", "restarted", 4)]),
        set(),
    ),
    "a leader's log ends below where its own epoch begins": (
        Story(
            {"b1": [EpochRun(0, 8, 0), EpochRun(8, 10, 1)], "b2": [EpochRun(0, 5, 0)]},
            {"b1": 5, "b2": 5},
            in_order(registration(0, 1, "12"), registration(1, 2, "12")),
        ),
        {("older-than-the-controller", (5, 8), "fail")},
    ),
    "so does that of a replica which came into the ISR in that epoch": (
        Story(
            {"b1": [EpochRun(0, 8, 0), EpochRun(8, 10, 1)], "b2": [EpochRun(0, 5, 0)]},
            {"b1": 5, "b2": 5},
            in_order(
                registration(0, 1, "1"), registration(1, 1, "1"), registration(1, 1, "12", change=1)
            ),
        ),
        {("older-than-the-controller", (5, 8), "fail")},
    ),
    "outside the ISR its disk may have been replaced": (
        Story(
            {"b1": [EpochRun(0, 8, 0), EpochRun(8, 10, 1)], "b2": [EpochRun(0, 5, 0)]},
            {"b1": 5, "b2": 5},
            in_order(
                registration(0, 1, "12"),
                registration(1, 2, "12"),
                registration(2, 1, "1"),
            ),
        ),
        {("older-than-the-controller", (5, 8), "inconclusive")},
    ),
    "an election after it explains what is lacking": (
        Story(
            {
                "b1": [EpochRun(0, 5, 0), EpochRun(5, 6, 2)],
                "b2": [EpochRun(0, 5, 0), EpochRun(5, 6, 2)],
                "b3": [EpochRun(0, 8, 0), EpochRun(8, 9, 1)],
            },
            {},
            in_order(registration(0, 1, "1"), registration(1, 1, "1"), registration(2, 2, "2")),
        ),
        set(),
    ),
    "old records without a leader epoch, and newer ones that have one": (
        Story(
            {
                "b1": [EpochRun(0, 4, -1), EpochRun(4, 10, 1)],
                "b2": [EpochRun(0, 4, -1), EpochRun(4, 7, 1)],
            },
            {"b1": 10, "b2": 10},
            in_order(registration(0, 1, "12"), registration(1, 1, "12")),
            caches={"b1": [(1, 4)], "b2": [(1, 4)]},
        ),
        {
            ("HighWatermarkWithinLog", (7, 10), "fail"),
            ("ElectableHasExposed", (7, 10), "fail"),
        },
    ),
    "a broker of unknown node is no second leader": (
        replace(QUIET, lines=[started("b1", 0, 0, 0, leads=True)], nameless=["b1"]),
        set(),
    ),
    "two brokers said to lead in one epoch": (
        replace(QUIET, lines=[started("b2", 0, 0, 0, leads=True)]),
        {("OneLeaderPerEpoch", None, "fail")},
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_what_the_copies_hold_and_what_is_told(name: str) -> None:
    story, expected = STORIES[name]
    assert told(story.judged()) == expected


@pytest.mark.parametrize("name", STORIES)
def test_every_offset_for_itself_and_small_windows_say_the_same(name: str) -> None:
    """The stories make every formula false somewhere; see also tests/property/inspect."""
    moment = STORIES[name][0].judged().moment
    alone = FORMULAS.judge(SPECIFICATION.invariants, moment, merged=False)
    windowed = FORMULAS.judge(SPECIFICATION.invariants, moment, size=2)
    assert {f: alone[f].holds for f in SPECIFICATION.invariants} == {
        f: windowed[f].holds for f in SPECIFICATION.invariants
    }


def test_what_was_lost_names_who_wrote_it_and_which_election_lost_it() -> None:
    story, _ = STORIES["a clean election of a replica without the exposed end loses it"]
    found, _ = story.judged().notes.discoveries
    assert "epoch 0, written under b1" in found.message
    assert (
        "b2 was elected in epoch 2, a clean election, with a log that ended at 8" in found.message
    )
    assert found.formula == "CommittedNeverLost"
    assert any(reason.outcome == "is FALSE" for reason in found.reasons)


def cut(broker: str, offset: int) -> ServerLogLine:
    return ServerLogLine(
        broker, "truncated", NOW, f"{broker}.log:9", f"Truncating to {offset}", offset=offset
    )


TRUNCATIONS = {
    "only records that nobody could read": (started("b3", 1, 10, 8), 8, ""),
    "exposed records": (started("b3", 1, 10, 10), 8, "CommittedNeverLost"),
}


@pytest.mark.parametrize("name", TRUNCATIONS)
def test_a_truncation_is_held_against_what_was_exposed(name: str) -> None:
    follows, offset, kind = TRUNCATIONS[name]
    elections = in_order(registration(0, 3, "123"), registration(1, 1, "123"))
    logs = {
        "b1": [EpochRun(0, 8, 0), EpochRun(8, 9, 1)],
        "b3": [EpochRun(0, 8, 0), EpochRun(8, 9, 1)],
    }
    judged = Story(logs, {}, elections, lines=[follows, cut("b3", offset)]).judged()
    (truncation,) = judged.truncations
    assert truncation.cuts_exposed == bool(kind)
    assert {one.kind for one in judged.notes.discoveries} == ({kind} if kind else set())


def test_a_restart_in_the_same_epoch_exposes_nothing_in_an_earlier_one() -> None:
    """A follower that comes back says "starts at leader epoch 1" again, with a later watermark."""
    elections = in_order(registration(0, 2, "12"), registration(1, 1, "12"))
    logs = {
        "b1": [EpochRun(0, 4, 0), EpochRun(4, 9, 1)],
        "b2": [EpochRun(0, 4, 0), EpochRun(4, 9, 1)],
    }
    lines = [started("b2", 1, 9, 9)]
    assert not Story(logs, {"b1": 9, "b2": 9}, elections, lines=lines).judged().notes.discoveries


@pytest.mark.parametrize("clean", [True, False])
def test_what_the_copying_may_explain_is_not_proved(clean: bool) -> None:
    story = replace(
        QUIET,
        elections=in_order(
            registration(0, 1, "123"), replace(registration(1, 1, "123"), time=NOW - 1_000)
        ),
        logs=ALL | {"b1": [EpochRun(0, 10, 0), EpochRun(10, 12, 1)]},
        caches={"b1": [(0, 0)]},
        clean=clean,
    )
    (found,) = story.judged().notes.discoveries
    assert found.kind == "EpochCacheMatchesLog"
    assert found.verdict is (Verdict.FAIL if clean else Verdict.INCONCLUSIVE)


def test_without_the_metadata_log_the_logs_are_judged_and_the_rest_is_told() -> None:
    judged = replace(QUIET, elections=[]).judged()
    assert judged.truths["LogMatching"] is True
    assert judged.truths["CommittedNeverLost"] is None
    assert any(one.matters and "CommittedNeverLost" in one.what for one in judged.notes.unjudged)


def test_old_batches_without_leader_epoch_are_not_judged() -> None:
    judged = replace(
        QUIET, logs={"b1": [EpochRun(0, 5, -1)]}, watermarks={}, caches={"b1": []}
    ).judged()
    assert judged.truths["LogMatching"] is None
    assert any("magic 0 or 1" in one.why for one in judged.notes.unjudged)


@pytest.mark.parametrize("late", [True, False])
def test_an_older_copy_than_the_server_log_is_not_proved_to_be_cut(late: bool) -> None:
    line = replace(started("b2", 0, 20, 0), time=NOW + 60_000 if late else NOW)
    (found,) = replace(QUIET, lines=[line]).judged().notes.discoveries
    assert found.kind == "older-than-its-log"
    assert found.verdict is (Verdict.INCONCLUSIVE if late else Verdict.FAIL)


def test_records_that_an_older_copy_may_lack_keep_the_verdict_open() -> None:
    """A leader exposed 10 records while a member of the ISR was copied with 4."""
    story = replace(
        QUIET, logs=ALL | {"b3": [EpochRun(0, 4, 0)]}, watermarks=WHOLE | {"b3": 4}, clean=False
    )
    judge, now = story.judged(), NOW - 50_000
    assert judge.moment.exposed[-1].end == 10  # the exposure is much older than the copies
    recent = {b: replace(c, copied_at=now) for b, c in story._copies().copies.items()}
    judged = PartitionJudge(Copies(recent), NOW, FORMULAS).judge(judge.subject)
    assert not [one for one in judged.notes.discoveries if one.verdict is Verdict.FAIL]
    assert any(one.matters and "records from offset 4" in one.what for one in judged.notes.unjudged)
