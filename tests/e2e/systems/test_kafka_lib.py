"""Kafka's jars as a user gives them: a build of one's own, what is none, and no network."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

MODEL = "replication/bench/truncate-on-fetch-fine-2b"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The jars of a version in a folder, as a build has them."""
    folder = tmp_path_factory.mktemp("libs")
    for jar in jars_or_skip("3.8.1").classpath:
        shutil.copy(jar, folder)
    return folder


def replay(system: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A few walks, in a process of their own: what was told once of a build is kept in one."""
    command = ["replay", MODEL, "--system", system, "--suite", "walks", "--walks", "5", "--json"]
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *command, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | environ,
    )


def paragraph(run: subprocess.CompletedProcess[str]) -> str:
    """What a user's mistake is told: exit code 2, one paragraph, nothing of our code."""
    assert run.returncode == 2, run.stdout + run.stderr
    *_, told = run.stderr.partition("kconform: ")
    assert told, run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert "\n\n" not in told
    return told


def test_a_build_of_ones_own_is_driven_and_judged_as_its_version(build: Path) -> None:
    run = replay("kafka", "--kafka-lib", str(build))

    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert (report["verdict"], report["tests"]["pass"]) == ("pass", 5)
    shown = report["stages"]["deviations"]["deviations"]
    assert {shown["KAFKA-18991"], shown["re-elected-leader"]} == {"seen"}


def empty(_build: Path, folder: Path) -> None:
    folder.mkdir()


def absent(_build: Path, _folder: Path) -> None:
    """Nothing is there."""


def only_clients(build: Path, folder: Path) -> None:
    folder.mkdir()
    for jar in build.glob("kafka-clients-*.jar"):
        shutil.copy(jar, folder)


def corrupt(build: Path, folder: Path) -> None:
    shutil.copytree(build, folder, copy_function=os.link)
    (jar,) = folder.glob("kafka-clients-*.jar")
    cut = jar.read_bytes()[:1000]
    jar.unlink()  # a link: the build's own stays as it is
    jar.write_bytes(cut)


def of_something_else(build: Path, folder: Path) -> None:
    shutil.copytree(build, folder, copy_function=os.link)
    (jar,) = folder.glob("kafka-server-common-*.jar")
    jar.unlink()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("README", "no classes of Kafka are here")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (absent, "which is not a folder"),
        (empty, "holds no Kafka"),
        (only_clients, "holds no Kafka"),
        (corrupt, "is damaged: it is no jar"),
        (of_something_else, "do not compile against these jars"),
    ],
)
def test_what_is_no_build_of_kafka_is_told(
    build: Path, tmp_path: Path, make: Callable[[Path, Path], None], told: str
) -> None:
    folder = tmp_path / "libs"
    make(build, folder)

    assert told in paragraph(replay("kafka", "--kafka-lib", str(folder)))


def test_without_a_network_the_jars_cannot_be_fetched(tmp_path: Path) -> None:
    with socket.socket() as closed:  # bound, and nobody listens
        closed.bind(("127.0.0.1", 0))
        root = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        settings = tmp_path / "settings.xml"
        settings.write_text(
            '<ivysettings><settings defaultResolver="central"/><resolvers>'
            f'<ibiblio name="central" m2compatible="true" root="{root}"/>'
            "</resolvers></ivysettings>",
            encoding="utf-8",
        )
        nowhere = {
            "KCONFORM_CACHE": str(tmp_path / "cache"),
            "KCONFORM_IVY_SETTINGS": str(settings),
        }
        run = replay("kafka-3.8.1", **nowhere)

    assert "The Maven repository cannot be reached" in paragraph(run)
    assert not list((tmp_path / "cache").rglob("*.jar"))
