"""The judge on Spark: many recordings, dealt out to tasks that each judge some after the other.

What travels to a worker is the specification's text and where each recording's lines are; what
comes back is the judgement. The verdicts are those of a judge in this process, since a judgement
depends on nothing but its recording. The search of one recording is not split up; so that a long
one holds up as little as possible, the longest begin first, and tasks are about equally long.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from conformance.errors import UserError
from conformance.judge.events import Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.reading import Located, RecordingReader
from conformance.judge.verdict import Judgement
from conformance.tla import ModelConfig, Module, Spec, bind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Rules", "deal", "judge_on"]

WAVE = 20_000
"""So many recordings are under way at once: their judgements are in memory together."""

TASKS_PER_CORE = 4
"""More tasks than cores, so that one that takes longer than foreseen leaves the others work."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What recordings are judged by, as workers get it: source travels, generated code does not."""

    module: Module
    config: ModelConfig
    mapping: Mapping
    invariants: tuple[str, ...]
    properties: tuple[str, ...]
    invariants_only: bool = False

    @staticmethod
    def of(
        spec: Spec,
        mapping: Mapping,
        invariants: Sequence[str],
        properties: Sequence[str],
        *,
        invariants_only: bool = False,
    ) -> Rules:
        """The rules that a judge of these would have."""
        return Rules(
            spec.module,
            spec.config,
            mapping,
            tuple(invariants),
            tuple(properties),
            invariants_only,
        )

    def judge(self, spec: Spec | None = None) -> Judge:
        """A judge by these rules; with the spec, if it is bound in this process already."""
        return Judge(
            spec or bind(self.module, self.config),
            self.mapping,
            self.invariants,
            self.properties,
            invariants_only=self.invariants_only,
        )


def judge_on(
    spark: SparkSession, rules: Rules, recordings: Iterable[Located], *, brief: bool
) -> Iterator[tuple[Located, Judgement]]:
    """Every recording with its judgement, in their order.

    Workers read the files themselves, so these must be where they can. `brief`: a judgement that
    passes comes back without its explanation.
    """
    # Here: a judgement in this process needs no Spark, and Spark takes a second to load.
    from pyspark import cloudpickle

    dumps: Callable[[object], bytes] = cloudpickle.dumps
    payload = dumps(rules)
    context = spark.sparkContext
    tasks = TASKS_PER_CORE * context.defaultParallelism
    waiting = iter(recordings)
    while wave := list(islice(waiting, WAVE)):
        hands = deal([one.size for one in wave], tasks)
        dealt = [[(number, wave[number]) for number in hand] for hand in hands]

        def judge(hand: Sequence[tuple[int, Located]]) -> list[tuple[int, bytes]]:
            return _judged(payload, hand, brief=brief)

        found = context.parallelize(dealt, len(dealt)).flatMap(judge).collect()
        for number, judgement in sorted(found):
            yield wave[number], pickle.loads(judgement)


def deal(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """The numbers of what is to be done, dealt out to so many tasks: the largest first, each to
    the task that has least to do. The task with most to do comes first."""
    hands: list[list[int]] = [[] for _ in range(min(tasks, len(sizes)))]
    least = [(0, number) for number in range(len(hands))]
    for one in sorted(range(len(sizes)), key=lambda number: (-sizes[number], number)):
        work, number = heapq.heappop(least)
        hands[number].append(one)
        heapq.heappush(least, (work + sizes[one], number))
    return [hands[number] for _, number in sorted(least, reverse=True)]


# --- on a worker ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _judge(payload: bytes) -> Judge:
    # A Python worker serves many tasks; what the judge computed for one serves the next.
    rules = pickle.loads(payload)
    assert isinstance(rules, Rules)
    return rules.judge()


def _judged(
    payload: bytes, hand: Sequence[tuple[int, Located]], *, brief: bool
) -> list[tuple[int, bytes]]:
    judge = _judge(payload)
    found: list[tuple[int, bytes]] = []
    with RecordingReader() as reader, judge.many():
        for number, located in hand:
            judgement = judge.judge(_read(reader, located), brief=brief)
            found.append((number, pickle.dumps(judgement)))
    return found


def _read(reader: RecordingReader, located: Located) -> Recording:
    try:
        return reader.read(located)
    except UserError as error:
        where = f"{error} Its place must be one that every worker of the cluster can read."
        return Recording(located.name, (), str(located.path), where)
