"""Which answers an example wants to give: an aim of its own first, and then what it likes.

All is drawn from the seed and the example's number. What is wanted is not always possible: the
specification decides that (`answers`).
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from conformance.client.answers import GOOD, WISHES
from conformance.client.duties import AIMS, FATAL, Duties, DutyKind

__all__ = ["LOST_ANSWER", "LOST_REQUEST", "Wishes", "aims_of"]

LOST_REQUEST, LOST_ANSWER = "connection cut, request lost", "connection cut, answer lost"
_AIMED, _BEFORE_AIM = 0.7, 0.5
"""How often the aim is wanted where it can be; by what other errors are rarer until then."""
_ENOUGH = 2
"""An answer that was given so often, and made the client owe nothing, is no aim any more."""
_FAULTS = {"JoinGroup": 0.3, "SyncGroup": 0.4, "Heartbeat": 0.4, "OffsetCommit": 0.4}
"""How often an error or a cut connection is wanted."""


def aims_of(number: int, *, is_static: bool) -> tuple[DutyKind, ...]:
    """What an example aims at, and what in its place if that is in vain, and so on.

    The next kind comes with every second example, so that static and dynamic clients have all.
    Nobody fences a client without an instance id: it aims at the kind after that.
    """
    first = (number - 1) // 2 % len(AIMS)
    aims = (*AIMS[first:], *AIMS[:first])
    return tuple(kind for kind in aims if is_static or kind.answer != "FENCED_INSTANCE_ID")


@dataclass(slots=True)
class Wishes:
    """Of one example; `duties` and `draw` are the example's own."""

    seed: str
    requests: int
    """Of the client, after half of which one that has not committed is taken to commit nothing."""
    duties: Duties
    draw: random.Random
    is_static: bool = False
    aims: tuple[DutyKind, ...] = ()
    """What the example tries to make the client owe: the first that is not in vain."""
    given: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each answer was given, by request and answer."""
    answered: int = 0
    """Requests of the client that were answered, its commits not counted."""
    has_committed: bool = False

    def aim_at(self, number: int, *, is_static: bool) -> None:
        """The client has joined: which aims it can come to is known."""
        self.is_static = is_static
        self.aims = aims_of(number, is_static=is_static)

    @property
    def aim(self) -> DutyKind:
        """What the client is to owe, once at least."""
        possible = (kind for kind in self.aims if self.duties.made[kind] or not self._is_vain(kind))
        return next(possible, self.aims[0])

    @property
    def awaits(self) -> bool:
        """Whether the client owes now what the example aimed at."""
        return self.duties.open_of(self.aim)

    def answers(self, api: str, *, calm: bool) -> list[str]:
        """The answers in the order in which they are wanted now; `calm`: no faults."""
        wanted = list(GOOD) if calm else self._drawn(api)
        if self.awaits and api == self.aim.api:
            # Another error might have the client do what this one asked for.
            return [self.aim.answer, *wanted]
        return wanted

    def _is_vain(self, kind: DutyKind) -> bool:
        """Whether the variant asks nothing for this answer, or the client commits nothing."""
        if self.given[kind.api, kind.answer] >= _ENOUGH:
            return True
        if kind.api != "OffsetCommit" or self.has_committed:
            return False
        return self.answered > self.requests / 2

    def _drawn(self, api: str) -> list[str]:
        """Each example likes others, whatever came in those before it.

        Half of the time the client may go on. Until the aim is reached, the client mostly gets as
        far as that.
        """
        good = self.draw.sample(GOOD, len(GOOD))
        aim = self.aim
        is_ahead = not self.duties.made[aim]
        if is_ahead and api == aim.api and self.draw.random() < _AIMED:
            return [aim.answer, *good]
        faults = [*WISHES[api], LOST_REQUEST, LOST_ANSWER]
        if not self.is_static:
            faults.remove("FENCED_INSTANCE_ID")
        if is_ahead:
            faults = [fault for fault in faults if fault not in FATAL]
        liked = sorted(faults, key=lambda name: -self.draw.random() * self._liking(api, name))
        wanted = _FAULTS[api] * (_BEFORE_AIM if is_ahead else 1.0)
        return [*liked, *good] if self.draw.random() < wanted else [*good, *liked]

    def _liking(self, api: str, outcome: str) -> float:
        own = random.Random(f"{self.seed}-{api}-{outcome}").random()
        return own / (1 + self.given[api, outcome])
