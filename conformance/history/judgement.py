"""The whole judgement: files in, findings and a verdict out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from conformance.history import across, windows
from conformance.history.across import TransactionTask, judge_transactions
from conformance.history.arrays import Array
from conformance.history.columns import CountedSituations
from conformance.history.neighbours import PartitionContext
from conformance.history.partition import BucketTask, judge_bucket
from conformance.history.reading import History, HistoryFile, read_history
from conformance.history.rows import NO_OFFSET
from conformance.history.rules import (
    BY_KIND,
    RULES,
    Answer,
    HistoryFormulas,
    HistoryRule,
)
from conformance.history.situations import HistorySituation, SituationFact, states_of
from conformance.verdict import Verdict
from conformance.workers import Workers

_TOO_MANY_BAD = 0.01
"""The part of the lines that may be unreadable before nothing can be said of the rest."""
_MOST_CASES = 1_000
"""Of a rule and an answer; all are counted."""


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
            cases = self.cases.setdefault(answer, [])
            cases += examples[: _MOST_CASES - len(cases)]


@dataclass(slots=True)
class HistoryJudgement:
    """Everything that is said of a history."""

    history: History
    formulas: HistoryFormulas
    tallies: Mapping[str, RuleTally]
    partitions: int = 0
    unplaced: int = 0
    resent: int = 0
    distinct: int = 0
    """Distinct states of which formulas were asked."""
    long_circles: int = 0
    too_many_readings: bool = False
    """Whether so many transactions may be part of a circle that none was looked for."""
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

        if self.too_many_readings:
            yield (
                f"more than {across.MOST_READINGS:,} readings of transactions may be part of a "
                "circle, which are not judged: log the time of each operation"
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
    answers = _Answers(formulas, tallies)
    task = BucketTask(
        history.parts,
        history.rest,
        history.rows,
        history.fetched,
        scratch,
        windows.WINDOW,
        context,
    )
    unknown: list[Path] = []
    readings: list[Path] = []
    spans = [across.NO_SPANS]
    for bucket in workers.map(partial(judge_bucket, task), _with_rows(history)):
        judgement.partitions += len(bucket.last_read)
        judgement.unplaced += bucket.unplaced
        judgement.resent += bucket.resent
        judgement.read_up_to.update(bucket.last_read)
        answers.take(bucket.situations)
        unknown += bucket.unknown
        readings += bucket.readings
        spans.append(bucket.back)
    transactions = TransactionTask(tuple(unknown), tuple(readings), context)
    if unknown or readings:
        _judge_transactions(transactions, workers, answers, judgement)
        back = across.merged(np.concatenate(spans))
        _judge_circles(transactions, back, workers, answers, judgement)
    judgement.distinct = len(answers.states)
    return judgement


def _with_rows(history: History) -> list[int]:
    return [int(bucket) for bucket in np.flatnonzero(history.rows)]


def _judge_transactions(
    task: TransactionTask, workers: Workers, answers: _Answers, judgement: HistoryJudgement
) -> None:
    tally = judgement.tallies["ReadTransactionsEndedBefore"]
    buckets = range(judgement.history.buckets)
    for bucket in workers.map(partial(judge_transactions, task), buckets):
        answers.take(bucket.situations)
        tally.add(Answer.KEPT, bucket.readers, ())


def _judge_circles(
    task: TransactionTask,
    spans: Array,
    workers: Workers,
    answers: _Answers,
    judgement: HistoryJudgement,
) -> None:
    history = judgement.history
    buckets = range(history.buckets)
    pairs = [across.NO_SPANS]
    if len(spans):
        for bucket in workers.map(partial(across.readings_within, task, spans), buckets):
            pairs.append(bucket)
            if sum(map(len, pairs)) > across.MOST_READINGS:
                judgement.too_many_readings = True
                return
    circles = across.circles(np.concatenate(pairs))
    short = [circle for circle in circles if len(circle) <= across.MOST_IN_CIRCLE]
    judgement.long_circles = len(circles) - len(short)
    if not short:
        return
    orders = frozenset(order for circle in short for order in circle)
    files = (*history.parts, history.rest)
    facts = [
        fact
        for part in workers.map(partial(_facts_of, files, orders), _with_rows(history))
        for fact in part
    ]
    for circle in short:
        answers.take([CountedSituations(1, (across.circle_situation(facts, circle),))])


def _facts_of(files: Sequence[Path], orders: frozenset[int], bucket: int) -> list[SituationFact]:
    return list(across.operation_facts(files, orders, bucket))


class _Answers:
    """Asks the rules of situations, and counts."""

    def __init__(self, formulas: HistoryFormulas, tallies: Mapping[str, RuleTally]) -> None:
        self._formulas, self._tallies = formulas, tallies
        self.states: set[object] = set()

    def take(self, groups: Iterable[CountedSituations]) -> None:
        """Groups of situations that are alike: the first speaks for all."""
        for group in groups:
            first = group.examples[0]
            states = states_of(first.facts)
            for rule in BY_KIND[first.kind]:
                if rule.exercises(first.facts):
                    self.states.update(tuple(state.items()) for state in states)
                    answer = self._formulas.answer(rule, states)
                    self._tallies[rule.name].add(answer, group.count, group.examples)
