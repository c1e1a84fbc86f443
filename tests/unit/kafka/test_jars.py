"""Kafka's jars: a folder of one's own, sets that are whole or absent, damage that is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from conformance.errors import DataError, EnvironmentProblem, UserError
from conformance.kafka.jars import KafkaJars, chosen_jars, kafka_jars, kafka_lib, release_of
from conformance.kafka.maven import Coordinate, maven_jars

ONE = Coordinate("org.example", "one", "1.0")


def jar(path: Path, **files: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {"x": "", **files}.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


def distribution(folder: Path, version: str = "4.5.0-SNAPSHOT") -> Path:
    jar(folder / f"kafka_2.13-{version}.jar")
    properties = {"kafka__kafka-version.properties": f"commitId=abc\nversion={version}\n"}
    jar(folder / f"kafka-clients-{version}.jar", **properties)
    jar(folder / f"kafka-clients-{version}-test.jar")
    jar(folder / f"kafka-clients-{version}-sources.jar")
    jar(folder / "slf4j-api-1.7.36.jar")
    return folder


def test_a_folder_of_jars(tmp_path: Path) -> None:
    found = kafka_lib(distribution(tmp_path))
    assert found.version == "4.5.0-SNAPSHOT"
    assert found.release == (4, 5, 0)
    names = [path.name for path in found.classpath]
    assert names == [
        "kafka-clients-4.5.0-SNAPSHOT.jar",
        "kafka_2.13-4.5.0-SNAPSHOT.jar",
        "slf4j-api-1.7.36.jar",
    ]
    assert found.jar("kafka-clients").name == names[0]
    assert any("-test" in path.name for path in kafka_lib(tmp_path, tests=True).classpath)


def test_a_source_tree_that_was_built(tmp_path: Path) -> None:
    built = distribution(tmp_path / "elsewhere")
    for path in built.glob("*.jar"):
        module = "clients" if "clients" in path.name else "core"
        place = "libs" if "kafka" in path.name else "dependant-libs-2.13.18"
        target = tmp_path / "tree" / module / "build" / place / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    assert len(kafka_lib(tmp_path / "tree").classpath) == 3


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a folder"):
        kafka_lib(tmp_path / "absent")
    with pytest.raises(UserError, match="holds no Kafka"):
        kafka_lib(tmp_path)
    distribution(tmp_path)
    (tmp_path / "lz4-1.0.jar").write_bytes(b"half a jar")
    with pytest.raises(DataError, match=r"lz4-1\.0\.jar is damaged"):
        kafka_lib(tmp_path)


def test_options_and_environment_name_the_folder(tmp_path: Path) -> None:
    distribution(tmp_path)
    assert chosen_jars(None, tmp_path).version == "4.5.0-SNAPSHOT"
    environ = {"KCONFORM_KAFKA_LIB": str(tmp_path)}
    assert chosen_jars(None, None, environ=environ).version == "4.5.0-SNAPSHOT"
    with pytest.raises(UserError, match="not both"):
        chosen_jars("3.8.1", tmp_path)


@pytest.mark.parametrize("version", ["3.x", "trunk", "", "3.8", "../3.8.1"])
def test_a_version_that_is_none(version: str) -> None:
    with pytest.raises(UserError, match="no released version"):
        kafka_jars(version)


def test_versions_compare_as_numbers() -> None:
    assert release_of("3.10.0") > release_of("3.9.1")
    assert release_of("4.5.0-SNAPSHOT") == (4, 5, 0)


def test_a_jar_that_is_not_among_them() -> None:
    jars = KafkaJars("3.8.1", (Path("kafka-clients-3.8.1-test.jar"),))
    with pytest.raises(DataError, match="no kafka-clients"):
        jars.jar("kafka-clients")


def cached(cache: Path) -> Path:
    """A set as a fetch leaves it."""
    key = hashlib.sha256(repr(ONE).encode()).hexdigest()[:12]
    folder = cache / "jars" / f"one-{key}"
    content = jar(folder / "one-1.0.jar").read_bytes()
    sums = {"one-1.0.jar": hashlib.sha256(content).hexdigest()}
    (folder / "jars.json").write_text(json.dumps(sums), "utf-8")
    return folder


def test_a_set_that_was_fetched_is_taken_without_network(tmp_path: Path) -> None:
    folder = cached(tmp_path)
    environ = {"KCONFORM_CACHE": str(tmp_path), "PATH": ""}
    assert maven_jars("one", [ONE], environ=environ) == (folder / "one-1.0.jar",)


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "manifest"])
def test_damage_in_the_cache_is_noticed(tmp_path: Path, damage: str) -> None:
    folder = cached(tmp_path)
    path = folder / ("jars.json" if damage == "manifest" else "one-1.0.jar")
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flip" else content[:-5])
    with pytest.raises(DataError, match="Remove that folder and start again"):
        maven_jars("one", [ONE], environ={"KCONFORM_CACHE": str(tmp_path)})


def false_java(folder: Path, words: str, code: int = 1, *, jar_bytes: bytes = b"") -> Path:
    """A `java` that says it is Java 17 and, run as Ivy, prints `words` and maybe leaves a jar."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "java"
    script.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -version ]; then echo \'openjdk version "17.0.1"\' >&2; exit 0; fi\n'
        f"cat <<'WORDS'\n{words}\nWORDS\n"
        'for last; do :; done; folder=$(dirname "$last"); mkdir -p "$folder"\n'
        + (f"printf '{jar_bytes.decode()}' > \"$folder/one-1.0.jar\"\n" if jar_bytes else "")
        + f"exit {code}\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


def environ_with(java: Path, cache: Path) -> dict[str, str]:
    path = f"{java.parent}:{os.environ['PATH']}"
    return {"PATH": path, "KCONFORM_CACHE": str(cache), "HOME": str(cache)}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("\tHost repo.example not found. url=x", "cannot be reached"),
        ("Server access error at url x (Connection refused)", "cannot be reached"),
        ("\t\t:: org.example#one;1.0: not found", "has no org.example#one;1.0"),
        ("\t\t:: org.example#one;1.0!one.jar", "has no org.example#one;1.0"),
        ("java.lang.OutOfMemoryError", "Its last words: java.lang.OutOfMemoryError"),
    ],
)
def test_why_a_set_could_not_be_fetched(tmp_path: Path, words: str, message: str) -> None:
    java = false_java(tmp_path / "bin", words)
    with pytest.raises(EnvironmentProblem, match=message):
        maven_jars("one", [ONE], environ=environ_with(java, tmp_path / "cache"))
    assert not list((tmp_path / "cache" / "jars").glob("*one-*/*"))  # nothing half-fetched


def test_a_fetch_that_works_is_told_and_verified_ever_after(tmp_path: Path) -> None:
    words = (
        "\tfound org.example#one;1.0 in central\n\t[SUCCESSFUL ] org.example#one;1.0!one.jar (3ms)"
    )
    java = false_java(tmp_path / "bin", words, 0, jar_bytes=b"content")
    told: list[str] = []
    environ = environ_with(java, tmp_path / "cache")
    (path,) = maven_jars("one", [ONE], tell=told.append, environ=environ)
    assert path.read_bytes() == b"content"
    assert told == ["one: 1 artifacts found, one", "one: 1 of 1 jars fetched, one"]
    path.write_bytes(b"other")
    with pytest.raises(DataError):
        maven_jars("one", [ONE], environ=environ)
