"""The rules that are asked of histories: the formulas of spec/ClientHistory.tla, by situation.

Each distinct state is asked once. Where a state is one of several, because nobody knows whether a
producer took a new epoch, a rule is broken only if it is broken in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from conformance.events import Reason
from conformance.history.rows import FAIL, NO_OFFSET, OK, READ, SENT, UNKNOWN
from conformance.history.situations import (
    HistorySituation,
    SituationFact,
    SituationKind,
    State,
    states_of,
)
from conformance.modelcheck.specifications import Specification, Specifications
from conformance.story.why import why_false
from conformance.tla import ModelValue, Spec, Value

MODEL = "history/clients"
"""The model whose constants are asked for, but for those that the user declares."""


@dataclass(frozen=True, slots=True)
class DeclaredConfiguration:
    """What clients and cluster were configured with; docs/history.md says what each allows."""

    acks: str = "all"
    isolation: str = "read_committed"
    idempotence: bool = True
    unclean_election: bool = False
    deletion: bool = False
    transaction_version: int = 2

    def constants(self) -> dict[str, Value]:
        """The specification's constants."""
        return {
            "Acks": self.acks,
            "Isolation": self.isolation,
            "Idempotence": self.idempotence,
            "UncleanElection": self.unclean_election,
            "Deletion": self.deletion,
            "TransactionVersion": self.transaction_version,
        }


class Answer(StrEnum):
    """What a rule says of a situation."""

    KEPT = "kept"
    BROKEN = "broken"
    ALLOWED = "allowed"
    """The bare formula is false, and the configuration allows that."""
    UNDECIDED = "undecided"
    """It depends on what the history does not tell."""


Exercises = Callable[[Sequence[SituationFact]], bool]


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """A rule, its bare formula, and in which situations it can be false at all."""

    name: str
    bare: str
    kind: SituationKind
    title: str
    """What was seen, if it is broken."""
    exercises: Exercises
    decides: bool = True
    """False: that it is false is no fault yet."""


def _sent(facts: Sequence[SituationFact]) -> list[SituationFact]:
    return [fact for fact in facts if fact.kind == SENT]


def _any(kind: int, holds: Callable[[SituationFact], bool]) -> Exercises:
    return lambda facts: any(fact.kind == kind and holds(fact) for fact in facts)


def _both(facts: Sequence[SituationFact]) -> bool:
    return {fact.kind for fact in facts} >= {SENT, READ}


def _placed(fact: SituationFact) -> bool:
    return fact.outcome == OK and fact.offset != NO_OFFSET


def _follows(within: bool) -> Callable[[SituationFact], bool]:
    return lambda fact: fact.after != NO_OFFSET and fact.within is within


_KIND = SituationKind
RULES: tuple[HistoryRule, ...] = (
    HistoryRule("OneRecordPerOffset", "ReadsAgree", _KIND.OFFSET,
                "two records at one offset", _any(READ, lambda _: True)),
    HistoryRule("AcknowledgedOffsetIsKept", "AnswersAgree", _KIND.OFFSET,
                "another record at an acknowledged offset", _any(SENT, _placed)),
    HistoryRule("AcknowledgedIsKept", "NoneIsLost", _KIND.VALUE,
                "an acknowledged record is lost", _any(SENT, _placed)),
    HistoryRule("IdempotentIsWrittenOnce", "NoneIsDoubled", _KIND.VALUE,
                "a record is in the log twice", _both),
    HistoryRule("AbortedIsNotRead", "NoneAbortedIsRead", _KIND.VALUE,
                "a record of an aborted transaction was read",
                _any(SENT, lambda fact: fact.transactional and fact.outcome == FAIL)),
    HistoryRule("RefusedIsNotAppended", "NoneRefusedIsRead", _KIND.VALUE,
                "a record whose send failed was read",
                _any(SENT, lambda fact: not fact.transactional and fact.outcome == FAIL)),
    HistoryRule("UncommittedIsNotRead", "NoneReadsItself", _KIND.VALUE,
                "a transaction read what it had not committed yet",
                lambda facts: _both(facts) and any(fact.transactional for fact in _sent(facts))),
    HistoryRule("PollIsContiguous", "NoneIsSkippedWithin", _KIND.READ_STEP,
                "a poll left out a record", _any(READ, _follows(within=True))),
    HistoryRule("PollsAreContiguous", "NoneIsSkippedBetween", _KIND.READ_STEP,
                "a record was left out between two polls", _any(READ, _follows(within=False))),
    HistoryRule("PollGoesForward", "ReadsGrowWithin", _KIND.READ_STEP,
                "a poll went back", _any(READ, _follows(within=True))),
    HistoryRule("PollsGoForward", "ReadsGrowBetween", _KIND.READ_STEP,
                "a reader went back between two polls", _any(READ, _follows(within=False))),
    HistoryRule("SentTogetherKeepsOrder", "SendsGrowWithin", _KIND.SEND_STEP,
                "records that were sent together are out of order",
                _any(SENT, _follows(within=True))),
    HistoryRule("SentAfterAnswerLiesBehind", "SendsGrowBetween", _KIND.SEND_STEP,
                "a record lies before one that was acknowledged earlier",
                _any(SENT, _follows(within=False))),
    HistoryRule("CommittedPositionGoesForward", "CommitsGrow", _KIND.COMMIT_STEP,
                "a committed position went back",
                lambda facts: any(fact.after != NO_OFFSET and fact.kind > READ for fact in facts)),
    HistoryRule("CommittedIsProcessed", "NoneIsCommittedUnread", _KIND.COMMIT_STEP,
                "a committed position is ahead of what was processed",
                lambda facts: any(fact.processed != NO_OFFSET for fact in facts)),
    HistoryRule("CommittedPositionIsKept", "PositionsAreKept", _KIND.POSITION,
                "a group's committed position was lost", lambda facts: len(facts) > 1),
    HistoryRule("TransactionIsWhole", "NoneIsTorn", _KIND.TRANSACTION,
                "a transaction is visible in part",
                lambda facts: _both(facts) and any(f.outcome == UNKNOWN for f in _sent(facts))),
    HistoryRule("ReadTransactionsEndedBefore", "NoneReadInACircle", _KIND.CIRCLE,
                "transactions read from each other in a circle", lambda facts: len(facts) > 1),
    HistoryRule("AcknowledgedIsSeen", "EachIsSeen", _KIND.VALUE,
                "acknowledged records that nobody has read", _any(SENT, lambda f: f.outcome == OK),
                decides=False),
)  # fmt: skip
"""All rules."""
BY_KIND: Mapping[SituationKind, tuple[HistoryRule, ...]] = {
    kind: tuple(rule for rule in RULES if rule.kind is kind) for kind in SituationKind
}


def _smaller(facts: tuple[SituationFact, ...]) -> Iterator[tuple[SituationFact, ...]]:
    """Without an operation, without a fact, without what a fact says of an operation before."""
    for order in dict.fromkeys(fact.order for fact in facts):
        yield tuple(fact for fact in facts if fact.order != order)
    for place, fact in enumerate(facts):
        yield (*facts[:place], *facts[place + 1 :])
        for lighter in fact.lighter():
            yield (*facts[:place], lighter, *facts[place + 1 :])


_UNSEEN = ModelValue("(not seen)")


@dataclass(slots=True)
class HistoryFormulas:
    """The specification under a configuration; equal states are asked once."""

    configuration: DeclaredConfiguration
    spec: Spec
    _known: dict[tuple[str, State | tuple[Value, ...]], bool] = field(default_factory=dict)

    @staticmethod
    def of(configuration: DeclaredConfiguration) -> HistoryFormulas:
        """Parse the specification."""
        specification: Specification = Specifications()[MODEL]
        return HistoryFormulas(configuration, specification.bound(configuration.constants()))

    def holds(self, formula: str, state: State) -> bool:
        """Whether a formula is true in a state."""
        values = self._values(state)
        key = (formula, values)
        if key not in self._known:
            self._known[key] = self.spec.state_formula(formula)(values)
        return self._known[key]

    def _values(self, state: State) -> tuple[Value, ...]:
        return tuple(state.get(name, _UNSEEN) for name in self.spec.variables)

    def answer(self, rule: HistoryRule, states: Sequence[State]) -> Answer:
        """What a rule says of a situation that is one of these states."""
        broken = [not self.holds(rule.name, state) for state in states]
        if all(broken):
            return Answer.BROKEN
        if any(broken):
            return Answer.UNDECIDED
        bare = all(self.holds(rule.bare, state) for state in states)
        return Answer.KEPT if bare else Answer.ALLOWED

    def smallest(self, rule: HistoryRule, situation: HistorySituation) -> HistorySituation:
        """The situation without what the answer does not need: removing any operation that is
        left, or what is said of one, changes the answer."""
        facts = situation.facts
        wanted = self.answer(rule, states_of(facts))
        while True:
            ways = (way for way in _smaller(facts) if way)
            fewer = next((w for w in ways if self.answer(rule, states_of(w)) is wanted), None)
            if fewer is None:
                return HistorySituation(situation.kind, facts)
            facts = fewer

    def why(self, rule: HistoryRule, situation: HistorySituation) -> tuple[Reason, ...]:
        """The evaluator's account of why a rule is false."""
        states = states_of(situation.facts)
        false = next((state for state in states if not self.holds(rule.name, state)), None)
        if false is None:
            return ()
        values = self._values(false)
        return why_false(self.spec, rule.name, values, values)

    def location(self, rule: HistoryRule) -> str:
        """Where the specification states it: `file:line:column`."""
        return str(self.spec.program.operator(rule.name, "a formula").location)
