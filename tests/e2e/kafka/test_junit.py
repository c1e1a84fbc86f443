"""A finding's JUnit test, compiled and run: red on a release that has it, green on one without."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.kafka.jars import KafkaJars
from conformance.kafka.java import compile_java
from conformance.kafka.maven import maven_jars
from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.kafka.junit import LIBRARIES
from conformance.tla import find_tools
from tests.kafka_needed import jars_or_skip

LAUNCHER = "org.junit.platform.console.ConsoleLauncher"


@dataclass(frozen=True, slots=True)
class JUnitRun:
    """How many tests ended how, and what the launcher printed."""

    failed: int
    successful: int
    output: str


def run(path: str, jars: KafkaJars, folder: Path) -> JUnitRun:
    """The test that the command writes of a saved path, on the classes of these jars."""
    source = folder / "Written.java"
    file = KafkaFactory(jars.version).file(path)
    command = ["story", str(file), "--junit", "--kafka", jars.version, "-o", str(source)]
    written = CliRunner().invoke(app, command)
    assert written.exit_code == 0, written.output
    (name,) = re.findall(r"^class (\w+)", source.read_text(), re.MULTILINE)
    source = source.rename(folder / f"{name}.java")
    libraries = maven_jars("junit", LIBRARIES)
    classes = compile_java([source], (*jars.classpath, *libraries))
    classpath = os.pathsep.join(map(str, (classes, *jars.classpath, *libraries)))
    java = [str(find_tools().java), "-XX:TieredStopAtLevel=1", "-cp", classpath, LAUNCHER]
    options = ["execute", "--disable-banner", "--scan-classpath", str(classes)]
    ended = subprocess.run([*java, *options], capture_output=True, text=True, check=False)
    failed, successful = (
        int(re.findall(rf"(\d+) tests {word}", ended.stdout)[0])
        for word in ("failed", "successful")
    )
    return JUnitRun(failed, successful, ended.stdout)


@pytest.mark.parametrize(
    ("path", "release", "words"),
    [
        ("re-elected-leader", "4.4.0", "high watermark ==> expected: <0> but was: <1>"),
        ("kafka-18991", "4.0.0", "leader epochs of the records ==> expected: <[]> but was: <[1]>"),
        ("kafka-20845", "4.3.0", "k1 in memory ==> expected: <1> but was: <null>"),
        (
            "full-batch-waits",
            "4.1.0",
            "what the log has ==> expected: <[k1=1, k2=1]> but was: <[]>",
        ),
        ("stale-load", "4.4.0", "reads are answered ==> expected: <false> but was: <true>"),
    ],
)
def test_it_is_red_on_a_release_that_has_the_finding(
    path: str, release: str, words: str, tmp_path: Path
) -> None:
    result = run(f"{path}.itf.json", jars_or_skip(release), tmp_path)

    assert result.failed == 1
    assert words in result.output


@pytest.mark.parametrize(
    ("path", "release"),
    [
        ("kafka-18991", "4.0.1"),
        ("kafka-20845", "4.4.0"),
        ("full-batch-waits", "4.2.2"),
        ("kafka-20634", "4.4.0"),
    ],
)
def test_it_is_green_on_a_release_without_it(path: str, release: str, tmp_path: Path) -> None:
    result = run(f"{path}.itf.json", jars_or_skip(release), tmp_path)

    assert (result.failed, result.successful) == (0, 1)
