"""Where output goes: a terminal, a reader that is gone, an encoding without a story's signs."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from conformance.cli.main import COMMANDS
from tests.breadth import every

pytestmark = pytest.mark.tlc

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorial"
MODEL = "models/store.toml"
KCONFORM = (sys.executable, "-m", "conformance.cli")


@contextmanager
def terminal() -> Iterator[int]:
    """A terminal that somebody reads, so that writing to it never waits."""
    reader, writer = pty.openpty()
    reading = threading.Thread(target=_drain, args=(reader,))
    reading.start()
    try:
        yield writer
    finally:
        os.close(writer)
        reading.join()
        os.close(reader)


def _drain(reader: int) -> None:
    # Linux answers EIO, others nothing, when nobody holds the other side any more.
    with suppress(OSError):
        while os.read(reader, 65536):
            pass


@pytest.mark.parametrize("command", [f"check {MODEL}", "bugs --list"])
def test_at_a_terminal_the_object_still_goes_to_standard_output(command: str) -> None:
    """Progress is shown on the terminal, where standard error is; the object has its file."""
    with terminal() as screen:
        ended = subprocess.run(
            [*KCONFORM, *command.split(), "--json"],
            stdout=subprocess.PIPE,
            stderr=screen,
            text=True,
            check=False,
            cwd=FOLDER,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "40"},
        )
    assert ended.returncode == 0
    body = json.loads(ended.stdout)
    assert (body["command"], body["verdict"]) == (command.split()[0], "pass")


def ended_without_a_reader(command: str, folder: Path = FOLDER) -> tuple[int, str]:
    """The exit code of a command whose standard output nobody reads, and its standard error."""
    with subprocess.Popen(
        [*KCONFORM, *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    return process.returncode, told


@pytest.mark.parametrize(
    "command",
    [
        "",
        "--help",
        "--version",
        *every(4, (f"{name} --help" for name in COMMANDS)),
        *every(
            5,
            (f"cluster {name} --help" for name in ("run", "record", "judge", "traces", "incident")),
        ),
        "bugs --list",
        "check --list",
        "deviations kafka-4.4.0 --table",
        f"check {MODEL}",
        f"check {MODEL} --json",
        f"show VersionsGrow --model {MODEL}",
        f"suite {MODEL}",
        f"replay {MODEL}",
        f"explore {MODEL} --profile dev --examples 1",
        f"versions {MODEL} --system store",
    ],
)
def test_a_reader_that_is_gone_gets_no_verdict(command: str) -> None:
    """As any program of a pipeline that is killed by SIGPIPE: not 1, which is a violation's."""
    code, told = ended_without_a_reader(command)
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    assert code == 141


def test_nobody_reads_what_a_user_did_wrong() -> None:
    """Both streams go into one pipe, `2>&1 | head -0`."""
    with subprocess.Popen(
        [*KCONFORM, "check", "nowhere"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 141


def ended_in_shell(command: str) -> tuple[int, str]:
    """The exit code of a command with redirections, and the rest of its standard error."""
    line = f'"$0" -m conformance.cli {command}'
    ended = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
        cwd=FOLDER,
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize(
    ("command", "code"),
    [(f"check {MODEL}", 0), (f"check {MODEL} --json", 0), ("check nowhere", 2), ("--version", 0)],
)
def test_a_stream_that_is_closed_changes_no_verdict(command: str, code: int, closed: str) -> None:
    ended, told = ended_in_shell(f"{command} {closed}")
    assert "Traceback" not in told
    assert ended == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only some systems have /dev/full")
@pytest.mark.parametrize("command", [f"check {MODEL}", f"check {MODEL} --json", "--version"])
def test_an_output_that_takes_nothing_is_no_verdict(command: str) -> None:
    code, told = ended_in_shell(f"{command} >/dev/full")
    assert "Traceback" not in told
    assert "Exception ignored" not in told
    assert os.strerror(28) in told or "is full" in told
    assert code == 2


NEVER = """---- MODULE Never ----
VARIABLE x
Init == x = "grün"
Next == UNCHANGED x
NeverGreen == x # "grün"
====
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("option", ["", "--json"])
def test_a_finding_is_told_in_any_encoding(tmp_path: Path, encoding: str, option: str) -> None:
    (tmp_path / "Never.tla").write_text(NEVER, encoding="utf-8")
    (tmp_path / "Never.cfg").write_text("INIT Init\nNEXT Next\nINVARIANT NeverGreen\n")
    ended = subprocess.run(
        [*KCONFORM, "check", "Never.tla", "--config", "Never.cfg", *option.split()],
        capture_output=True,
        encoding=encoding,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )
    assert ended.returncode == 1, ended.stderr
    assert "NeverGreen is violated" in ended.stdout
    if option:
        assert json.loads(ended.stdout)["findings"][0]["story"]
