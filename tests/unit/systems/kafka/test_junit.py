"""Findings as JUnit tests: which of the table's paths can be said, and how each reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.kafka.jars import KafkaJars
from conformance.stages.story import StoryFile, junit_of, read_story
from conformance.story.behaviour import Step
from conformance.systems.kafka import junit
from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.kafka.junit import scene_of
from conformance.tla import Action, Value, make_function
from tests.kafka_needed import WITHOUT_JUNIT

FACTORY = KafkaFactory("4.4.0", client="4.4.0")
ALL: Mapping[str, Deviation] = {item.id: item for item in FACTORY.deviations()}
TABLE = {ident: item for ident, item in ALL.items() if ident not in WITHOUT_JUNIT}


def story_of(deviation: Deviation) -> StoryFile:
    return read_story(FACTORY.file(deviation.path))


def lines_of(deviation: Deviation) -> list[str]:
    """The statements and comments of the test's method."""
    story = story_of(deviation)
    test = scene_of(story.behaviour, story.constants).test()
    return [line.strip() for line in test.splitlines() if line.strip()]


@pytest.mark.parametrize("ident", sorted(TABLE))
def test_a_finding_has_given_when_and_then_with_an_assertion(ident: str) -> None:
    lines = lines_of(TABLE[ident])

    given, when, then = (lines.index(f"// {word}") for word in ("given", "when", "then"))
    assert given < when < then
    assert lines[then + 1].startswith("assert")


@pytest.mark.parametrize("ident", sorted(WITHOUT_JUNIT))
def test_what_no_test_can_be_written_of_is_refused_with_a_reason(ident: str) -> None:
    with pytest.raises(UserError, match="no protocol that tests are written for"):
        lines_of(ALL[ident])


@pytest.mark.parametrize("ident", sorted(TABLE))
def test_a_step_that_a_test_has_no_words_for_is_refused_with_a_reason(ident: str) -> None:
    story = story_of(TABLE[ident])
    first, *following = story.behaviour.steps
    last = following[-1].action
    assert last is not None
    unknown = Step(Action("EatTheCake", last.args[:1] or ("b1",)), first.state)
    behaviour = replace(story.behaviour, steps=(first, unknown, *following))

    with pytest.raises(
        UserError, match=r"No such test or script can be written of this file: .*EatTheCake"
    ):
        scene_of(behaviour, story.constants).test()


@pytest.mark.parametrize("ident", sorted(TABLE))
def test_a_variable_that_a_test_cannot_see_is_refused(ident: str) -> None:
    story = story_of(TABLE[ident])
    steps = [Step(each.action, (*each.state, "expected")) for each in story.behaviour.steps]
    variables = (*story.behaviour.variables, "unseenVariable")
    observed = {**dict(zip(variables, steps[-1].state, strict=True)), "unseenVariable": "seen"}
    known = {name: value for name, value in observed.items() if value is not None}
    behaviour = replace(story.behaviour, variables=variables, steps=tuple(steps), observed=known)

    with pytest.raises(UserError, match="No such test or script can be written of this file: "):
        scene_of(behaviour, story.constants).test()


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


def test_time_passes_and_regular_expressions_are_resolved_when_the_test_says_so() -> None:
    assert lines_of(TABLE["KAFKA-18961"]) == [
        "// given",
        'heartbeatMatching("[ab]", "m1", 0, Set.of());',
        "resolveRegularExpressions();",
        "writeResolution();",
        "pass(10_001); // REGEX_BATCH_REFRESH_MIN_INTERVAL_MS",
        "pass(600_001); // group.consumer.regex.refresh.interval.ms",
        "// when",
        'target = Map.of("m1", Set.of(0, 1));',
        'heartbeat("m1", firstEpoch);',
        "// then",
        'assertTrue(isResolving(), "the regular expressions are about to be resolved");',
    ]


def test_tasks_of_a_log_run_when_the_test_says_so() -> None:
    assert lines_of(TABLE["flush-after-truncation"]) == [
        "// given",
        'UnifiedLog log = newLog("broker");',
        "becomeLeader(log, 0);",
        "// Another broker is elected in leader epoch 1.",
        "appendAsFollower(log, 0);",
        "appendAsFollower(log, 0);",
        "log.truncateTo(0);",
        "// when",
        'runTask("flush-log");',
        "// then",
        "assertEquals(0, log.recoveryPoint(), "
        '"recovery point of a log that is flushed up to offset 0");',
    ]


def test_each_replica_of_a_compacted_partition_has_a_log_and_is_cleaned_by_itself() -> None:
    assert lines_of(TABLE["KAFKA-17076"]) == [
        "// given",
        'UnifiedLog b1 = newLog("b1");',
        'UnifiedLog b2 = newLog("b2");',
        'append(b1, "key 1", null);',
        "roll(b1);",
        "b1.updateHighWatermark(1);",
        "clean(b1);",
        "fetch(b2, b1);",
        "roll(b2);",
        "passDay();",
        "// when",
        "clean(b2);",
        "// then",
        'assertEquals(List.of("0: empty"), batches(b2), "batches in the log of b2");',
    ]


def test_a_tombstone_is_answered_when_the_test_says_so() -> None:
    assert lines_of(TABLE["late-tombstone"]) == [
        "// given",
        "initProducerId();",
        "acknowledgeAppend();",
        "expireIds();",
        "leadAgain(2);",
        "initProducerId();",
        "// when",
        "acknowledgeLateAppend();",
        "// then",
        'assertEquals(Optional.of("Empty"), pendingState(), "pending state");',
    ]


def test_the_controller_of_a_move_is_asked_and_answers_when_the_test_says_so() -> None:
    assert lines_of(TABLE["registered-move-forgets"]) == [
        "// given",
        "becomeLeader(0);",
        "append();",
        'move("d2");',
        "work();",
        "ask(() -> {}, () -> {});",
        "ask(() -> {}, () -> {",
        "sendAssignment();",
        "// The controller writes that the replica lies in d2.",
        "answerAssignment();",
        'applyAssignment("d2");',
        "becomeLeader(1);",
        "});",
        "// when",
        "addFetcher(1);",
        "// then",
        'assertFalse(failed.contains(PARTITION), "whether it has failed");',
        'assertEquals("d1", queued(), "directory that the controller is to be told");',
    ]


def test_a_fetch_that_is_not_processed_is_not_in_the_test() -> None:
    lines = lines_of(TABLE["answer-to-an-earlier-move"])

    assert [line for line in lines if line.startswith("ask(")] == ["ask(() -> {}, () -> {});"]


@pytest.mark.parametrize(
    ("ident", "action", "state", "reason"),
    [
        ("late-tombstone", Action("CallBackLate", ("c1", 0)), {}, "comes several terms late"),
        (
            "shorter-log-promoted-at-start",
            Action("RestartInKRaft", ("follower", True)),
            {},
            r"no words for the step Restart\(",
        ),
        (
            "answer-to-an-earlier-move",
            Action("LearnAssignment"),
            {"moving": False},
            "its thread ends, and is called back later",
        ),
        (
            "answer-to-an-earlier-move",
            Action("HandleFetchInKRaft"),
            {},
            "ends while the thread of the move waits for an answer",
        ),
    ],
)
def test_a_path_that_ends_otherwise_is_refused(
    ident: str, action: Action, state: Mapping[str, Value], reason: str
) -> None:
    """`state`: variables of the last two states that are others then."""
    story = story_of(TABLE[ident])
    variables = story.behaviour.variables
    *steps, before, last = story.behaviour.steps

    def changed(step: Step) -> Step:
        values = {**dict(zip(variables, step.state, strict=True)), **state}
        return replace(step, state=tuple(values[name] for name in variables))

    ended = replace(changed(last), action=action)
    behaviour = replace(story.behaviour, steps=(*steps, changed(before), ended))

    with pytest.raises(UserError, match=reason):
        scene_of(behaviour, story.constants).test()


def test_epochs_of_the_producer_id_after_a_tombstone_are_refused() -> None:
    story = story_of(TABLE["late-tombstone"])
    steps = [
        replace(step, action=Action("AddPartitionOfClient", ("c1", "b", "p")))
        if step.action == Action("CallBackLate", ("c1", 1))
        else step
        for step in story.behaviour.steps
    ]
    clients = story.behaviour.variables.index("clients")
    told = make_function({"b": make_function({"epoch": 3})})
    state = steps[-2].state
    given = replace(steps[-2], state=(*state[:clients], told, *state[clients + 1 :]))
    behaviour = replace(story.behaviour, steps=(*steps[:-2], given, steps[-1]))

    with pytest.raises(UserError, match="a producer id that is given after a tombstone"):
        scene_of(behaviour, story.constants).test()


def test_a_release_without_an_assignment_interval_is_refused() -> None:
    deviation = TABLE["interval-outlasts-members"]
    story = story_of(deviation)

    with pytest.raises(UserError, match=r"4\.3\.0 and later, not for 4\.1\.0"):
        junit.junit_test(story.behaviour, story.constants, KafkaJars("4.1.0", ()), deviation)


def test_what_happens_before_an_answer_is_within_the_answer() -> None:
    lines = lines_of(TABLE["KAFKA-18991"])

    asked, worked = lines.index("answers.add(() -> {"), lines.index("work();")
    assert asked < lines.index("becomeFollower(3, 1);") < worked
    assert lines.index("// when") < asked


def test_a_counterexample_of_a_model_is_no_finding_on_classes() -> None:
    path = FACTORY.file(TABLE["re-elected-leader"].consequence)

    with pytest.raises(UserError, match="does not end where an implementation departs"):
        junit_of(path, read_story(path), KafkaJars("4.4.0", ()))


def test_a_release_that_is_too_old_is_refused() -> None:
    deviation = TABLE["re-elected-leader"]

    with pytest.raises(UserError, match=r"4\.0\.0 and later, not for 3\.9\.1"):
        junit.junit_test(story_of(deviation).behaviour, {}, KafkaJars("3.9.1", ()), deviation)


def test_a_divergence_of_idempotent_produce_is_of_no_protocol_that_tests_are_written_for() -> None:
    story = story_of(TABLE["re-elected-leader"])
    behaviour = replace(
        story.behaviour,
        variables=tuple(f"other{name}" for name in story.behaviour.variables),
    )

    with pytest.raises(UserError, match="it is of no protocol that tests are written for"):
        scene_of(behaviour, story.constants)


def test_epochs_of_a_group_are_counted_from_its_first_but_where_that_is_the_finding() -> None:
    words = '"member epoch of m3"'
    assert f'assertEquals(firstEpoch + 1, describe("m3").memberEpoch(), {words});' in lines_of(
        TABLE["epoch-kept-after-revocation"]
    )
    assert 'assertEquals(1, describe().groupEpoch(), "group epoch");' in lines_of(
        TABLE["first-epoch-two"]
    )


def test_a_log_that_does_not_load_reads_as_its_story() -> None:
    assert lines_of(TABLE["KAFKA-19862"]) == [
        "// given",
        "// The broker leads the partition, and has loaded an empty log.",
        'heartbeat("m2", 0, Set.of());',
        'heartbeat("m1", 0, Set.of());',
        'heartbeat("m2", -1);',
        'thrownAfterwards(() -> heartbeat("m1", 0, Set.of()));',
        'heartbeat("m2", 0, Set.of());',
        "// when",
        "String failure = load();",
        "// then",
        'assertNull(failure, "why the log cannot be loaded");',
        'assertEquals(firstEpoch + 3, describe().groupEpoch(), "group epoch");',
        "assertEquals(firstEpoch + 3, describe().assignmentEpoch(), "
        '"epoch of the target assignment");',
    ]


@pytest.mark.parametrize(
    ("ident", "steps", "reason"),
    [
        ("KAFKA-19862", {7: None}, "an append of several writes throws in it"),
        ("KAFKA-19862", {9: Action("FlushBatch", ("b1", "refused"))}, "an append is refused in it"),
        ("KAFKA-19862", {11: None}, "the log lacks a write when it is loaded"),
        ("KAFKA-19862", {12: None}, r"it ends with the step FlushBatch\("),
        ("first-epoch-one", {4: Action("Write", ("b1", ("commit", "m1"), "appended"))}, "no words"),
        ("first-epoch-one", {4: Action("Write", ("b1", ("join", "m1"), "thrown"))}, "no words"),
        ("first-epoch-one", {1: Action("Elect", ("b2",))}, "no words"),
    ],
)
def test_a_group_in_the_runtime_is_refused_if_the_shard_alone_cannot_follow(
    ident: str, steps: Mapping[int, Action | None], reason: str
) -> None:
    """Steps are left out, or are others."""
    story = story_of(TABLE[ident])
    changed = [
        replace(step, action=action)
        for number, step in enumerate(story.behaviour.steps)
        if (action := steps.get(number, step.action)) is not None or number == 0
    ]

    with pytest.raises(UserError, match=reason):
        scene_of(replace(story.behaviour, steps=tuple(changed)), story.constants).test()


def test_what_a_waiting_call_is_answered_stands_within_the_call() -> None:
    assert lines_of(TABLE["KAFKA-16599"]) == [
        "// given",
        "poll();",
        'answerJoin(Errors.NONE, 1, "member", "another");',
        "answerSync(Errors.NONE, 0);",
        "seek(0);",
        "commitAsync(0);",
        "coordinator.handlePollTimeoutExpiry(); // max.poll.interval.ms is over",
        "// when",
        "close(() -> {",
        "answerCommit(Errors.ILLEGAL_GENERATION);",
        "});",
        "// then",
        'assertEquals(1, callbacks, "calls of OffsetCommitCallback");',
    ]


def test_a_path_whose_last_call_still_waits_is_refused() -> None:
    story = story_of(TABLE["KAFKA-16599"])
    behaviour = replace(story.behaviour, steps=story.behaviour.steps[:-1])

    with pytest.raises(UserError, match="it ends while a call waits for the network"):
        scene_of(behaviour, story.constants)


def test_partitions_of_positions_are_counted_from_zero_as_kafka_does() -> None:
    assert lines_of(TABLE["full-poll-keeps-fetch"]) == [
        "// given",
        "consumer.assign(partitions(0));",
        "consumer.seekToBeginning(partitions(0));",
        "poll();",
        "answerListOffsets(0, 0);",
        "poll();",
        "answerFetch(0, 0, 1);",
        "// when",
        "poll();",
        "// then",
        'assertEquals(Map.of(0, 1L), fetching(), "by partition, the offset that is fetched");',
    ]


def test_a_leader_that_is_elected_is_refused() -> None:
    story = story_of(TABLE["full-poll-keeps-fetch"])
    at = story.behaviour.variables.index("leaderEpoch")
    steps = [
        replace(each, state=(*each.state[:at], (2,), *each.state[at + 1 :]))
        for each in story.behaviour.steps
    ]
    behaviour = replace(story.behaviour, steps=tuple(steps))

    with pytest.raises(UserError, match="no words for a leader that is elected"):
        scene_of(behaviour, story.constants).test()


def test_metadata_comes_when_the_path_says_so() -> None:
    assert lines_of(TABLE["owned-partition-unknown"]) == [
        "// given",
        "poll();",
        "// The cluster adds a partition to topic a.",
        'updateMetadata(Map.of("a", 1, "c", 1));',
        "// The cluster adds a partition to topic a.",
        'answerJoin(Errors.NONE, 1, "member", "another");',
        "answerSync(Errors.NONE, 0, 1);",
        "coordinator.sendHeartbeatRequest();",
        "answerHeartbeat(Errors.REBALANCE_IN_PROGRESS);",
        "poll();",
        "// when",
        'answerJoinOfLeader(2, "c");',
        "// then",
        "assertEquals(Set.of(0), assignsItself(), "
        '"partitions of a that the leader assigns to itself");',
    ]


def test_members_of_several_topics_are_refused() -> None:
    story = story_of(TABLE["owned-partition-unknown"])
    at = story.behaviour.variables.index("subscription")
    *steps, last = story.behaviour.steps
    both = replace(last, state=(*last.state[:at], frozenset({"a", "c"}), *last.state[at + 1 :]))
    behaviour = replace(story.behaviour, steps=(*steps, both))

    with pytest.raises(UserError, match="only for a member that subscribes to one topic"):
        scene_of(behaviour, story.constants)
