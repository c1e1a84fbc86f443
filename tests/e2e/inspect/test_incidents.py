"""Incidents on real brokers, read off their files; and faults planted in copies of clean ones."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.inspect import traces
from conformance.inspect.inspection import Inspection, inspect
from conformance.inspect.reading.inputs import Filters, Inputs, moment
from conformance.inspect.reading.reader import read
from conformance.kafka.incidents import INCIDENTS, TOPIC
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict
from tests.breadth import every
from tests.kafka_needed import VERSIONS, jars_or_skip
from tests.planted.faults import FAULTS
from tests.planted.sites import Site

BROKERS = ("b1", "b2", "b3")
NEW = VERSIONS[-1]
SPECIFICATIONS = Specifications()
FIRST_SEGMENT = "00000000000000000000.log"


def kconform(*arguments: str, within: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=dict(os.environ),
        cwd=within,
    )


def made(name: str, folder: Path) -> Path:
    """An incident in that folder, which is named as people name it: from where they are."""
    jars_or_skip(NEW)
    arguments = ["--kafka", NEW, "-o", folder.name]
    done = kconform("cluster", "incident", name, *arguments, within=folder.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def inspected(copies: Path, output: Path, *options: str) -> tuple[int, dict[str, Any]]:
    folders = [f"{broker}={copies / broker / 'data'}" for broker in BROKERS]
    logs = str(copies / "*" / "server.log")
    done = kconform(
        "inspect", *folders, "--logs", logs, "--kafka", NEW, "-o", str(output), *options
    )
    assert (output / "findings.json").is_file(), done.stdout + done.stderr
    return done.returncode, json.loads((output / "findings.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("clean", tmp_path_factory.mktemp("incident") / "clean")


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    status = {path: path.stat() for path in folder.rglob("*")}
    return {str(path): (one.st_size, one.st_mtime_ns) for path, one in status.items()}


def test_a_clean_run_gives_no_finding_and_its_files_stay_as_they_are(
    clean: Path, tmp_path: Path
) -> None:
    before = contents(clean)
    code, found = inspected(clean, tmp_path)
    assert (code, found["verdict"], found["findings"]) == (0, "pass", [])
    assert found["files"]["error"] == 0
    formulas = found["formulas"]
    for name in (
        "LogMatching",
        "ElectableHasExposed",
        "GenerationsNeverFall",
        "LeaderInIsr",
        "HeldByOneMember",
    ):
        assert formulas[name]["holds"] >= 1
    assert contents(clean) == before
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "billing" in page
    assert "orders-0" in page


def with_logs(clean: Path, folder: Path, form: Callable[[str], str]) -> Path:
    """Copies whose server logs another layout wrote: `form` makes its line of one of Kafka's."""
    shutil.copytree(clean, folder)
    for broker in BROKERS:
        log = folder / broker / "server.log"
        log.write_text("".join(map(form, log.read_text("utf-8").splitlines(True))), "utf-8")
    return folder


def other_layout(line: str) -> str:
    """`time;;level message`; a line that goes on with an entry stays as it is."""
    return line.replace("] ", ";;", 1)[1:] if line.startswith("[") else line


def test_server_logs_in_an_unknown_layout_are_no_pass_until_it_is_declared(
    clean: Path, tmp_path: Path
) -> None:
    copies = with_logs(clean, tmp_path / "copies", other_layout)
    code, found = inspected(copies, tmp_path / "out")
    assert (code, found["verdict"], found["findings"]) == (3, "inconclusive", [])
    (gap, *_) = (gap for gap in found["unjudged"] if gap["matters"])
    assert gap["subject"] == f"b1: {copies / 'b1' / 'server.log'}"
    assert "--log-layout" in gap["why"]
    layout = ("--log-layout", "%d;;%p %m (%c)%n")
    code, found = inspected(copies, tmp_path / "declared", *layout)
    assert (code, found["verdict"]) == (0, "pass"), [
        one for one in found["unjudged"] if one["matters"]
    ]
    assert all(log["understood"] > 10 for log in found["server_logs"])


def test_server_logs_as_strimzi_writes_them_are_understood(clean: Path, tmp_path: Path) -> None:
    def form(line: str) -> str:
        return line.replace("[", "", 1).replace("] ", " ", 1).rstrip() + " [main]\n"

    code, found = inspected(with_logs(clean, tmp_path / "copies", form), tmp_path / "out")
    assert (code, found["verdict"]) == (0, "pass")
    assert {log["layout"] for log in found["server_logs"]} == {"strimzi"}


def test_the_exported_trace_is_judged_alike(clean: Path, tmp_path: Path) -> None:
    inspected(clean, tmp_path)
    stem = tmp_path / "traces" / f"{TOPIC}-0"
    mapping = ["--mapping", f"{stem}.mapping.toml", "--invariants-only"]
    model = ["--model", traces.MODEL]
    done = kconform("judge", f"{stem}.ndjson", *model, *mapping)
    assert done.returncode == 0, done.stdout + done.stderr
    mapping = ["--mapping", f"{stem}.elections.mapping.toml", "-o", str(tmp_path / "store")]
    done = kconform("import", f"{stem}.elections.ndjson", *model, *mapping)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kind", every(2, FAULTS))
def test_a_planted_fault_is_found(clean: Path, tmp_path: Path, kind: str) -> None:
    fault, copies = FAULTS[kind], tmp_path / "copies"
    shutil.copytree(clean, copies)
    site = Site(copies, TOPIC, BROKERS, random.Random(1))
    assert fault.needs(site)
    planted = fault.plant(site, fault.at(site, "b2"))
    found = judged(copies, tmp_path, logs=True)
    told = [one for one in found.discoveries if one.kind in fault.told_by]
    assert any(not one.brokers or set(one.brokers) & set(planted.brokers) for one in told), planted
    verdict = Verdict.FAIL if fault.proved else Verdict.INCONCLUSIVE
    assert any(one.verdict in (verdict, Verdict.FAIL) for one in told), planted
    assert found.verdict is not Verdict.PASS


def _no_segments(folder: Path) -> None:
    for segment in folder.glob("*.log"):
        segment.unlink()


def _a_pipe(folder: Path) -> None:
    _no_segments(folder)
    os.mkfifo(folder / FIRST_SEGMENT)


def _a_last_offset(folder: Path) -> None:
    """Of the second batch, whose checksum is wrong then."""
    segment = folder / FIRST_SEGMENT
    data = bytearray(segment.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 23] ^= 0x58  # lastOffsetDelta has four bytes from here on
    segment.write_bytes(data)


@pytest.mark.parametrize(
    ("spoil", "verdict", "kinds", "why"),
    [
        (_no_segments, Verdict.INCONCLUSIVE, set(), "holds no segment"),
        (_a_pipe, Verdict.INCONCLUSIVE, set(), "holds no segment"),
        (_a_last_offset, Verdict.FAIL, {"checksum"}, "has a wrong checksum"),
    ],
    ids=["no segments", "a pipe", "a last offset"],
)
def test_a_log_that_cannot_be_read_accuses_nobody(
    clean: Path,
    tmp_path: Path,
    spoil: Callable[[Path], None],
    verdict: Verdict,
    kinds: set[str],
    why: str,
) -> None:
    """The folder is there, and its records are not known: nothing is lost, and nothing missing."""
    copies = tmp_path / "copies"
    shutil.copytree(clean, copies)
    spoil(copies / "b2" / "data" / f"{TOPIC}-0")
    found = judged(copies, tmp_path, logs=True)
    assert (found.verdict, {one.kind for one in found.discoveries}) == (verdict, kinds)
    assert any(why in gap.why for gap in found.unjudged if gap.matters), found.unjudged


def test_a_folder_that_may_not_be_read_is_there(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read everything, so the system's answer is played."""
    read = os.scandir
    copies = tmp_path / "copies"
    shutil.copytree(clean, copies)

    def refused(folder: str) -> object:
        if str(folder).endswith(f"b2/data/{TOPIC}-0"):
            raise PermissionError(13, "Permission denied", folder)
        return read(folder)

    monkeypatch.setattr("conformance.inspect.reading.folders.os.scandir", refused)
    found = judged(copies, tmp_path, logs=True)
    assert (found.verdict, found.discoveries) == (Verdict.INCONCLUSIVE, ())
    assert any("Permission denied" in gap.why for gap in found.unjudged if gap.matters)


ALONE = [kind for kind, fault in FAULTS.items() if fault.invariant in (
    "has-an-identity", "one-node", "one-cluster", "directory-is-registered", "one-identity",
    "holds-something", "metadata-log-everywhere")]  # fmt: skip


@pytest.mark.parametrize("logs", [True, False], ids=["logs", "no-logs"])
@pytest.mark.parametrize("kind", every(2, [*ALONE, "batch-of-magic-1", "batch-without-epoch"]))
def test_a_wrong_identity_or_format_accuses_nobody_else(
    clean: Path, tmp_path: Path, kind: str, logs: bool
) -> None:
    """Nothing is a violation of the protocol: who is who, or what is what, is not known."""
    fault, copies = FAULTS[kind], tmp_path / "copies"
    shutil.copytree(clean, copies)
    site = Site(copies, TOPIC, BROKERS, random.Random(1))
    fault.plant(site, fault.at(site, "b2"))
    found = judged(copies, tmp_path, logs=logs)
    assert {one.kind for one in found.discoveries} <= fault.told_by
    assert found.discoveries


def a_moment_within(clean: Path) -> int:
    """When the server log of a broker is half told, in milliseconds since 1970."""
    lines = (clean / "b1" / "server.log").read_text("utf-8").splitlines()
    stamped = [line for line in lines if line.startswith("[2")]
    return moment(stamped[len(stamped) // 2][1:20])


@pytest.mark.parametrize(
    "filters",
    [
        lambda _clean: Filters(topics=frozenset({TOPIC})),
        lambda _clean: Filters(partitions=frozenset({1})),
        lambda clean: Filters(since=a_moment_within(clean)),
        lambda clean: Filters(until=a_moment_within(clean)),
    ],
    ids=["topic", "partition", "since", "until"],
)
def test_what_was_not_asked_for_is_not_missed(
    clean: Path, tmp_path: Path, filters: Callable[[Path], Filters]
) -> None:
    found = judged(clean, tmp_path, filters(clean))
    assert (found.verdict, found.discoveries) == (Verdict.PASS, ())


def test_a_log_of_which_a_segment_cannot_be_read_is_not_accused(
    clean: Path, tmp_path: Path
) -> None:
    """Given a segment that is a link out of the folder."""
    copies = tmp_path / "copies"
    shutil.copytree(clean, copies)
    link = copies / "b2" / "data" / f"{TOPIC}-0" / f"{99:020}.log"
    link.symlink_to(tmp_path / "elsewhere")
    found = judged(copies, tmp_path)
    assert (found.verdict, found.discoveries) == (Verdict.INCONCLUSIVE, ())
    (one,) = (one for one in found.unjudged if one.matters)
    assert (one.subject, one.what) == (f"{TOPIC}-0", "the log of b2")
    assert "a link that leads out" in one.why


def judged(
    copies: Path,
    folder: Path,
    filters: Filters = Filters(),  # noqa: B008
    *,
    logs: bool = False,
) -> Inspection:
    texts = [(broker, copies / broker / "server.log") for broker in BROKERS]
    wanted = tuple(f"{broker}={path}" for broker, path in texts if logs and path.exists())
    folders = {broker: (str(copies / broker / "data"),) for broker in BROKERS}
    inputs = Inputs(folders, wanted, filters)
    evidence = read(inputs, folder / "evidence", jars_or_skip(NEW).classpath)
    return inspect(evidence, specifications=SPECIFICATIONS)


def test_an_unclean_election_is_told_with_the_truncation_that_it_caused(tmp_path: Path) -> None:
    code, found = inspected(made("unclean-election", tmp_path / "copies"), tmp_path / "out")
    assert code == 1
    (one,) = found["findings"]
    assert one["kind"] == "lost-by-unclean-election"
    assert one["offsets"] == [10, 20]
    assert any("Truncating to offset 10" in source for source in one["sources"])
    assert any("initial high watermark 20" in source for source in one["sources"])


def test_an_incident_that_is_none_is_the_users_to_mend(tmp_path: Path) -> None:
    done = kconform("cluster", "incident", "flood", "-o", str(tmp_path / "x"))
    assert done.returncode == 2
    assert all(name in done.stderr for name in INCIDENTS)
