"""Builds of Kafka with a plain fault each: what the recommended command drives finds them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.config import DEFAULT_TIERS
from conformance.deviations.declared import declare
from conformance.events import Emit, Event, StageFinished, ignore
from conformance.gate import plan
from conformance.kafka.agent import BYTE_BUDDY
from conformance.kafka.jars import KafkaJars
from conformance.kafka.java import compile_java
from conformance.kafka.maven import maven_jars
from conformance.replay.suite import ReplayResult
from conformance.stages.budget import within_budget
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.replay import replay
from conformance.suites.postman import transition_cover
from conformance.systems.external import CHANNELS
from conformance.systems.kafka.factory import KafkaFactory
from conformance.tla import find_tools
from conformance.verdict import Verdict
from tests.breadth import every
from tests.e2e.kafka.test_junit import run
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

VERSION = "4.4.0"
MINUTES = 25.0
"""What README and docs/kafka.md recommend."""

UNCLEAN = "replication/bench/truncate-on-fetch-unclean-coarse-2b"
FINE = "replication/bench/truncate-on-fetch-fine-2b"

FAULTS = {
    "epoch-asked-for": UNCLEAN,
    "epochs-kept": FINE,
    "truncates-one-late": FINE,
    "high-watermark-not-taken": FINE,
    "old-heartbeat": "group/dynamic-2m",
    "old-commit": "group/dynamic-2m",
    "old-sync": "group/static-absent-2m",
    "joined-early": "group/protocols-2m",
}
"""Faults of plant/Plant.java, each with a suite that finds it in the recommended time."""

OF_THE_CONSUMER = {
    "hands-out-behind-commit": "positions/commits-group",
    "never-validates": "positions/validation",
    "ignores-metadata": "positions/topics",
}
"""Those of the Java client's classic consumer."""

OF_THE_DISK = {
    "flushes-nothing": "storage/recovery",
    "kept-behind-torn": "storage/recovery",
    "mark-survives-load": "storage/stops",
    "any-replica-joins": "reassignment/shutdown-2b",
    "move-not-marked": "directories/elections",
    "owner-stays": "runtime/groups-2b",
}
"""The others."""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The jars of a release with all faults in them, asleep; a JVM wakes the one that is named."""
    jars = jars_or_skip(VERSION)
    library = maven_jars("byte-buddy", [BYTE_BUDDY])
    source = Path(__file__).parent / "plant" / "Plant.java"
    classes = compile_java([source], [*jars.classpath, *library])
    folder = tmp_path_factory.mktemp("libs")
    for jar in jars.classpath:
        shutil.copy(jar, folder)
    planted = [
        folder / jars.jar(name).name
        for name in ("kafka-storage", "kafka-group-coordinator", "kafka_2.13", "kafka-clients")
    ]
    path = os.pathsep.join(map(str, [classes, *library, *jars.classpath]))
    subprocess.run([str(find_tools().java), "-cp", path, "Plant", *planted], check=True)
    yield folder
    CHANNELS.close()


@pytest.mark.parametrize(
    ("fault", "model"),
    every(3, [*FAULTS.items(), *OF_THE_CONSUMER.items(), *OF_THE_DISK.items()]),
    ids=[*FAULTS, *OF_THE_CONSUMER, *OF_THE_DISK],
)
def test_a_plain_fault_is_found(
    build: Path, monkeypatch: pytest.MonkeyPatch, fault: str, model: str
) -> None:
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(build))
    monkeypatch.setenv("PLANTED_FAULT", fault)
    CHANNELS.close()  # a JVM that runs has another fault
    bench = workbench(Context(), one_model(model), "kafka")

    result = replay(Context(), bench, transition_cover(bench.graph))

    assert result.verdict is Verdict.FAIL


@pytest.mark.nightly  # it makes the state graphs of all suites
def test_the_recommended_command_drives_the_suites_that_find_them() -> None:
    jars_or_skip(VERSION)
    events: list[Event] = []
    context, system = Context(emit=events.append), f"kafka-{VERSION}"
    gate = plan(context, DEFAULT_TIERS["ci"], (), Path("out"), system)

    chosen = within_budget(context, gate.feeding, system, MINUTES)

    assert {*FAULTS.values()} <= {model.name for model in chosen}
    told = events[-1]
    assert isinstance(told, StageFinished)
    assert f"{len(chosen)} of {len(gate.feeding)} suites" in told.summary


LATE_COUNT = "fetch-counted-in-a-later-epoch"


def judged(
    build: Path, claimed: Path, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> StageFinished:
    """What stage `deviations` says of a build with this remedy, which makes these claims."""
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(build))
    monkeypatch.setenv("PLANTED_FAULT", remedy)
    CHANNELS.close()
    events: list[Event] = []
    declare(str(claimed), "kafka")
    try:
        deviations(Context(emit=events.append), "kafka", ["Replication"])
    finally:
        declare(None, "kafka")
    return next(event for event in reversed(events) if isinstance(event, StageFinished))


@pytest.mark.parametrize("remedy", ["forgets-always", "forgets-after-skipped-epochs"])
def test_a_build_that_mends_the_re_elected_leader_passes_as_it_claims(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, remedy: str
) -> None:
    result = judged(build, claims(tmp_path), remedy, monkeypatch)

    assert result.verdict is Verdict.PASS
    assert "re-elected-leader gone (as claimed)" in result.summary


def test_a_build_that_mends_half_of_what_it_claims_hears_which_half(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    claimed = tmp_path / "ours.toml"
    claimed.write_text(f'mended = ["re-elected-leader", "{LATE_COUNT}"]\n', encoding="utf-8")

    result = judged(build, claimed, "forgets-always", monkeypatch)

    assert result.verdict is Verdict.FAIL
    assert "re-elected-leader gone (as claimed)" in result.summary
    [late] = [words for words in result.summary.split("; ") if words.startswith(LATE_COUNT)]
    assert late.startswith(f"{LATE_COUNT} seen")
    assert late.endswith("(claimed to be mended)")


@pytest.mark.parametrize("remedy", ["forgets-always", "forgets-after-skipped-epochs"])
@pytest.mark.parametrize("strict", [False, True], ids=["as it claims", "strict"])
def test_a_remedied_build_passes_a_suite_both_ways(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, remedy: str, strict: bool
) -> None:
    told: list[Event] = []
    result = replayed(build, monkeypatch, None if strict else claims(tmp_path), remedy, told.append)

    assert result.verdict is Verdict.PASS
    assert result.passed > 500
    (end,) = [e for e in told if isinstance(e, StageFinished) and e.stage == "replay"]
    chooses = "it chooses positions-kept-in-the-next-epoch"
    assert (chooses in end.summary) == (remedy == "forgets-after-skipped-epochs")


def test_a_build_without_the_remedy_passes_neither_way(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for claimed in (None, claims(tmp_path)):
        result = replayed(build, monkeypatch, claimed, "no remedy")

        assert result.verdict is Verdict.FAIL
        assert result.divergences[0].action is not None
        assert result.divergences[0].action.name == "BecomeLeader"


@pytest.mark.parametrize(("remedy", "red"), [("names-after-reconciling", False), ("none", True)])
def test_the_junit_test_of_a_finding_in_every_release_is_green_on_a_build_that_mends_it(
    build: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, remedy: str, red: bool
) -> None:
    monkeypatch.setenv("PLANTED_FAULT", remedy)
    table = KafkaFactory(VERSION, client=VERSION).deviations()
    [finding] = [each for each in table if each.id == "names-while-reconciling"]

    failures = run([finding], KafkaJars(VERSION, tuple(sorted(build.glob("*.jar")))), tmp_path)

    assert (failures[finding.id] is not None) == red


def claims(folder: Path) -> Path:
    """The file of a build that has mended the re-elected leader."""
    path = folder / "ours.toml"
    path.write_text('mended = ["re-elected-leader"]\n', encoding="utf-8")
    return path


def replayed(
    build: Path,
    monkeypatch: pytest.MonkeyPatch,
    claimed: Path | None,
    remedy: str,
    emit: Emit = ignore,
) -> ReplayResult:
    """A whole suite of three epochs on a build, judged by its claims, or strictly without them."""
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(build))
    monkeypatch.setenv("PLANTED_FAULT", remedy)
    CHANNELS.close()
    declare(None if claimed is None else str(claimed), "kafka")
    try:
        context = Context(emit=emit, strict=claimed is None)
        bench = workbench(context, one_model(UNCLEAN), "kafka")
        return replay(context, bench, transition_cover(bench.graph))
    finally:
        declare(None, "kafka")
