"""The judge against brute force: the same formulas on the whole history as one state.

A history of a few operations over few partitions, values and offsets is drawn at random. So most
of them break something, and each rule is broken and kept hundreds of times.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from conformance.history import windows
from conformance.history.rows import FAIL, FETCHED, OK, SENT, UNKNOWN
from conformance.history.rules import RULES, Answer, DeclaredConfiguration, HistoryFormulas
from conformance.history.situations import SituationFact, states_of
from tests.unit.history.histories import Operation, formulas_of, judged, plain_facts

HISTORIES = 300
CONFIGURATIONS = (
    DeclaredConfiguration(),
    DeclaredConfiguration(acks="1", idempotence=False, isolation="read_uncommitted"),
    DeclaredConfiguration(unclean_election=True, deletion=True, transaction_version=1),
)


def drawn(rng: random.Random, values: int = 4) -> list[Operation]:
    """A history of one to seven operations; one in three consists of transactions."""
    if rng.random() < 0.33:
        return _transactions(rng)
    return [_drawn(rng, number, values) for number in range(rng.randint(1, 7))]


def _transactions(rng: random.Random) -> list[Operation]:
    """Transactions that send values of their own and read whatever there is."""
    operations: list[Operation] = []
    for number in range(rng.randint(2, 4)):
        sent = [
            {
                "key": rng.choice("pq"),
                "value": 2 * number + n,
                "offset": rng.choice((None, 0, 1, 2, 3)),
            }
            for n in range(rng.randint(1, 2))
        ]
        polled = [
            {"key": rng.choice("pq"), "value": rng.randint(0, 7), "offset": rng.randint(0, 4)}
            for _ in range(rng.randint(0, 3))
        ]
        operations.append(
            {
                "process": rng.choice(("c1", "c2")),
                "type": rng.choice(("ok", "info", "info")),
                "f": "txn",
                "sent": sent,
                "polled": polled,
            }
        )
    return operations


def _drawn(rng: random.Random, number: int, values: int) -> Operation:
    f = rng.choice(("send", "send", "poll", "poll", "poll", "txn", "commit", "fetch", "assign"))
    operation: dict[str, Any] = {
        "process": rng.choice(("c1", "c2", "c3")),
        "type": rng.choice(("ok", "ok", "ok", "fail", "info")),
        "f": f,
    }
    if rng.random() < 0.8:
        operation |= {"start": 10 * number - rng.choice((0, 5, 15)), "time": 10 * number + 4}
    records = [
        {
            "key": rng.choice(("p", "p", "p", "q")),
            "value": rng.choice((None, *range(values * 2))),
            "offset": rng.randint(0, 5),
        }
        for _ in range(rng.randint(1, 3))
    ]
    if f in {"send", "txn"}:
        operation["sent"] = [{**r, "offset": rng.choice((None, r["offset"]))} for r in records]
    if f in {"poll", "txn"}:
        operation["polled"] = [{**r, "offset": rng.randint(0, 5)} for r in records[::-1]]
        operation["polled"] += (
            [] if rng.random() < 0.5 else [{**records[0], "value": rng.randint(0, 5)}]
        )
        if rng.random() < 0.1:
            operation["moved"] = ["p"]
    if f in {"commit", "fetch"}:
        positions = [{"key": r["key"], "offset": r["offset"]} for r in records]
        operation["committed" if f == "commit" else "fetched"] = positions
    if f == "assign":
        operation["assigned"] = rng.sample(("p", "q"), rng.randint(0, 2))
    return operation


def whole(formulas: HistoryFormulas, facts: list[SituationFact]) -> dict[str, Answer]:
    """Each rule's answer on the whole history as one state."""
    # A fetch that failed shows nothing.
    facts = [fact for fact in facts if fact.kind != FETCHED or fact.outcome == OK]
    states = states_of(facts)
    return {rule.name: formulas.answer(rule, states) for rule in RULES}


def merged(answers: Counter[Answer]) -> Answer:
    order = (Answer.BROKEN, Answer.UNDECIDED, Answer.ALLOWED)
    return next((answer for answer in order if answers[answer]), Answer.KEPT)


def agreed(seed: int, configuration: DeclaredConfiguration) -> Iterator[tuple[str, Answer]]:
    """What the judge and brute force say of each rule on a drawn history."""
    operations = drawn(random.Random(seed))
    judgement = judged(operations, configuration)
    expected = whole(formulas_of(configuration), plain_facts(operations))
    for rule in RULES:
        answer = merged(judgement.tallies[rule.name].answers)
        assert answer == expected[rule.name], (seed, rule.name, operations)
        yield rule.name, answer


WINDOWS = (1, 3, windows.WINDOW)
"""Rows that are judged together: a history is judged piece by piece, or whole."""


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=("default", "weak", "unclean"))
def test_the_judge_says_what_the_whole_history_says(
    configuration: DeclaredConfiguration, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[tuple[str, Answer]] = Counter()
    for seed in range(HISTORIES if configuration == CONFIGURATIONS[0] else HISTORIES // 5):
        monkeypatch.setattr(windows, "WINDOW", WINDOWS[seed % len(WINDOWS)])
        seen.update(agreed(seed, configuration))
    if configuration == CONFIGURATIONS[0]:
        broken = {name for name, answer in seen if answer is Answer.BROKEN}
        assert broken == {rule.name for rule in RULES}


def test_who_is_accused_has_no_excuse_in_any_outcome() -> None:
    """Unknown outcomes are taken both ways: in each of them some rule is broken."""
    known, accused = formulas_of(CONFIGURATIONS[0]), 0
    deciding = [rule for rule in RULES if rule.decides]
    for seed in range(HISTORIES):
        facts = [
            replace(fact, renewed=False) for fact in plain_facts(drawn(random.Random(seed), 2))
        ]
        unknown = sorted(
            {_decided_with(f) for f in facts if f.kind == SENT and f.outcome == UNKNOWN}
        )
        if not unknown or len(unknown) > 4:
            continue
        if all(known.answer(rule, states_of(facts)) is not Answer.BROKEN for rule in deciding):
            continue
        accused += 1
        for outcomes in product((OK, FAIL), repeat=len(unknown)):
            resolution = dict(zip(unknown, outcomes, strict=True))
            resolved = [
                replace(f, outcome=resolution[_decided_with(f)])
                if f.kind == SENT and f.outcome == UNKNOWN
                else f
                for f in facts
            ]
            states = states_of(resolved)
            assert any(known.answer(rule, states) is Answer.BROKEN for rule in deciding), seed
    assert accused > 30


def _decided_with(fact: SituationFact) -> tuple[int, int]:
    """A transaction ends as one, other sends each for itself."""
    return (fact.order, -1) if fact.transactional else (fact.order, fact.place)
