"""The whole judgement: files in, findings and a verdict out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.history import across
from conformance.history.arrays import numbers_of
from conformance.history.partition import (
    CountedSituations,
    PartitionContext,
    PartitionSituations,
    TransactionFact,
    judge_partition,
)
from conformance.history.reading import History, HistoryFile, bucket_rows, read_history
from conformance.history.rows import NO_OFFSET, READ, SENT
from conformance.history.rules import (
    BY_KIND,
    RULES,
    Answer,
    HistoryFormulas,
    HistoryRule,
)
from conformance.history.situations import HistoryFact, HistorySituation, states_of
from conformance.verdict import Verdict
from conformance.workers import Workers

Tell = Callable[[str], None]
_TOO_MANY_BAD = 0.01
"""The part of the lines that may be unreadable before nothing can be said of the rest."""


@dataclass(slots=True)
class RuleTally:
    """How often a rule was asked, and what it said."""

    rule: HistoryRule
    location: str
    exercised: int = 0
    answers: Counter[Answer] = field(default_factory=Counter)
    cases: dict[Answer, list[HistorySituation]] = field(default_factory=dict)
    """The first situations that are not in order."""

    def add(self, answer: Answer, count: int, examples: Sequence[HistorySituation]) -> None:
        """So many situations with one answer."""
        self.exercised += count
        self.answers[answer] += count
        if answer is not Answer.KEPT:
            self.cases.setdefault(answer, []).extend(examples)


@dataclass(slots=True)
class HistoryJudgement:
    """Everything that is said of a history."""

    history: History
    formulas: HistoryFormulas
    tallies: Mapping[str, RuleTally]
    rows: int = 0
    partitions: int = 0
    unplaced: int = 0
    resent: int = 0
    distinct: int = 0
    """Distinct states of which formulas were asked."""
    long_circles: int = 0
    read_up_to: dict[str, int] = field(default_factory=dict)

    def doubts(self) -> list[str]:
        """Why the verdict cannot be a pass, and what would decide."""
        return list(self._doubts())

    def _doubts(self) -> Iterator[str]:
        if not any(tally.exercised for tally in self.tallies.values() if tally.rule.decides):
            yield "no rule applied to anything: give operations that send, poll or commit"
        history = self.history
        if history.lines and history.bad_count > _TOO_MANY_BAD * (
            history.lines + history.bad_count
        ):
            yield f"{history.bad_count:,} lines were not understood: mend the log's form"
        for tally in self.tallies.values():
            undecided = tally.answers[Answer.UNDECIDED]
            if undecided:
                yield (
                    f"{tally.rule.name}: {undecided:,} times the producer may have taken a new "
                    "epoch after a send without an answer; the brokers' logs show its epochs "
                    "(kconform inspect)"
                )
        unseen = self.tallies["AcknowledgedIsSeen"].answers[Answer.BROKEN]
        if unseen:
            yield f"{unseen:,} acknowledged records were not read{self._where()}"
        if self.unplaced:
            yield (
                f"{self.unplaced:,} acknowledged records were not read, and their offsets are not "
                "logged: log the offset that the producer is told"
            )
        if self.long_circles:
            yield (
                f"{self.long_circles} circles of more than {across.MOST_IN_CIRCLE} transactions "
                "were found, which are not judged"
            )

    def _where(self) -> str:
        keys = sorted({case.facts[0].key for case in self._unseen()})[:3]
        places = [f"{key} from offset {self.read_up_to.get(key, NO_OFFSET) + 1}" for key in keys]
        return f": read on to the end of {', '.join(places)}" if places else ""

    def _unseen(self) -> Iterable[HistorySituation]:
        return self.tallies["AcknowledgedIsSeen"].cases.get(Answer.BROKEN, ())

    def broken(self) -> list[RuleTally]:
        """The rules that were broken, those of most weight first."""
        return [t for t in self.tallies.values() if t.rule.decides and t.answers[Answer.BROKEN]]

    @property
    def verdict(self) -> Verdict:
        """Fail over inconclusive over pass."""
        if self.broken():
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.doubts() else Verdict.PASS


@dataclass(frozen=True, slots=True)
class _BucketTask:
    parts: tuple[Path, ...]
    context: PartitionContext


def judge_history(
    files: Sequence[HistoryFile],
    formulas: HistoryFormulas,
    scratch: Path,
    workers: Workers,
    skew: int = 0,
) -> HistoryJudgement:
    """Read and judge. `scratch` is a folder that all workers see; `skew` is in nanoseconds."""
    history = read_history(files, scratch, workers)
    context = PartitionContext(
        history.timelines, history.late_starts, history.failing, history.jumping, skew
    )
    tallies = {rule.name: RuleTally(rule, formulas.location(rule)) for rule in RULES}
    judgement = HistoryJudgement(history, formulas, tallies)
    verdicts = _Answers(formulas, tallies)
    task = _BucketTask(history.parts, context)
    unknown: list[TransactionFact] = []
    edges = [np.zeros((0, 2), np.int64)]
    for bucket in workers.map(partial(_judge_bucket, task), range(history.buckets)):
        for part in bucket:
            judgement.rows += part.rows
            judgement.partitions += 1
            judgement.unplaced += part.unplaced
            judgement.resent += part.resent
            judgement.read_up_to[part.key] = part.last_read
            for group in part.situations:
                verdicts.take(group)
            unknown += part.unknown
            edges.append(part.reads_from)
    for situation in across.unknown_transactions(unknown):
        verdicts.take(CountedSituations(1, (situation,)))
    _judge_circles(np.concatenate(edges), task, history, workers, verdicts, judgement)
    judgement.distinct = len(verdicts.states)
    return judgement


def _judge_circles(
    edges: np.ndarray,
    task: _BucketTask,
    history: History,
    workers: Workers,
    verdicts: _Answers,
    judgement: HistoryJudgement,
) -> None:
    tally = judgement.tallies["ReadTransactionsEndedBefore"]
    tally.add(Answer.KEPT, len(np.unique(edges[:, 0])), ())
    circles = across.circles(edges)
    short = [circle for circle in circles if len(circle) <= across.MOST_IN_CIRCLE]
    judgement.long_circles = len(circles) - len(short)
    if not short:
        return
    orders = frozenset(order for circle in short for order in circle)
    facts = [
        fact
        for part in workers.map(partial(_facts_of, task, orders), range(history.buckets))
        for fact in part
    ]
    for circle in short:
        verdicts.take(CountedSituations(1, (across.circle_situation(facts, circle),)))


def _judge_bucket(task: _BucketTask, bucket: int) -> list[PartitionSituations]:
    rows = bucket_rows(task.parts, bucket)
    return [judge_partition(key, part, task.context) for key, part in _by_key(rows)]


def _by_key(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    if not len(rows):
        return
    keys = rows.column("key").combine_chunks()
    codes = numbers_of(keys.indices)
    rows = rows.take(pa.array(np.argsort(codes, kind="stable")))
    begin = 0
    for key, count in zip(keys.dictionary.to_pylist(), np.bincount(codes), strict=False):
        if count:
            yield key, rows.slice(begin, int(count)).combine_chunks()
        begin += int(count)


def _facts_of(task: _BucketTask, orders: frozenset[int], bucket: int) -> list[HistoryFact]:
    """What these transactions sent and read in a bucket."""
    rows = bucket_rows(task.parts, bucket)
    wanted = pc.is_in(rows.column("order"), value_set=pa.array(sorted(orders), pa.int64()))
    facts = []
    for row in rows.filter(wanted).to_pylist():
        if row["kind"] in {SENT, READ}:
            facts.append(
                HistoryFact(
                    row["kind"],
                    row["order"],
                    row["place"],
                    row["process"],
                    row["key"],
                    row["value"],
                    row["offset"],
                    row["outcome"],
                    row["transactional"],
                )
            )
    return facts


class _Answers:
    """Asks the rules of situations, and counts."""

    def __init__(self, formulas: HistoryFormulas, tallies: Mapping[str, RuleTally]) -> None:
        self._formulas, self._tallies = formulas, tallies
        self.states: set[object] = set()

    def take(self, group: CountedSituations) -> None:
        """Situations that are alike: the first speaks for all."""
        first = group.examples[0]
        states = states_of(first.facts)
        for rule in BY_KIND[first.kind]:
            if rule.exercises(first.facts):
                self.states.update(tuple(state.items()) for state in states)
                answer = self._formulas.answer(rule, states)
                self._tallies[rule.name].add(answer, group.count, group.examples)
