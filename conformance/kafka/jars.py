"""Kafka's jars: a released version by name, fetched once, or a folder of one's own build."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import DataError, EnvironmentProblem, UserError
from conformance.kafka.maven import Coordinate, NotInRepository, Tell, maven_jars, silent

NEWEST = "4.4.0"
"""The newest release that this version of kconform was tried with."""

RELEASES = (
    *("3.8.0", "3.8.1", "3.9.0", "3.9.1", "3.9.2"),
    *("4.0.0", "4.0.1", "4.0.2", "4.1.0", "4.1.1", "4.1.2", "4.2.0", "4.2.1", "4.2.2"),
    *("4.3.0", "4.3.1", "4.4.0"),
)
"""What Maven Central has of Kafka from 3.8.0 on, as of November 2026."""

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_GROUP = "org.apache.kafka"
_SCALA = "2.13"
_PROPERTIES = "kafka/kafka-version.properties"
_TESTED = ("clients", "group-coordinator", "metadata", "raft", "server", "server-common", "storage")
_NOT_CODE = ("-sources.jar", "-javadoc.jar", "-scaladoc.jar", "-test-sources.jar")


@dataclass(frozen=True, slots=True)
class KafkaJars:
    """What to put on a class path to run Kafka."""

    version: str
    """As the jars themselves tell it: `3.8.1`, `4.5.0-SNAPSHOT`."""
    classpath: tuple[Path, ...]

    @property
    def release(self) -> tuple[int, int, int]:
        """The three numbers of the version, for comparisons."""
        return release_of(self.version)

    def jar(self, artifact: str) -> Path:
        """The jar of one artifact (`kafka-clients`), without a classifier."""
        pattern = re.compile(re.escape(artifact) + r"-\d[^/]*(?<!-test)\.jar")
        for path in self.classpath:
            if pattern.fullmatch(path.name):
                return path
        raise DataError(f"Among the jars of Kafka {self.version} there is no {artifact}.")

    def __str__(self) -> str:
        return os.pathsep.join(map(str, self.classpath))


def release_of(version: str) -> tuple[int, int, int]:
    """`4.5.0-SNAPSHOT` is (4, 5, 0)."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        raise UserError(f"{version!r} is no version of Kafka; one looks like {NEWEST}.")
    return int(match[1]), int(match[2]), int(match[3])


def kafka_jars(
    version: str,
    *,
    tests: bool = False,
    tell: Tell = silent,
    environ: Mapping[str, str] | None = None,
) -> KafkaJars:
    """A release's broker, clients and all that they need, with a binding of slf4j.

    `tests` adds the jars of Kafka's own test classes (MockTime, MockClient, ...), not what those
    need; not every release has them in the repository (3.8 to 4.1 do, 4.4.0 does not).
    Raises UserError (no such version, no network, a damaged jar).
    """
    if _VERSION.fullmatch(version) is None:
        raise UserError(
            f"{version!r} is no released version of Kafka; one looks like {NEWEST}. For a build of "
            "your own use --kafka-lib FOLDER."
        )
    try:
        jars = maven_jars(f"kafka-{version}", _broker(version), tell=tell, environ=environ)
        if tests:
            jars += maven_jars(f"kafka-{version}-test", _tests(version), tell=tell, environ=environ)
    except NotInRepository as error:
        raise EnvironmentProblem(
            f"Kafka {version} was not found: {error} Kafka's releases look like 3.8.1 or {NEWEST}."
        ) from error
    return KafkaJars(version, jars)


def _broker(version: str) -> list[Coordinate]:
    # The artifact of tools-api holds interfaces of the console tools only.
    broker = Coordinate(_GROUP, f"kafka_{_SCALA}", version, excluded=("kafka-tools-api",))
    if release_of(version) < (4, 0, 0):
        return [broker, Coordinate("org.slf4j", "slf4j-reload4j", "1.7.36")]
    logging = "org.apache.logging.log4j"
    return [
        broker,
        Coordinate(logging, "log4j-slf4j-impl", "2.25.2"),
        Coordinate(logging, "log4j-core", "2.25.2"),
    ]


def _tests(version: str) -> list[Coordinate]:
    names = [f"kafka_{_SCALA}", *(f"kafka-{name}" for name in _TESTED)]
    if release_of(version) >= (4, 0, 0):
        names.append("kafka-coordinator-common")
    return [Coordinate(_GROUP, name, version, classifier="test") for name in names]


def kafka_lib(folder: Path, *, tests: bool = False) -> KafkaJars:
    """The jars of one's own build: the `libs` of a distribution, or Kafka's source tree once built.

    Raises UserError if it is no folder, holds no Kafka, or a jar is damaged.
    """
    if not folder.is_dir():
        raise UserError(f"--kafka-lib names {folder}, which is not a folder.")
    jars = tuple(jar for jar in _jars_below(folder) if tests or not jar.name.endswith("-test.jar"))
    for jar in jars:
        if not zipfile.is_zipfile(jar):
            raise DataError(f"{jar} is damaged: it is no jar. Build or copy it once more.")
    code = [jar for jar in jars if not jar.name.endswith("-test.jar")]
    clients = next((jar for jar in code if jar.name.startswith("kafka-clients-")), None)
    if clients is None or not any(jar.name.startswith("kafka_2.") for jar in code):
        raise UserError(
            f"{folder} holds no Kafka: kafka_{_SCALA}-VERSION.jar and kafka-clients-VERSION.jar "
            "are wanted, with all that they depend on. Name a distribution's folder `libs`, or "
            "Kafka's source tree after `./gradlew jar copyDependantLibs`."
        )
    return KafkaJars(_version_in(clients), jars)


def _jars_below(folder: Path) -> list[Path]:
    """The folder's own jars; of a source tree those of every module's build."""
    flat = sorted(folder.glob("*.jar"))
    if not flat:
        places = ("*/build/libs/*.jar", "*/*/build/libs/*.jar", "core/build/dependant-libs-*/*.jar")
        flat = [jar for place in places for jar in sorted(folder.glob(place))]
    unique = {jar.name: jar.resolve() for jar in reversed(flat) if not jar.name.endswith(_NOT_CODE)}
    return list(reversed(unique.values()))


def _version_in(clients: Path) -> str:
    """The version that kafka-clients tells of itself."""
    try:
        with zipfile.ZipFile(clients) as archive:
            text = archive.read(_PROPERTIES).decode("utf-8", "replace")
    except (KeyError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{clients} is damaged or not of Kafka: {_PROPERTIES}: {error}") from error
    match = re.search(r"^version=(\S+)", text, re.MULTILINE)
    if match is None:
        raise DataError(f"{clients} does not tell its version in {_PROPERTIES}.")
    return match[1]


def chosen_jars(
    version: str | None,
    lib: Path | None,
    *,
    tests: bool = False,
    tell: Tell = silent,
    environ: Mapping[str, str] | None = None,
) -> KafkaJars:
    """The jars of the options --kafka-lib (or KCONFORM_KAFKA_LIB) and --kafka VERSION."""
    env = os.environ if environ is None else environ
    folder = lib or (Path(env["KCONFORM_KAFKA_LIB"]) if env.get("KCONFORM_KAFKA_LIB") else None)
    if folder is not None and version is None:
        return kafka_lib(folder, tests=tests)
    if lib is not None:
        raise UserError("Give a version of Kafka or --kafka-lib, not both.")
    return kafka_jars(version or NEWEST, tests=tests, tell=tell, environ=env)
