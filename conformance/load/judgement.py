"""Whether a release loads a log: what two judges say of each group, and what an operator does.

The specification follows every compaction. The release's classes load the log as it is, each
compaction in which the specification fails or comes to another state, and a sample of the others.
Both must say the same of each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from conformance.kafka.schemas import Schemas
from conformance.load.classes import ReleaseClasses
from conformance.load.compactions import AS_IT_IS, CompactionSearch, Variant
from conformance.load.meaning import GroupRecords, ReleaseReader
from conformance.load.partition import PartitionLog
from conformance.load.specification import MODEL, SpecifiedLoad, specified_load
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict

SAMPLE = 40
"""Compactions of a group that the classes load besides those that matter."""
_SEED = 20


class LoadAnswer(StrEnum):
    """What becomes of a group."""

    LOADS = "loads"
    FAILS = "fails"
    FAILS_COMPACTED = "fails when compacted"
    OTHER_STATE = "loads another state when compacted"
    FORGOTTEN = "forgets records of types that it does not know"


@dataclass(frozen=True, slots=True)
class LoadFault:
    """A record at which a load ends, or a compaction that loads another state."""

    answer: LoadAnswer
    rule: str
    """The operator of spec/GroupLoad.tla that says no; empty of another state."""
    offset: int
    """Of the record that fails; of another state, where the newer log begins."""
    record: str
    """Its type and key."""
    variant: Variant
    dropped: tuple[int, ...]
    """Offsets of the records that the compaction left out."""
    beginning: int
    """The offset from which on a reader beside the cleaner sees the newer log."""

    @property
    def is_beside_the_cleaner(self) -> bool:
        """Whether only a load that runs beside the cleaner meets it."""
        return self.variant.start > 0

    @property
    def where(self) -> str:
        """Under which compaction, as the beginning of a sentence."""
        if not self.is_beside_the_cleaner:
            return "When the cleaner has been over the log,"
        return f"If the cleaner replaces the log while it is read, at offset {self.beginning},"


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """A group, and what a release makes of it."""

    group: str
    records: int
    variants: int
    answer: LoadAnswer
    faults: tuple[LoadFault, ...] = ()
    disagreements: tuple[str, ...] = ()
    """Where the classes say otherwise than the specification."""
    compared: int = 0
    """Loads that both judges did."""


@dataclass(frozen=True, slots=True)
class ReleaseVerdict:
    """A release, and what it makes of a log."""

    release: str
    groups: tuple[GroupVerdict, ...]
    judges: tuple[str, ...]

    @property
    def faulty(self) -> tuple[GroupVerdict, ...]:
        """The groups that are not loaded as they were."""
        return tuple(g for g in self.groups if g.answer is not LoadAnswer.LOADS)

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Where the judges do not agree: one of them is wrong."""
        return tuple(text for group in self.groups for text in group.disagreements)

    @property
    def verdict(self) -> Verdict:
        """Without a group nothing was judged."""
        if self.faulty:
            return Verdict.FAIL
        return Verdict.PASS if self.groups and not self.disagreements else Verdict.INCONCLUSIVE


def judge_release(
    log: PartitionLog,
    release: str,
    jars: Sequence[Path],
    specifications: Specifications,
    classes: ReleaseClasses | None,
) -> ReleaseVerdict:
    """What a release makes of a log; without classes, by the specification alone."""
    groups = ReleaseReader(_schemas(tuple(jars))).groups(log.records)
    judge = _Judge(specified_load(specifications[MODEL], release), classes)
    judges = ("specification", *(("classes",) if classes else ()))
    return ReleaseVerdict(release, tuple(judge.group(group) for group in groups), judges)


@lru_cache(maxsize=8)
def _schemas(jars: tuple[Path, ...]) -> Schemas:
    return Schemas.of(jars)


@dataclass(slots=True)
class _Judge:
    """Both judges of one release."""

    specified: SpecifiedLoad
    classes: ReleaseClasses | None
    random: random.Random = field(default_factory=lambda: random.Random(_SEED))

    def group(self, group: GroupRecords) -> GroupVerdict:
        exploration = self.specified.explore(group)
        faults = tuple(self._faults(group, exploration))
        disagreements, compared = tuple[str, ...](), 0
        if self.classes is not None:
            disagreements, compared = self._compare(self.classes, group, exploration, faults)
        return GroupVerdict(
            group.name,
            len(group.records),
            exploration.variants + 1,
            _answer(faults),
            faults,
            disagreements,
            compared,
        )

    def _faults(self, group: GroupRecords, exploration: CompactionSearch) -> Iterator[LoadFault]:
        ended = (n for n, s in enumerate(exploration.raw[1:]) if self.specified.rule(s))
        failing = next(ended, None)
        if failing is not None:
            rule = self.specified.rule(exploration.raw[failing + 1])
            yield _fault(group, LoadAnswer.FAILS, rule, failing, AS_IT_IS)
        known = {failing}
        for (number, state), variant in exploration.failures.items():
            if number not in known:
                known.add(number)
                rule = self.specified.rule(state)
                yield _fault(group, LoadAnswer.FAILS_COMPACTED, rule, number, variant)
        if failing is None:
            others = (v for s, v in exploration.final.items() if s != exploration.raw[-1])
            for variant in others:
                yield _fault(group, LoadAnswer.OTHER_STATE, "", variant.start, variant)
        for number, meaning in enumerate(group.meanings):
            if meaning["type"] == "Unknown":
                yield _fault(group, LoadAnswer.FORGOTTEN, "", number, AS_IT_IS)
                break

    def _compare(
        self,
        classes: ReleaseClasses,
        group: GroupRecords,
        exploration: CompactionSearch,
        faults: Sequence[LoadFault],
    ) -> tuple[tuple[str, ...], int]:
        """Where the classes say otherwise, and how many loads both did."""
        chosen = [AS_IT_IS, *(fault.variant for fault in faults), *self._sample(group)]
        variants = list(dict.fromkeys(chosen))
        kept = [group.shape.kept(variant) for variant in variants]
        loads = list(classes.loads(group, kept))
        texts = []
        for variant, numbers, load in zip(variants, kept, loads, strict=True):
            failed, rule, state = self.specified.load(group, numbers)
            same = state == exploration.raw[-1]
            if failed != load.failed:  # the other judge's reasons are its own
                texts.append(
                    f"group {group.name}, {_words(variant)}: by the specification it "
                    f"{_outcome(group, failed, rule)}, by the classes it "
                    f"{_outcome(group, load.failed, load.error)}"
                )
            elif loads[0].failed is None and same != (load.state == loads[0].state):
                texts.append(
                    f"group {group.name}, {_words(variant)}: the specification loads "
                    f"{'the same' if same else 'another'} state, the classes do not"
                )
        return tuple(texts), len(variants)

    def _sample(self, group: GroupRecords) -> Iterator[Variant]:
        """Some compactions, the same whenever it is asked."""
        shape = group.shape
        ends = shape.ends()
        borders = [n for n, border in enumerate(shape.borders) if border]
        for _ in range(SAMPLE if ends else 0):
            end = self.random.choice(ends)
            below = [n for n in borders if n < end]
            first, second = sorted(self.random.choices(below, k=2))
            if self.random.random() < 0.5:
                yield Variant("raw", first, first, end)
            else:
                yield Variant("cleaned", first, second, end)


def _answer(faults: Sequence[LoadFault]) -> LoadAnswer:
    """The worst."""
    order = list(LoadAnswer)[1:]
    return min((f.answer for f in faults), key=order.index, default=LoadAnswer.LOADS)


def _fault(
    group: GroupRecords, answer: LoadAnswer, rule: str, number: int, variant: Variant
) -> LoadFault:
    kept = set(group.shape.kept(variant))
    dropped = tuple(r.offset for n, r in enumerate(group.records) if n not in kept)
    record = group.records[min(number, len(group.records) - 1)]
    readable = group.readable[min(number, len(group.records) - 1)]
    beginning = group.records[min(variant.start, len(group.records) - 1)].offset
    return LoadFault(answer, rule, record.offset, readable, variant, dropped, beginning)


def _words(variant: Variant) -> str:
    if variant == AS_IT_IS:
        return "the log as it is"
    return f"compacted ({variant.kind} to {variant.start}, {variant.tombstones}, {variant.end})"


def _outcome(group: GroupRecords, failed: int | None, why: str) -> str:
    return "loads" if failed is None else f"fails at offset {group.records[failed].offset} ({why})"
