"""Plants lies in histories of clients, and judges small random histories by brute force too.

Of each lie so many copies are shuffled with as many histories without it; each has partitions and
processes of its own. The table says how many were found, and how often anybody else was accused.
Then the judge's answers on random histories are compared with those of the same formulas on the
whole history as one state, in three configurations and with windows of a few rows.
Run: python -m experiments.planted_histories [--copies 300] [--histories 3000] [--seed N]
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from unittest import mock

from conformance.history import windows
from conformance.history.rules import RULES, Answer
from tests.property.history.test_brute_force import CONFIGURATIONS, WINDOWS, agreed
from tests.unit.history.histories import judged
from tests.unit.history.planted import shuffled
from tests.unit.history.test_rules import LIES, Lie


def hits_of(case: Lie, copies: int, rng: random.Random) -> tuple[int, int]:
    """The copies of a lie that each of its rules is broken by, and all other accusations."""
    history = [*shuffled([*[case.lie] * copies, *[case.truth] * copies], rng)]
    broken = {t.rule.name: t.answers[Answer.BROKEN] for t in judged(history).broken()}
    own = [broken.pop(rule, 0) for rule in case.broken]
    return min(own), sum(broken.values()) + sum(max(count - copies, 0) for count in own)


def main() -> None:
    """Print both tables; exit code 1 if a lie was missed or anybody else accused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=300)
    parser.add_argument("--histories", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    wrong = 0
    print(f"{'planted':>7}  {'found':>5}  {'others':>6}  lie, and the rules that it breaks")
    for case in LIES:
        hits, others = hits_of(case, options.copies, rng)
        wrong += options.copies - hits + others
        rules = ", ".join(case.broken)
        print(f"{options.copies:>7}  {hits:>5}  {others:>6}  {case.name} ({rules})", flush=True)
    print(f"\n{'kept':>8}  {'broken':>8}  {'allowed':>8}  {'undecided':>9}  rule")
    answers = _compared(options.histories, options.seed)
    for rule in RULES:
        counts = [answers[rule.name, answer] for answer in Answer]
        print("  ".join(f"{n:>{w}}" for n, w in zip(counts, (8, 8, 8, 9), strict=True)), rule.name)
    print(f"{options.histories:,} random histories: brute force says the same of each.")
    if wrong:
        raise SystemExit(1)


def _compared(histories: int, seed: int) -> Counter[tuple[str, Answer]]:
    """How often each answer was given; AssertionError names a history on which they differ."""
    answers: Counter[tuple[str, Answer]] = Counter()
    for number in range(histories):
        configuration = CONFIGURATIONS[number % len(CONFIGURATIONS)]
        window = WINDOWS[number // len(CONFIGURATIONS) % len(WINDOWS)]
        with mock.patch.object(windows, "WINDOW", window):
            answers.update(agreed(seed * 1_000_000 + number, configuration))
    return answers


if __name__ == "__main__":
    main()
