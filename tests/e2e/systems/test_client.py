"""kconform client: real processes in the loop, right ones and wrong ones.

The members are those of tests/e2e/clients/member.py, which are wrong in one way each.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.client import process

ROOT = Path(__file__).resolve().parents[3]
MEMBER = ROOT / "tests" / "e2e" / "clients" / "member.py"
LIBRDKAFKA = ROOT / "docs" / "clients" / "librdkafka.py"
PLACES = "{bootstrap} {topic} {group}"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def client(command: str, *options: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, ["client", "--command", command, "--seed", "1", *options])
    return ended.exit_code, ended.output


def member(mistake: str, *options: str) -> tuple[int, dict[str, Any]]:
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(MEMBER))} {mistake} {PLACES}"
    arguments = ["client", "--command", command, "--seed", "1", "--json", *options]
    ended = CliRunner().invoke(app, arguments)
    report: dict[str, Any] = json.loads(ended.stdout)
    return ended.exit_code, report


def test_a_member_that_is_right_passes_and_the_report_tells_what_it_was_given() -> None:
    code, report = member("right", "--examples", "2", "--jobs", "2")
    assert code == 0, report
    assert report["examples"] == {"pass": 2}
    assert report["callbacks"] is True
    assert report["duties"]["JoinGroup answered MEMBER_ID_REQUIRED: owes JoinGroup"]["done"] > 0
    assert (
        "Heartbeat answered FENCED_INSTANCE_ID: owes an end with an error"
        in (report["not_exercised"])
    )
    assert sum(report["seen"]["Heartbeat"].values()) > 0
    given = report["given"]
    assert set(given["JoinGroup"]) & {"NONE, leader", "NONE, follower", "NONE, leader of others"}
    assert given["Heartbeat"]["NONE"] > 0
    assert "FENCED_INSTANCE_ID" in report["never_given"]["Heartbeat"]


@pytest.mark.parametrize(
    ("mistake", "title"),
    [
        ("keeps-partitions", "has not given up its partitions"),
        ("assigns-all-to-one", "the specification does not allow it here"),
    ],
)
def test_a_member_that_is_wrong_is_found(mistake: str, title: str) -> None:
    code, report = member(mistake, "--examples", "8", "--jobs", "2", "--patience", "3")
    assert code == 1, report
    found = [one for one in report["findings"] if title in one["title"]]
    assert found, [one["title"] for one in report["findings"]]
    assert "--seed 1 --example" in found[0]["reproduce"]
    assert any("coordinator: " in line for line in found[0]["story"])


def test_heartbeats_put_off_nothing_that_a_refusal_asks_for() -> None:
    code, report = member("ignores-refusals", "--example", "4", "--patience", "3")
    assert code == 1, report
    (found,) = report["findings"]
    assert "the client owes a request" in found["title"]
    assert any("was answered UNKNOWN_MEMBER_ID the client owes" in one for one in found["story"])


@pytest.mark.parametrize(
    ("mistake", "example", "answer"),
    [
        ("ignores-rebalance", 21, "Heartbeat was answered REBALANCE_IN_PROGRESS"),
        ("heartbeats-never", 1, "SyncGroup was answered NONE"),
    ],
)
def test_an_example_does_not_end_while_the_client_owes_something(
    mistake: str, example: int, answer: str
) -> None:
    code, report = member(mistake, "--example", str(example), "--patience", "3")
    assert code == 1, report
    (found,) = report["findings"]
    assert "the client owes a request" in found["title"]
    assert any(f"after {answer} the client owes" in one for one in found["story"])


@pytest.mark.parametrize(
    ("mistake", "title"),
    [
        ("cut-subscription", "sends a subscription that other members cannot read"),
        ("commits-ahead", "commits a position behind all records that it was given"),
    ],
)
def test_a_breach_is_found_and_the_loop_goes_on(mistake: str, title: str) -> None:
    code, report = member(mistake, "--example", "1", "--patience", "3")
    assert code == 1, report
    assert [one["title"] for one in report["findings"]] == [f"the client {title}"]
    assert report["endings"] == {"whole": 1}


def test_a_version_that_the_loop_lacks_is_no_fault_of_the_clients() -> None:
    code, report = member("needs-fetch-99", "--examples", "1")
    assert code == 3, report
    assert "the loop serves OffsetCommit 2 to 9" in report["seen_once"][0]


def test_a_client_that_does_not_end_is_no_agreement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_END_SECONDS", 3.0)
    code, report = member("stays", "--examples", "1")
    assert code == 3, report
    (line,) = report["seen_once"]
    assert "the client did not end after SIGTERM: it still runs" in line


def test_a_client_that_sometimes_ends_before_it_joins_is_told_of() -> None:
    """The first run joins, so the command is right; what ends later may be the machine's fault."""
    joins = shlex.join([sys.executable, str(MEMBER), "right"])
    once = f"test -e joined && exit 3; touch joined; exec {joins} $0 $1 $2"
    command = f"sh -c {shlex.quote(once)} {PLACES}"
    ended = CliRunner().invoke(app, ["client", "--command", command, "--examples", "2", "--json"])
    report = json.loads(ended.stdout)
    assert (ended.exit_code, report["examples"]) == (3, {"inconclusive": 2})
    assert all("the client did not join: exit status 3" in one for one in report["seen_once"])


@pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None
    and os.environ.get("KCONFORM_REQUIRE_KAFKA") != "1",  # in CI it runs, and fails without it
    reason="the extra `clients` is missing",
)
def test_librdkafka_passes() -> None:
    command = f"python {shlex.quote(str(LIBRDKAFKA))} {PLACES}"
    code, output = client(command, "--variant", "librdkafka", "--examples", "2", "--jobs", "2")
    assert code == 0, output
    assert "callbacks judged" in output


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('no broker'); raise SystemExit(3)", "ended (exit status 3) before it had joined"),
        (
            "import sys, socket, time; h, p = sys.argv[1].split(':'); "
            "s = socket.create_connection((h, int(p))); s.sendall(b'GET / HTTP'); time.sleep(9)",
            "no request of Kafka's protocol",
        ),
    ],
)
def test_what_is_no_client_is_told_so(program: str, message: str) -> None:
    code, output = client(f"python -c {shlex.quote(program)} {{bootstrap}}", "--examples", "1")
    assert code == 2
    assert message in output


def test_a_command_and_a_variant_that_do_not_exist() -> None:
    code, output = client("no-such-program-anywhere", "--examples", "1")
    assert code == 2
    assert "cannot be started" in output
    code, output = client("python x.py", "--variant", "perl")
    assert code == 2
    assert "no variant perl" in output
