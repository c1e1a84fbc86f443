"""Logs of brokers that ran (`experiments/real_logs.py`), as they are and with planted faults.

experiments/planted_logs.py does the same to a hundred logs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.load.judgement import LoadAnswer
from conformance.load.topics import TOPICS, StateTopic
from conformance.modelcheck.specifications import Specifications
from experiments.planted_logs import DAMAGES, PLANTED, Planter, loadable
from experiments.real_logs import is_cleaned, judged
from tests.e2e.load.conftest import NEWEST
from tests.e2e.load.test_planted import RELEASES
from tests.e2e.load.written import LogWriter

REAL = Path(__file__).parent / "real"
KAFKA_19862 = REAL / "4.0.0-4.1.1-4.2.1" / "2-4.1.1" / "__consumer_offsets-8"
UNITS = {"__consumer_offsets": 4, "__transaction_state": 3, "__share_group_state": 3}
"""How many the logs hold: a classic, a consumer, a mixed group and a simple consumer."""


@pytest.fixture
def planter(writer: LogWriter) -> Planter:
    return Planter(writer)


def real_log(topic: StateTopic) -> Path:
    """The one in which nothing is to be found."""
    return loadable(REAL, topic, NEWEST)[0]


@pytest.mark.parametrize("topic", TOPICS.values(), ids=list(TOPICS))
def test_a_real_log_loads(topic: StateTopic, specifications: Specifications) -> None:
    result = judged(real_log(topic), NEWEST, REAL, specifications)

    assert result.answers == {str(LoadAnswer.LOADS): UNITS[topic.name]}
    assert not result.findings
    assert not result.disagreements
    assert result.compared


@pytest.mark.parametrize(
    ("release", "answers"),
    [
        ("4.1.1", {LoadAnswer.LOADS: 1, LoadAnswer.FAILS_COMPACTED: 1}),
        ("4.1.2", {LoadAnswer.LOADS: 2}),
    ],
)
def test_a_broker_of_4_1_1_wrote_what_it_may_not_load(
    release: str, answers: Mapping[LoadAnswer, int], specifications: Specifications
) -> None:
    result = judged(KAFKA_19862, release, REAL, specifications)

    assert result.answers == {str(answer): count for answer, count in answers.items()}
    assert not result.disagreements


def test_the_cleaner_had_been_over_one_of_them() -> None:
    assert any(is_cleaned(real_log(topic)) for topic in TOPICS.values())


@pytest.mark.parametrize("topic", TOPICS.values(), ids=list(TOPICS))
def test_what_is_planted_behind_it_gets_its_answer(topic: StateTopic, planter: Planter) -> None:
    wrong = []
    for name, kind in PLANTED[topic].items():
        log = kind.make(random.Random(name))
        expected = kind.expected[RELEASES.index(NEWEST)]
        wrong += [f"{name}: {t}" for t in planter.behind(real_log(topic), NEWEST, log, expected)]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("topic", TOPICS.values(), ids=list(TOPICS))
@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damage_is_named(kind: str, topic: StateTopic, planter: Planter) -> None:
    assert not planter.damaged(real_log(topic), kind, random.Random(kind))
