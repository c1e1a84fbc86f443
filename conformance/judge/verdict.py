"""The judge's results: typed, and small enough to be sent between processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from conformance.events import Difference
from conformance.tla import Action, ObservedPart, State
from conformance.verdict import Verdict

__all__ = ["Blocker", "ExplainingBehaviour", "Failure", "FormulaVerdict", "Judgement"]


@dataclass(frozen=True, slots=True)
class ExplainingBehaviour:
    """A behaviour of the specification that shows the events.

    `events[i]` is the number of the event that the i-th step explains, None for an unseen step.
    """

    initial: State
    actions: tuple[Action, ...]
    states: tuple[State, ...]
    events: tuple[int | None, ...]

    @property
    def silent(self) -> int:
        """The number of its silent steps."""
        return self.events.count(None)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why an event cannot have happened in one candidate state."""

    state: State
    action: str
    lines: tuple[str, ...]
    """The formula's part that no next state makes true, as the specification's text has it."""
    differences: tuple[Difference, ...] = ()
    """The differences between the observation and the nearest allowed state."""
    allowed: State | None = None
    """That state."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first event that no behaviour explains."""

    number: int
    """Its number among the events, from 0."""
    event: str
    action: str
    source: str
    candidates: int
    """The number of states from which the event was tried, those after silent steps included."""
    blockers: tuple[Blocker, ...]
    seen: tuple[ObservedPart, ...] = ()
    """The observation after the event."""
    others: tuple[str, ...] = ()
    """Other events that might have come next, and cannot either."""


@dataclass(frozen=True, slots=True)
class FormulaVerdict:
    """What the candidates say of an invariant or an action property.

    Where all candidates after an event agree, it holds there or it is violated; else it is open.
    """

    name: str
    judged: int = 0
    """The number of events after which the formula has a value."""
    violated_at: int | None = None
    """The first event after which it is false in all candidates."""
    undecided_at: int | None = None
    """The first event after which some candidates say so, others not."""
    undefined: str = ""
    """Why it has no value somewhere."""

    @property
    def verdict(self) -> Verdict:
        """Of this formula alone; where it was never judged, nothing speaks against it."""
        if self.violated_at is not None:
            return Verdict.FAIL
        if self.undecided_at is not None or self.undefined:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one recording, with its evidence."""

    name: str
    source: str
    verdict: Verdict
    reason: str
    """One sentence: what decided it, within which bounds."""
    events: int
    explained: int
    """The number of events, from the first, that a behaviour explains."""
    explanation: ExplainingBehaviour | None = None
    """Of as many events as can be explained."""
    failure: Failure | None = None
    formulas: tuple[FormulaVerdict, ...] = ()
    decide: tuple[str, ...] = ()
    """If it is inconclusive: what would decide it."""
    actions: Mapping[str, int] = field(default_factory=Counter)
    """The steps of the explanation, by action."""
    silent: int = 0
    """The number of silent steps among them."""
    most_candidates: int = 0
    tried: int = 0
    start: str = ""
    compared: Mapping[str, int] = field(default_factory=Counter)
    """In how many of the events each variable was seen, in whole or in part."""

    def brief(self) -> Judgement:
        """The same without the explanation if it passes: enough for counting."""
        return replace(self, explanation=None) if self.verdict is Verdict.PASS else self
