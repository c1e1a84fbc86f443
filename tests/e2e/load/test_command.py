"""`kconform load` and `kconform inspect --load`: what they print, and with which code they end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from conformance.report.releases import PAGE, file_of, load
from conformance.resources import resource_root
from tests.e2e.load.example import FOLDER, LOGS, SHIPPED, segment
from tests.e2e.load.written import SEGMENT

ROOT = resource_root()
EXAMPLE = ROOT / FOLDER
HAZARDS = ROOT / LOGS / "__consumer_offsets-20"


def kconform(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "conformance.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def logs(answer: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What JSON says of each folder and release."""
    stage = json.loads(answer.stdout)["stages"]["log"]
    entries: list[dict[str, Any]] = stage.get("models") or [stage]
    return entries


def test_the_shipped_logs_are_what_kafka_serialises() -> None:
    assert SHIPPED.keys() == {path.relative_to(ROOT) for path in (ROOT / LOGS).iterdir()}
    for folder in SHIPPED:
        assert (ROOT / folder / SEGMENT).read_bytes() == segment(folder), folder


def test_a_matrix_says_which_release_loads_what(tmp_path: Path) -> None:
    arguments = ("--log", HAZARDS, "--system", "kafka-4.1.0,4.4.0", "-o", tmp_path, "--json")

    answer = kconform("versions", *arguments)

    kept = load(file_of(tmp_path, "kafka-4.1.0")).logs
    row = f"| {HAZARDS.name} KAFKA-20254 | fails | loads |"
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["logs"]["kafka-4.1.0"] == kept
    assert row in (tmp_path / PAGE).read_text(encoding="utf-8")


def test_a_release_before_4_0_has_nothing_to_load_with() -> None:
    answer = kconform("versions", "--log", HAZARDS, "--system", "kafka-3.8.1")

    assert answer.returncode == 3, answer.stdout


def test_one_release_loads_it_and_another_does_not() -> None:
    answer = kconform("load", EXAMPLE, "--kafka", "4.1.0,4.4.0", "--json")

    report = json.loads(answer.stdout)
    verdicts = {log["release"]: log["verdict"] for log in logs(answer)}
    rules = {finding["formula"] for finding in report["findings"]}
    assert answer.returncode == 1
    assert verdicts == {"4.1.0": "fail", "4.4.0": "pass"}
    assert rules == {"GroupHasOtherType", "PartitionHasOwner"}
    assert all("What to do" in str(finding) for finding in report["findings"])
    assert all(log["compared"] for log in logs(answer))


def test_the_specification_alone_says_the_same() -> None:
    answer = kconform("load", EXAMPLE, "--kafka", "4.1.0", "--no-classes", "--json")

    report = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert {f["formula"] for f in report["findings"]} == {"GroupHasOtherType", "PartitionHasOwner"}
    assert logs(answer)[0]["compared"] == 0


def test_an_inspection_judges_the_longest_copy(tmp_path: Path) -> None:
    for broker, size in (("b1", None), ("b2", 100)):
        copy = tmp_path / broker / EXAMPLE.name
        copy.mkdir(parents=True)
        (copy / SEGMENT).write_bytes((EXAMPLE / SEGMENT).read_bytes()[:size])

    answer = kconform(
        "inspect", f"b1={tmp_path}/b1", f"b2={tmp_path}/b2", "-o", tmp_path / "findings",
        "--load", "kafka-4.1.0", "--json",
    )  # fmt: skip

    assert answer.returncode == 1
    assert [log["verdict"] for log in logs(answer)] == ["fail"]
    assert [log["folder"] for log in logs(answer)] == [str(tmp_path / "b1" / EXAMPLE.name)]


def test_nothing_to_load_is_no_pass(tmp_path: Path) -> None:
    folder = tmp_path / EXAMPLE.name
    folder.mkdir()
    (folder / SEGMENT).touch()

    answer = kconform("load", folder, "--kafka", "4.4.0", "--no-classes")

    assert answer.returncode == 3, answer.stdout
    assert "nothing to load" in answer.stdout


def test_a_damaged_log_is_no_pass(tmp_path: Path) -> None:
    folder = tmp_path / EXAMPLE.name
    shutil.copytree(EXAMPLE, folder)
    data = bytearray((folder / SEGMENT).read_bytes())
    data[-1] ^= 1
    (folder / SEGMENT).write_bytes(data)

    answer = kconform("load", folder, "--kafka", "4.4.0", "--no-classes")

    assert answer.returncode == 3, answer.stdout
    assert "its checksum is wrong" in answer.stdout


def test_mistakes_of_users(tmp_path: Path) -> None:
    empty = tmp_path / EXAMPLE.name
    empty.mkdir()
    for arguments, words in (
        ((empty, "--kafka", "4.4.0"), "holds no segment"),
        ((tmp_path / "absent", "--kafka", "4.4.0"), "is no folder"),
        ((EXAMPLE, "--kafka", "3.9.0"), "from 4.0.0 on"),
        ((EXAMPLE, "--kafka", "newest"), "no version of Kafka"),
        ((EXAMPLE, "--kafka", ","), "names no release"),
    ):
        answer = kconform("load", *arguments, "--no-classes")
        assert answer.returncode == 2, answer.stdout
        assert words in answer.stderr
        assert "Traceback" not in answer.stderr


def test_another_topics_log_is_not_understood(tmp_path: Path) -> None:
    """Keys of share groups can be read as keys of commits, with bytes left over."""
    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    share = (ROOT / LOGS / "__share_group_state-20" / SEGMENT).read_bytes()
    first = 12 + int.from_bytes(share[8:12], "big")  # bytes of the first batch
    (folder / SEGMENT).write_bytes(share[:first])

    answer = kconform("load", folder, "--kafka", "4.1.0", "--json")

    (log,) = logs(answer)
    assert (answer.returncode, log["verdict"]) == (3, "inconclusive"), answer.stdout
    assert "bytes behind LegacyOffsetCommitKey, version 0" in log["summary"]
