"""Findings as JUnit tests: which of the table's paths can be said, and how each reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.kafka.jars import KafkaJars
from conformance.stages.story import StoryFile, junit_of, read_story
from conformance.systems.kafka import junit
from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.kafka.junit.replica import ReplicaScene
from conformance.systems.kafka.junit.runtime import RuntimeScene

TABLE: Mapping[str, Deviation] = {item.id: item for item in KafkaFactory("4.4.0").deviations()}

GROUPS = "no test is written for groups yet"
TRANSACTIONS = "no test is written for transactions yet"
UNSAYABLE = {
    "KAFKA-19274": "the epoch of a resignation is the publisher's, whom the test does not have",
    "KAFKA-20115": "a batch that stays open is seen by nobody outside of the runtime",
    "created-group-stored": GROUPS,
    "initial-delay-cut-short": GROUPS,
    "initial-delay-prolonged-again": GROUPS,
    "replaced-member-not-new": GROUPS,
    **{ident: GROUPS for ident, item in TABLE.items() if item.specification == "ConsumerGroup"},
    **{
        ident: TRANSACTIONS for ident, item in TABLE.items() if item.specification == "Transactions"
    },
}


def story_of(deviation: Deviation) -> StoryFile:
    return read_story(KafkaFactory("4.4.0").file(deviation.path))


def lines_of(deviation: Deviation) -> list[str]:
    """The statements and comments of the test's method."""
    story = story_of(deviation)
    scene: ReplicaScene | RuntimeScene
    if deviation.specification == "Replication":
        scene = ReplicaScene.of(story.behaviour)
    else:
        scene = RuntimeScene.of(story.behaviour, story.constants)
    return [line.strip() for line in scene.test().splitlines() if line.strip()]


@pytest.mark.parametrize("ident", sorted({*TABLE} - {*UNSAYABLE}))
def test_a_finding_has_given_when_and_then_with_an_assertion(ident: str) -> None:
    lines = lines_of(TABLE[ident])

    given, when, then = (lines.index(f"// {word}") for word in ("given", "when", "then"))
    assert given < when < then
    assert lines[then + 1].startswith("assert")


@pytest.mark.parametrize("ident", sorted(UNSAYABLE))
def test_a_finding_that_cannot_be_said_is_refused_with_a_reason(ident: str) -> None:
    deviation = TABLE[ident]
    jars = KafkaJars("4.4.0", ())

    with pytest.raises(UserError, match="No JUnit test can be written of this file: "):
        junit_of(Path(deviation.path), story_of(deviation), jars)


def test_the_re_elected_leader_reads_as_its_story() -> None:
    assert lines_of(TABLE["re-elected-leader"]) == [
        "// given",
        "becomeLeader(1, 1, 2, 3);",
        "// The controller elects broker 2 in leader epoch 2.",
        "// The controller fences broker 2; broker 1 is elected in leader epoch 3.",
        "// Broker 2 hears that it leads in epoch 2.",
        "append();",
        "handleFetchOf(3, 0, 1, Optional.empty());",
        "handleFetchOf(3, 1, 1, Optional.of(1));",
        "// when",
        "becomeLeader(3, 1, 3);",
        "// then",
        'assertEquals(0, highWatermark(), "high watermark");',
        'assertEquals(-1, logEndOffsetOf(3), "what is known of broker 3\'s log end");',
    ]


def test_what_happens_before_an_answer_is_within_the_answer() -> None:
    lines = lines_of(TABLE["KAFKA-18991"])

    asked, worked = lines.index("answers.add(() -> {"), lines.index("work();")
    assert asked < lines.index("becomeFollower(3, 1);") < worked
    assert lines.index("// when") < asked


def test_a_counterexample_of_a_model_is_no_finding_on_classes() -> None:
    path = KafkaFactory("4.4.0").file(TABLE["re-elected-leader"].consequence)

    with pytest.raises(UserError, match="does not end where an implementation departs"):
        junit_of(path, read_story(path), KafkaJars("4.4.0", ()))


def test_a_release_that_is_too_old_is_refused() -> None:
    deviation = TABLE["re-elected-leader"]

    with pytest.raises(UserError, match=r"4\.0\.0 and later, not for 3\.9\.1"):
        junit.junit_test(story_of(deviation).behaviour, {}, KafkaJars("3.9.1", ()), deviation)
