"""A situation: a few facts of a history that are judged together, and the state that they are.

Of offsets and times only the order is kept, of names only which are the same. What is left is a
state of spec/ClientHistory.tla, and equal states are judged once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import TypeVar

from conformance.history.rows import COMMITTED, FETCHED, NO_OFFSET, OK, READ, SENT
from conformance.tla import Value, make_record

_OUTCOMES = ("ok", "fail", "unknown")
NO_VALUE = "none"
NEVER = 1 << 62
"""A time beyond all others: an operation that may still take effect has no end."""


class SituationKind(StrEnum):
    """What the facts of a situation have in common."""

    VALUE = "value"
    """All sends and reads of one value; who went over its place, if nobody read it."""
    OFFSET = "offset"
    """All that was read at one offset, and acknowledged there."""
    READ_STEP = "step of a reader"
    """A read, and what others read between it and the one before."""
    SEND_STEP = "step of a producer"
    """A send, and the offset that its process was told before."""
    COMMIT_STEP = "committed position"
    """A commit, and what others read between what was processed and the position."""
    POSITION = "fetched position"
    """A fetch of a group's position, and the commits that decide what it may show."""
    TRANSACTION = "transaction"
    """A transaction of unknown outcome: what of it was read, and what was gone over."""
    CIRCLE = "transactions that read from each other"


@dataclass(frozen=True, slots=True)
class SituationFact:
    """A value sent or read, or a position committed or fetched: a row, with its neighbours."""

    kind: int
    order: int
    place: int
    process: str
    key: str
    value: str | None
    offset: int
    outcome: int = OK
    transactional: bool = False
    after: int = NO_OFFSET
    within: bool = False
    renewed: bool | None = False
    """Whether its producer took a new epoch; None: nobody knows."""
    processed: int = NO_OFFSET
    began: int = 0
    ended: int = 0
    before: int = -1
    """The order of the operation that `after` is of; no part of the state."""
    given: int = -1
    """The order of the operation that `processed` is of; no part of the state."""

    def lighter(self) -> tuple[SituationFact, ...]:
        """The fact without what it says of an operation before it, in each way that there is."""
        ways = []
        if self.after != NO_OFFSET:
            ways.append(replace(self, after=NO_OFFSET, within=False, before=-1))
        if self.processed != NO_OFFSET:
            ways.append(replace(self, processed=NO_OFFSET, given=-1))
        return tuple(ways)

    @property
    def offsets(self) -> tuple[int, ...]:
        """All offsets that it names."""
        return tuple(o for o in (self.offset, self.after, self.processed) if o != NO_OFFSET)


@dataclass(frozen=True, slots=True)
class HistorySituation:
    """Facts that are judged together."""

    kind: SituationKind
    facts: tuple[SituationFact, ...]

    @property
    def orders(self) -> tuple[int, ...]:
        """The operations, in their order."""
        return tuple(sorted({fact.order for fact in self.facts}))


State = Mapping[str, Value]
"""By variable of the specification."""


def states_of(facts: Iterable[SituationFact]) -> list[State]:
    """The facts as a state; several where nobody knows whether a producer took a new epoch."""
    known = sorted(set(facts), key=lambda fact: (fact.order, fact.kind, fact.place, fact.offset))
    unknown = sorted({fact.process for fact in known if fact.renewed is None})
    return [
        _state(known, dict(zip(unknown, renewed, strict=True)))
        for renewed in product((False, True), repeat=len(unknown))
    ]


def _state(facts: Sequence[SituationFact], renewed: Mapping[str, bool]) -> State:
    names = _Names(facts)
    sets: dict[int, set[Value]] = {SENT: set(), READ: set(), COMMITTED: set(), FETCHED: set()}
    for fact in facts:
        sets[fact.kind].add(_RECORDS[fact.kind](fact, names, renewed))
    return {
        name: frozenset(sets[kind])
        for kind, name in (
            (SENT, "sent"),
            (READ, "read"),
            (COMMITTED, "committed"),
            (FETCHED, "fetched"),
        )
    }


class _Names:
    """What facts share, renamed: `o1`, `p1`, `v1`; offsets and times by their rank."""

    def __init__(self, facts: Sequence[SituationFact]) -> None:
        self.operations = _numbered("o", (fact.order for fact in facts))
        self.partitions = _numbered("p", (fact.key for fact in facts))
        self.values = _numbered("v", (fact.value for fact in facts if fact.value is not None))
        self.sends = _numbered("s", ((f.order, f.place) for f in facts if f.kind == SENT))
        self.offsets = {
            offset: rank
            for key in self.partitions
            for rank, offset in enumerate(
                sorted({(key, o) for fact in facts if fact.key == key for o in fact.offsets})
            )
        }
        times = {time for f in facts if f.kind >= COMMITTED for time in (f.began, f.ended)}
        self.times = {time: rank for rank, time in enumerate(sorted(times))}

    def offset(self, key: str, offset: int) -> int:
        """Its rank among those of its partition."""
        return offset if offset == NO_OFFSET else self.offsets[key, offset]

    def value(self, value: str | None) -> str:
        return NO_VALUE if value is None else self.values[value]


_T = TypeVar("_T")


def _numbered(letter: str, items: Iterable[_T]) -> dict[_T, str]:
    return {item: f"{letter}{rank}" for rank, item in enumerate(dict.fromkeys(items), 1)}


def _sent(fact: SituationFact, names: _Names, renewed: Mapping[str, bool]) -> Value:
    return make_record(
        id=names.sends[fact.order, fact.place],
        operation=names.operations[fact.order],
        transactional=fact.transactional,
        partition=names.partitions[fact.key],
        value=names.value(fact.value),
        offset=names.offset(fact.key, fact.offset),
        outcome=_OUTCOMES[fact.outcome],
        after=names.offset(fact.key, fact.after),
        within=fact.within,
        renewed=renewed[fact.process] if fact.renewed is None else fact.renewed,
    )


def _read(fact: SituationFact, names: _Names, _renewed: Mapping[str, bool]) -> Value:
    return make_record(
        operation=names.operations[fact.order],
        partition=names.partitions[fact.key],
        value=names.value(fact.value),
        offset=names.offset(fact.key, fact.offset),
        after=names.offset(fact.key, fact.after),
        within=fact.within,
    )


def _committed(fact: SituationFact, names: _Names, _renewed: Mapping[str, bool]) -> Value:
    return make_record(
        partition=names.partitions[fact.key],
        offset=names.offset(fact.key, fact.offset),
        outcome=_OUTCOMES[fact.outcome],
        processed=names.offset(fact.key, fact.processed),
        after=names.offset(fact.key, fact.after),
        began=names.times[fact.began],
        ended=names.times[fact.ended],
    )


def _fetched(fact: SituationFact, names: _Names, _renewed: Mapping[str, bool]) -> Value:
    return make_record(
        partition=names.partitions[fact.key],
        offset=names.offset(fact.key, fact.offset),
        began=names.times[fact.began],
        ended=names.times[fact.ended],
    )


_RECORDS = {SENT: _sent, READ: _read, COMMITTED: _committed, FETCHED: _fetched}
