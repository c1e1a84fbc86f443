"""Findings as JUnit tests, compiled and run: red on a release that has them, green on one without.

All tests of a release are compiled together and run in one JVM.
"""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.deviations.table import Deviation
from conformance.kafka.jars import KafkaJars, release_of
from conformance.kafka.java import compile_java
from conformance.kafka.maven import maven_jars
from conformance.stages.story import read_story
from conformance.story.behaviour import Behaviour, Step
from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.kafka.junit import LIBRARIES, class_name, junit_test, scene_of
from conformance.tla import Action, Fn, Value, find_tools, make_function
from tests.breadth import mostly_at_night
from tests.kafka_needed import JUNIT_RELEASES, WITHOUT_JUNIT, jars_or_skip

LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
TABLE: Sequence[Deviation] = [
    deviation
    for deviation in KafkaFactory("4.4.0", client="4.4.0").deviations()
    if deviation.id not in WITHOUT_JUNIT
]


def has_test(deviation: Deviation, release: str) -> bool:
    """Whether a test of the finding is written for the classes of this release."""
    story = read_story(KafkaFactory(release).file(deviation.path))
    return scene_of(story.behaviour, story.constants).oldest <= release_of(release)


def run(known: Sequence[Deviation], jars: KafkaJars, folder: Path) -> Mapping[str, str | None]:
    """By finding, why its test fails on the classes of these jars; None: it does not."""
    sources = [written(deviation, jars, folder) for deviation in known]
    failures = run_tests(sources, jars, folder)
    return {deviation.id: failures[class_name(deviation)] for deviation in known}


def run_tests(sources: Sequence[Path], jars: KafkaJars, folder: Path) -> Mapping[str, str | None]:
    """By class, why its test fails on the classes of these jars; None: it does not."""
    libraries = maven_jars("junit", LIBRARIES)
    classes = compile_java(sources, (*jars.classpath, *libraries))
    classpath = os.pathsep.join(map(str, (classes, *jars.classpath, *libraries)))
    java = [str(find_tools().java), "-XX:TieredStopAtLevel=1", "-cp", classpath, LAUNCHER]
    options = ["execute", "--disable-banner", "--scan-classpath", str(classes)]
    reports = folder / "reports"
    command = [*java, *options, "--reports-dir", str(reports)]
    subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    failures: dict[str, str | None] = {}
    for case in ET.parse(reports / "TEST-junit-jupiter.xml").iter("testcase"):
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        name = case.attrib["classname"].rpartition(".")[2]
        failures[name] = None if bad is None else bad.attrib.get("message", "no assertion")
    return failures


def written(deviation: Deviation, jars: KafkaJars, folder: Path) -> Path:
    """The test that the command writes of a saved path."""
    source = folder / f"{class_name(deviation)}.java"
    path = KafkaFactory(jars.version).file(deviation.path)
    command = ["story", str(path), "--junit", "--kafka", jars.version, "-o", str(source)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return source


def behaviour_of(ident: str) -> Behaviour:
    """A finding's saved path."""
    deviation = next(each for each in TABLE if each.id == ident)
    return read_story(KafkaFactory("4.4.0").file(deviation.path)).behaviour


def log_that_agrees() -> Behaviour:
    """A log, step by step; at the end somebody claims to have seen another one."""
    segments = (Fn({"base": 0, "records": (0, 1, 2), "durable": 0}),)
    steps = [
        ("AppendAsLeader", (), 0, 1, 0),
        ("Elect", ("follower",), 1, 1, 0),
        ("AppendAsFollower", (1, True), 1, 2, 0),
        ("LearnLogStart", (1,), 1, 2, 1),
        ("Elect", ("leader",), 2, 2, 1),
        ("AppendAsLeader", (), 2, 3, 1),
        ("DeleteRecords", (2,), 2, 3, 2),
    ]
    variables = ("leaderEpoch", "highWatermark", "logStart", "segments", "recoveryPoint")
    return Behaviour(
        variables,
        (
            Step(None, (0, 0, 0, segments, 0)),
            *(
                Step(Action(name, arguments), (epoch, committed, start, segments, 0))
                for name, arguments, epoch, committed, start in steps
            ),
        ),
        {"highWatermark": 2, "logStart": 1},
        departs=True,
    )


def compacted_log_that_agrees() -> Behaviour:
    """What is left: the last value of each key, the marker, the batch of the last sequence."""
    kinds = enumerate(("Empty", "value", "Committed", "value"), 1)
    kept = tuple(Fn({"offset": offset, "kind": kind}) for offset, kind in kinds)
    actions = [
        Action("AppendRecord", ("value", 1)),
        Action("AppendInTransaction", ("p", 1)),
        Action("AppendRecord", ("value", 1)),
        Action("AppendMarker", ("p", "Committed")),
        Action("AppendRecord", ("value", 2)),
        Action("Roll", ("b1",)),
        Action("AdvanceHighWatermark", (5,)),
        Action("Clean", ("b1",)),
    ]
    state = (make_function({"b1": kept}), make_function({"b1": -1}))
    steps = (Step(None, state), *(Step(action, state) for action in actions))
    observed = {"log": make_function({"b1": kept[1:]})}
    return Behaviour(("log", "lastData"), steps, observed, departs=True)


def move_that_agrees() -> Behaviour:
    """A record comes before a fetch is answered, another before an answer is processed."""
    asked, idle = Fn({"type": "EpochRequest"}), Fn({"type": "None"})
    steps = [
        (None, 0, (0,), False, idle, -1),
        (Action("AlterReplicaLogDirs", ("d2",)), 0, (0,), True, idle, -1),
        (Action("TruncateToHighWatermark"), 0, (0,), True, idle, -1),
        (Action("SendFetch"), 0, (0,), True, asked, -1),
        (Action("AppendAsLeader"), 0, (0, 0), True, asked, -1),
        (Action("HandleFetch"), 0, (0, 0), True, asked, -1),
        (Action("ProcessFetchResponse"), 0, (0, 0), True, idle, -1),
        (Action("BecomeFollower"), 1, (0, 0), True, idle, 1),
        (Action("AddFetcher"), 1, (0, 0), True, idle, -1),
        (Action("SendEpochRequest"), 1, (0, 0), True, asked, -1),
        (Action("HandleEpochRequest"), 1, (0, 0), True, asked, -1),
        (Action("AppendAsFollower", (1,)), 1, (0, 0, 1), True, asked, -1),
        (Action("ProcessEpochResponse"), 1, (0, 0, 1), True, idle, -1),
    ]
    variables = ("directory", "fetchState", "leaderEpoch", "log", "moving", "channel", "unadded")
    states = [
        Step(action, ("d1", "Fetching", epoch, Fn({"current": log}), moving, channel, unadded))
        for action, epoch, log, moving, channel, unadded in steps
    ]
    observed: dict[str, Value] = {
        "directory": "d2",
        "fetchState": "Truncating",
        "log": Fn({"current": (0, 0)}),
    }
    return Behaviour(variables, tuple(states), observed, departs=True)


@pytest.mark.parametrize(
    ("behaviour", "constants"),
    [
        (move_that_agrees(), {}),
        (log_that_agrees(), {"SegmentRecords": "2"}),
        (compacted_log_that_agrees(), {"Replicas": '{"b1"}', "Leader": '"b1"'}),
    ],
)
def test_it_is_green_where_a_log_is_as_the_specification_has_it(
    behaviour: Behaviour, constants: Mapping[str, str], tmp_path: Path
) -> None:
    """These paths have steps that no finding on logs has."""
    jars = jars_or_skip("4.4.0")
    source = tmp_path / f"{class_name(None)}.java"
    source.write_text(junit_test(behaviour, constants, jars), encoding="utf-8")

    assert run_tests([source], jars, tmp_path) == {class_name(None): None}


def commit_answered_before_close() -> Behaviour:
    """Close waits for its own commit, and calls back for the one that was answered before."""
    path = behaviour_of("KAFKA-16599")
    *steps, overrun, close, last = path.steps
    answered = Action("AnswerCommit", ("NONE",))
    ended = (replace(overrun, action=answered), close, replace(last, action=answered))
    return replace(path, steps=(*steps, *ended))


def test_it_is_green_where_a_consumer_is_as_the_specification_has_it(tmp_path: Path) -> None:
    """No release is free of these, but where the path is a little different, Kafka does well."""
    cases: Mapping[str, tuple[Behaviour, Mapping[str, str]]] = {
        "KAFKA-16599": (commit_answered_before_close(), {"AutoCommit": "TRUE"}),
        "full-poll-keeps-fetch": (
            behaviour_of("full-poll-keeps-fetch"),
            {"MaxPoll": "2", "MaxFetch": "1"},
        ),
        "owned-partition-unknown": (
            behaviour_of("owned-partition-unknown"),
            {"Cooperative": "FALSE", "Others": '{"c"}'},
        ),
    }

    assert red_of(cases, tmp_path) == {}


def red_of(
    cases: Mapping[str, tuple[Behaviour, Mapping[str, str]]], folder: Path
) -> Mapping[str, str]:
    """By class of a test that is red on 4.4.0, why; the paths by the finding that they are near."""
    jars = jars_or_skip("4.4.0")
    sources = []
    for ident, (behaviour, constants) in cases.items():
        deviation = next(each for each in TABLE if each.id == ident)
        sources.append(folder / f"{class_name(deviation)}.java")
        source = junit_test(behaviour, constants, jars, deviation)
        sources[-1].write_text(source, encoding="utf-8")

    failures = run_tests(sources, jars, folder)
    assert set(failures) == {source.stem for source in sources}
    return {name: why for name, why in failures.items() if why is not None}


def near(ident: str, without: Sequence[int], **ends: Value) -> tuple[Behaviour, Mapping[str, str]]:
    """A finding's path without the steps of these numbers, and its constants.

    `ends`: variables of its last state that are others then.
    """
    path = behaviour_of(ident)
    dropped = {number % len(path.steps) for number in without}
    *steps, last = (step for number, step in enumerate(path.steps) if number not in dropped)
    state = {**dict(zip(path.variables, last.state, strict=True)), **ends}
    ended = replace(last, state=tuple(state[name] for name in path.variables))
    deviation = next(each for each in TABLE if each.id == ident)
    constants = read_story(KafkaFactory("4.4.0").file(deviation.path)).constants
    return replace(path, steps=(*steps, ended)), constants


def test_it_is_green_near_the_paths_of_findings_that_no_release_is_free_of(tmp_path: Path) -> None:
    """No call-back comes late; nothing is asked or answered after a registration; at a start the
    metadata name the current log's directory; no producer is forgotten."""
    cases = {
        "forgotten-open-transaction": near("forgotten-open-transaction", [3]),
        "late-tombstone": near("late-tombstone", [-1]),
        "answer-to-an-earlier-move": near("answer-to-an-earlier-move", [-1]),
        "registered-move-forgets": near("registered-move-forgets", [6, 7, -2]),
        "shorter-log-promoted-at-start": near("shorter-log-promoted-at-start", [-2], assigned="d1"),
    }

    assert red_of(cases, tmp_path) == {}


@pytest.mark.parametrize(
    "release", mostly_at_night(JUNIT_RELEASES, each_time={"4.1.0", "4.4.0"}.__contains__)
)
def test_it_is_red_where_the_finding_is_and_nowhere_else(release: str, tmp_path: Path) -> None:
    listed = [each for each in TABLE if release in (*each.seen, *each.gone)]
    known = [each for each in listed if has_test(each, release)]

    failures = run(known, jars_or_skip(release), tmp_path)

    red = {ident for ident, why in failures.items() if why is not None}
    assert red == {each.id for each in known if release in each.seen}
    assert all(" ==> expected: " in why for why in failures.values() if why is not None), failures


def test_each_finding_is_red_on_one_of_the_releases() -> None:
    """But for what only releases before 4.0 have, for which only tests of logs are written, and
    what one patch release alone has."""
    others = [
        each.id
        for each in TABLE
        if not any(release in each.seen and has_test(each, release) for release in JUNIT_RELEASES)
    ]
    assert others == [
        *("KAFKA-18660", "KAFKA-18019"),
        *("KAFKA-20034", "read-without-epoch-answered"),
    ]
