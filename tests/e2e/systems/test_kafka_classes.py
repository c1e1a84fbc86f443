"""Kafka's own classes under the suites: agreement, known deviations, and what goes wrong."""

from __future__ import annotations

import shlex
from itertools import product
from pathlib import Path

import msgspec
import pytest

from conformance.deviations.table import Deviation
from conformance.errors import DataError, UserError
from conformance.modelcheck.prepare import prepare
from conformance.replay.interruptions import interrupt_steps
from conformance.replay.saved import load
from conformance.stages.context import Context, one_model, with_constants, workbench
from conformance.stages.deviations import deviations
from conformance.stages.overridden import with_deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.external import ProcessTransport
from conformance.systems.kafka import KafkaFactory
from conformance.systems.kafka.bridge import bridge_command
from conformance.tla import find_tools
from conformance.verdict import Verdict
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc


@pytest.mark.parametrize(
    ("version", "model"),
    [
        *product(
            VERSIONS,
            [
                "replication/bench/truncate-on-fetch-fine-2b",
                "replication/bench/truncate-on-fetch-unclean-coarse-2b",
                "replication/truncate-on-fetch-crash-fine-2b",
                "replication/truncate-on-fetch-interrupted-fetch-fine-2b",
                "replication/truncate-on-fetch-two-step-isr-coarse-2b",
                "storage/anew",
                "storage/log-start",
                "storage/recovery",
                "storage/refusals",
                "storage/retention",
                "storage/stops",
                "storage/truncation",
                "storage/truncation-kills",
                "storage/watermark-file",
            ],
        ),
        ("3.8.1", "replication/bench/kip320-fine-2b"),
    ],
)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, version: str, model: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(model), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=25, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 25


HERE = {
    *("LogCompaction", "LogStorage", "Replication", "ShareCoordinator", "SharePartition"),
    "Transactions",
}
"""The other specifications' rows are asked where their systems have their tests."""


@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_of_deviations_is_what_the_classes_do(context: Context, version: str) -> None:
    jars_or_skip(version)

    shown = {one.deviation.id: one for one in deviations(context, f"kafka-{version}", HERE)}

    assert all(one.as_expected for one in shown.values())
    assert shown["re-elected-leader"].presence is Presence.SEEN
    assert shown["re-elected-leader"].consequence == "StrongIsr"
    fixed = shown["KAFKA-18991"].presence is Presence.GONE
    assert fixed is (version == "4.4.0")
    fenced = shown["fenced-in-an-old-epoch"].presence
    assert fenced is (Presence.UNREACHABLE if fixed else Presence.SEEN)
    assert shown["fetch-counted-in-a-later-epoch"].presence is Presence.SEEN
    assert shown["fetch-counted-in-a-later-epoch"].consequence == "StrongIsr"


OF_ANY_MODEL = (
    *("CoordinatorGroups", "CoordinatorStore", "CoordinatorTransactions"),
    *("DirectoryAssignment", "DirectoryMove"),
    *("LogStorage", "MixedGroup"),
    *("ShareCoordinator", "SharePartition"),
    *("TransactionManager", "TransactionalLog", "Transactions"),
)
"""Of these a deviation names the formulas that it breaks in any of its models."""


@pytest.mark.parametrize(
    "deviation",
    [one for one in KafkaFactory("3.8.1").deviations() if one.breaks],
    ids=lambda d: d.id,
)
def test_what_is_false_along_a_saved_path_is_what_the_table_says_breaks(
    context: Context, deviation: Deviation
) -> None:
    factory = KafkaFactory("3.8.1")
    saved = load(factory.file(deviation.consequence or deviation.path))
    # A path names companions of all releases; one release has not all of them at once.
    release = saved.system.partition("-")[2].partition("+")[0]
    ids = {deviation.id} | {
        one.id
        for one in factory.deviations()
        if one.id in saved.deviations and one.stands_for(release)
    }
    known = [msgspec.structs.replace(one, breaks=()) for one in factory.deviations()]
    plain = with_constants(one_model(saved.model), saved.constants)
    judged = with_deviations(plain, [one for one in known if one.id in ids])
    spec = prepare(judged, find_tools(), context.check.parser).spec
    states, false = [saved.initial], set()
    for action in saved.actions:
        steps = [
            (before, after)
            for before in states
            for taken, after in spec.successors(before)
            if taken == action
        ]
        if not steps and deviation.specification in ("ConsumerGroup", "Transactions"):
            break  # a request that is refused on one side only is another step with the deviation
        assert steps, action
        false |= {
            name
            for name in judged.check.invariants
            if not all(spec.state_formula(name)(after) for _, after in steps)
        }
        false |= {
            name
            for name in judged.check.properties
            if not all(spec.action_formula(name)(before, after) for before, after in steps)
        }
        states = list(dict.fromkeys(after for _, after in steps))

    of_companions = {name for one in factory.deviations() if one.id in ids for name in one.breaks}
    assert false <= of_companions
    assert deviation.violated in {*false, ""}
    assert {*deviation.breaks} <= false or not steps or deviation.specification in OF_ANY_MODEL


@pytest.mark.parametrize("version", VERSIONS)
def test_an_interrupted_fetch_shows_nothing_that_is_not_known(
    context: Context, version: str
) -> None:
    jars_or_skip(version)
    model = one_model("replication/bench/truncate-on-fetch-fine-2b")
    bench = workbench(context, model, f"kafka-{version}")

    result = interrupt_steps(bench.graph, bench.make_system, samples=4, seed=3)

    assert result.verdict is Verdict.PASS
    assert {*result.interruptions} == {
        f"HandleFetch_interrupted_by_{other}"
        for other in ("AppendAsLeader", "BecomeFollower", "BecomeLeader")
    }


def test_without_the_overrides_a_known_deviation_fails(context: Context) -> None:
    jars_or_skip("4.4.0")
    strict = Context(check=context.check, strict=True)
    model = one_model("replication/bench/truncate-on-fetch-unclean-coarse-2b")
    bench = workbench(strict, model, "kafka-4.4.0")
    suite = make_suite(strict, "cover", bench.graph, bench.prepared)

    result = replay(strict, bench, suite)

    assert result.verdict is Verdict.FAIL
    assert result.divergences[0].action is not None
    assert result.divergences[0].action.name == "BecomeLeader"


def test_a_folder_without_kafka_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(tmp_path))

    with pytest.raises(UserError, match="holds no Kafka"):
        KafkaFactory("").version  # noqa: B018


def test_a_corrupt_jar_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka-clients-3.8.1.jar").write_text("no jar", encoding="utf-8")
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(tmp_path))

    with pytest.raises(DataError, match="is damaged"):
        KafkaFactory("").version  # noqa: B018


def test_a_bridge_whose_caller_was_killed_leaves_no_folder(tmp_path: Path) -> None:
    """Its input ends, and nobody is left to remove the folder, which may be in memory."""
    folder = tmp_path / "disks"
    (folder / "broker").mkdir(parents=True)
    command = bridge_command(jars_or_skip(VERSIONS[0]))
    bridge = ProcessTransport(shlex.join([*shlex.split(command), str(folder)]))

    bridge.hang_up()

    assert bridge.ends_within(60)
    bridge.close()
    assert not folder.exists()
