"""Builds the Java agent that writes brokers' inner state at the end of each critical section."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import EnvironmentProblem
from conformance.files import written_aside
from conformance.kafka.jars import KafkaJars
from conformance.kafka.java import compile_java
from conformance.kafka.maven import Coordinate, Tell, maven_jars, silent

BYTE_BUDDY = Coordinate("net.bytebuddy", "byte-buddy", "1.14.19")

_FOLDER = Path(__file__).resolve().parent / "agent"
_TABLES = {3: _FOLDER / "hooks-3.txt", 4: _FOLDER / "hooks-4.txt"}
"""Which classes and methods are observed, by Kafka's major version."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A built agent and the table of hooks for one version of Kafka."""

    jar: Path
    table: Path

    def option(self, node: int | str, output: Path) -> str:
        """The JVM option that loads it; events are appended to `output` as NDJSON (docs/tap.md)."""
        return f"-javaagent:{self.jar}=table={self.table},node={node},output={output}"


def build_agent(
    jars: KafkaJars, *, tell: Tell = silent, environ: Mapping[str, str] | None = None
) -> Agent:
    """The agent for these jars, from the cache if it was built before.

    Raises EnvironmentProblem if there is no table for the version.
    """
    env = os.environ if environ is None else environ
    table = _TABLES.get(jars.release[0])
    if table is None:
        raise EnvironmentProblem(
            f"The agent knows the inside of Kafka 3.x and 4.x, not of {jars.version}. Record "
            "without it: the tap works on every version."
        )
    library = maven_jars("byte-buddy", [BYTE_BUDDY], tell=tell, environ=env)
    classes = compile_java(sorted(_FOLDER.glob("*.java")), library, tell=tell, environ=env)
    return Agent(_packed(classes, library[0]), table)


def _packed(classes: Path, library: Path) -> Path:
    """The classes as a jar whose manifest names the agent's class and ByteBuddy's jar."""
    jar = classes.with_suffix(".jar")
    if jar.is_file():
        return jar
    manifest = _manifest(
        {"Premain-Class": "kconform.agent.Agent", "Class-Path": library.resolve().as_uri()}
    )
    with written_aside(jar) as aside, zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("META-INF/MANIFEST.MF", manifest)
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes).as_posix())
    return jar


def _manifest(entries: Mapping[str, str]) -> str:
    """A manifest; a line has at most 72 bytes, what follows is on lines that begin with a space."""
    lines = []
    for key, value in {"Manifest-Version": "1.0", **entries}.items():
        text = f"{key}: {value}"
        lines.append(text[:70])
        lines += [f" {text[at : at + 69]}" for at in range(70, len(text), 69)]
    return "\r\n".join(lines) + "\r\n\r\n"
