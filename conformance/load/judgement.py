"""Whether a release loads a log: what two judges say of each unit, and what an operator does.

The specification follows every compaction. The release's classes load the log as it is, each
compaction in which the specification fails or comes to another state, and a sample of the others.
Both must say the same of each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from conformance.kafka.schemas import Schemas
from conformance.load.classes import ReleaseClasses
from conformance.load.compactions import AS_IT_IS, LoadSearch, Variant
from conformance.load.partition import PartitionLog
from conformance.load.specification import SpecifiedLoad, specified_load
from conformance.load.topics import OFFSETS, StateTopic
from conformance.load.units import RecordDecoder, UnitRecords
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict

_SEED = 20


class LoadAnswer(StrEnum):
    """What becomes of a unit."""

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
    """The rule of the specification that says no; empty of another state."""
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
        return self.variant.kind != "pruned" and self.variant.start > 0

    @property
    def where(self) -> str:
        """Under which compaction, as the beginning of a sentence."""
        if self.variant.kind == "pruned":
            return f"When the log begins behind offset {self.dropped[-1]},"
        if not self.is_beside_the_cleaner:
            return "When the cleaner has been over the log,"
        return f"If the cleaner replaces the log while it is read, at offset {self.beginning},"


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """A unit of the log, and what a release makes of it."""

    name: str
    records: int
    last: int
    """The offset of its last record."""
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
    units: tuple[UnitVerdict, ...]
    judges: tuple[str, ...]
    topic: StateTopic
    remainders: Mapping[str, int] = field(default_factory=dict)
    """What stood behind keys and values, and how often: a loader skips it, and nobody knows what
    it says."""

    @property
    def faulty(self) -> tuple[UnitVerdict, ...]:
        """The units that are not loaded as they were."""
        return tuple(unit for unit in self.units if unit.answer is not LoadAnswer.LOADS)

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Where the judges do not agree: one of them is wrong."""
        return tuple(text for unit in self.units for text in unit.disagreements)

    @property
    def verdict(self) -> Verdict:
        """Without a unit nothing was judged; what was not understood is no pass."""
        if self.faulty:
            return Verdict.FAIL
        understood = self.units and not self.disagreements and not self.remainders
        return Verdict.PASS if understood else Verdict.INCONCLUSIVE


def judge_release(
    log: PartitionLog,
    release: str,
    jars: Sequence[Path],
    specifications: Specifications,
    classes: ReleaseClasses | None,
    topic: StateTopic = OFFSETS,
) -> ReleaseVerdict:
    """What a release makes of a log; without classes, by the specification alone."""
    decoder = RecordDecoder()
    units = topic.reader(_schemas(tuple(jars)), decoder).units(log.records)
    judge = _Judge(topic, specified_load(specifications[topic.model], topic, release), classes)
    judges = ("specification", *(("classes",) if classes else ()))
    verdicts = tuple(judge.unit(unit) for unit in units)
    return ReleaseVerdict(release, verdicts, judges, topic, dict(decoder.remainders))


@lru_cache(maxsize=8)
def _schemas(jars: tuple[Path, ...]) -> Schemas:
    return Schemas.of(jars)


@dataclass(slots=True)
class _Judge:
    """Both judges of one release."""

    topic: StateTopic
    specified: SpecifiedLoad
    classes: ReleaseClasses | None
    random: random.Random = field(default_factory=lambda: random.Random(_SEED))

    def unit(self, unit: UnitRecords) -> UnitVerdict:
        exploration = self.specified.explore(unit)
        faults = tuple(self._faults(unit, exploration))
        disagreements, compared = tuple[str, ...](), 0
        if self.classes is not None:
            disagreements, compared = self._compare(self.classes, unit, exploration, faults)
        return UnitVerdict(
            unit.name,
            len(unit.records),
            unit.records[-1].offset,
            exploration.variants + 1,
            _answer(faults),
            faults,
            disagreements,
            compared,
        )

    def _faults(self, unit: UnitRecords, exploration: LoadSearch) -> Iterator[LoadFault]:
        ended = (n for n, s in enumerate(exploration.raw[1:]) if self.specified.rule(s))
        failing = next(ended, None)
        if failing is not None:
            rule = self.specified.rule(exploration.raw[failing + 1])
            yield _fault(unit, LoadAnswer.FAILS, rule, failing, AS_IT_IS)
        known = {failing}
        for (number, state), variant in exploration.failures.items():
            if number not in known:
                known.add(number)
                rule = self.specified.rule(state)
                yield _fault(unit, LoadAnswer.FAILS_COMPACTED, rule, number, variant)
        if failing is None:
            others = (v for s, v in exploration.final.items() if s != exploration.raw[-1])
            for variant in others:
                yield _fault(unit, LoadAnswer.OTHER_STATE, "", variant.start, variant)
        for number, meaning in enumerate(unit.meanings):
            if meaning["type"] in ("Unknown", "UnknownValue") and number != failing:
                yield _fault(unit, LoadAnswer.FORGOTTEN, "", number, AS_IT_IS)
                break

    def _compare(
        self,
        classes: ReleaseClasses,
        unit: UnitRecords,
        exploration: LoadSearch,
        faults: Sequence[LoadFault],
    ) -> tuple[tuple[str, ...], int]:
        """Where the classes say otherwise, and how many loads both did."""
        chosen = [AS_IT_IS, *(fault.variant for fault in faults), *unit.shape.sample(self.random)]
        variants = list(dict.fromkeys(chosen))
        kept = [unit.shape.kept(variant) for variant in variants]
        loads = list(classes.loads(self.topic, unit, kept))
        texts = []
        for variant, numbers, load in zip(variants, kept, loads, strict=True):
            failed, rule, state = self.specified.load(unit, numbers)
            same = state == exploration.raw[-1]
            if failed != load.failed:  # the other judge's reasons are its own
                texts.append(
                    f"{self.topic.unit} {unit.name}, {_words(variant)}: by the specification it "
                    f"{_outcome(unit, failed, rule)}, by the classes it "
                    f"{_outcome(unit, load.failed, load.error)}"
                )
            elif loads[0].failed is None and same != (load.state == loads[0].state):
                texts.append(
                    f"{self.topic.unit} {unit.name}, {_words(variant)}: the specification loads "
                    f"{'the same' if same else 'another'} state, the classes do not"
                )
        return tuple(texts), len(variants)


def _answer(faults: Sequence[LoadFault]) -> LoadAnswer:
    """The worst."""
    order = list(LoadAnswer)[1:]
    return min((f.answer for f in faults), key=order.index, default=LoadAnswer.LOADS)


def _fault(
    unit: UnitRecords, answer: LoadAnswer, rule: str, number: int, variant: Variant
) -> LoadFault:
    kept = set(unit.shape.kept(variant))
    dropped = tuple(r.offset for n, r in enumerate(unit.records) if n not in kept)
    record = unit.records[min(number, len(unit.records) - 1)]
    readable = unit.readable[min(number, len(unit.records) - 1)]
    beginning = unit.records[min(variant.start, len(unit.records) - 1)].offset
    return LoadFault(answer, rule, record.offset, readable, variant, dropped, beginning)


def _words(variant: Variant) -> str:
    if variant == AS_IT_IS:
        return "the log as it is"
    if variant.kind == "pruned":
        return f"pruned up to {variant.start}"
    return f"compacted ({variant.kind} to {variant.start}, {variant.tombstones}, {variant.end})"


def _outcome(unit: UnitRecords, failed: int | None, why: str) -> str:
    return "loads" if failed is None else f"fails at offset {unit.records[failed].offset} ({why})"
