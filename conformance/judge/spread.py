"""Many recordings, dealt out to workers that each judge some after the other.

What travels is the specification's text and where each recording's lines are; what comes back is
the judgement. The verdicts are those of a judge in this process, since a judgement depends on
nothing but its recording. The search of one recording is not split up; so that a long one holds up
as little as possible, the longest begin first, and hands are about equally long.
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from conformance import pickled
from conformance.errors import UserError
from conformance.judge.events import Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.reading import RecordingLocation, RecordingReader
from conformance.judge.verdict import Judgement
from conformance.tla import ModelConfig, Module, Spec, bind
from conformance.workers import Workers

__all__ = ["Rules", "deal", "judge_by"]

WAVE = 20_000
"""So many recordings are under way at once: their judgements are in memory together."""


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


def judge_by(
    workers: Workers, rules: Rules, recordings: Iterable[RecordingLocation], *, brief: bool
) -> Iterator[tuple[RecordingLocation, Judgement]]:
    """Every recording with its judgement, in their order.

    Workers read the files themselves, so these must be where they can. `brief`: a judgement that
    passes comes back without its explanation.
    """
    judge = _HandJudge(pickled.dumps(rules), brief)
    waiting = iter(recordings)
    while wave := list(islice(waiting, WAVE)):
        hands = deal([item.size for item in wave], workers.tasks)
        dealt = [[wave[number] for number in hand] for hand in hands]
        result = dict(
            pair
            for hand, judgements in zip(hands, workers.map(judge, dealt), strict=True)
            for pair in zip(hand, judgements, strict=True)
        )
        yield from ((located, result[number]) for number, located in enumerate(wave))


def deal(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """The numbers of what is to be done, dealt out to so many tasks: the largest first, each to
    the task that has least to do. The task with most to do comes first."""
    hands: list[list[int]] = [[] for _ in range(min(tasks, len(sizes)))]
    least = [(0, number) for number in range(len(hands))]
    for item in sorted(range(len(sizes)), key=lambda number: (-sizes[number], number)):
        work, number = heapq.heappop(least)
        hands[number].append(item)
        heapq.heappush(least, (work + sizes[item], number))
    return [hands[number] for _, number in sorted(least, reverse=True)]


# --- on a worker ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _judge(payload: bytes) -> Judge:
    # A Python worker serves many tasks; what the judge computed for one serves the next.
    rules = pickle.loads(payload)
    assert isinstance(rules, Rules)
    return rules.judge()


@dataclass(frozen=True, slots=True)
class _HandJudge:
    """Judges a hand of recordings by rules, which travel as a pickle."""

    rules: bytes
    brief: bool

    def __call__(self, hand: Sequence[RecordingLocation]) -> list[Judgement]:
        judge = _judge(self.rules)
        with RecordingReader() as reader, judge.many():
            return [judge.judge(_read(reader, item), brief=self.brief) for item in hand]


def _read(reader: RecordingReader, located: RecordingLocation) -> Recording:
    try:
        return reader.read(located)
    except UserError as error:
        where = f"{error} Its place must be one that every worker of the cluster can read."
        return Recording(located.name, (), str(located.path), where)
