"""How often random exploration meets each action, and the weights that even it out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from conformance.replay.oracle import Oracle


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Per action name: in how many visited states it was enabled, how often it was taken."""

    enabled: Mapping[str, int]
    steps: Mapping[str, int]


class ActionTally:
    """Counts enabled and taken actions while a run goes on."""

    def __init__(self) -> None:
        self._enabled: Counter[str] = Counter()
        self._steps: Counter[str] = Counter()

    def visit(self, names: frozenset[str]) -> None:
        """A state in which the actions of these names are enabled."""
        self._enabled.update(names)

    def take(self, name: str) -> None:
        """A step by the action of this name."""
        self._steps[name] += 1

    def frequencies(self) -> Frequencies:
        """The counts until now."""
        return Frequencies(dict(self._enabled), dict(self._steps))


def calibrate(oracle: Oracle, *, walks: int, length: int, seed: int) -> Frequencies:
    """Walk the spec alone, uniformly over action names, and count.

    The rarer an action is enabled, the more it deserves to be taken where it is. A fixed
    prior pass keeps the weights constant while Hypothesis runs: weights that moved with the
    run would make its replays flaky.
    """
    rng = random.Random(seed)
    tally = ActionTally()
    initial = oracle.initial_states()
    for _ in range(walks):
        state = rng.choice(initial)
        for _ in range(length):
            enabled = oracle.enabled(state)
            if not enabled:
                break
            names = sorted({action.name for action in enabled})
            tally.visit(frozenset(names))
            name = rng.choice(names)
            action = rng.choice([action for action in enabled if action.name == name])
            tally.take(name)
            state = rng.choice(oracle.successors(state, action))
    return tally.frequencies()


def copies(frequencies: Frequencies, *, most: int = 4) -> dict[str, int]:
    """How many times each action stands in the lottery: 1 for the commonest, up to `most`."""
    if not frequencies.enabled:
        return {}
    common = max(frequencies.enabled.values())
    return {
        name: max(1, min(most, round((common / count) ** 0.5)))
        for name, count in frequencies.enabled.items()
    }
