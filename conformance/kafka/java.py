"""Compiles Java sources that belong to kconform: javac where a JDK is, else Eclipse's compiler."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from conformance.errors import EnvironmentProblem
from conformance.kafka.maven import Coordinate, Tell, maven_jars, sha256_of, silent
from conformance.modelcheck.cache import cache_dir
from conformance.tla import find_java

RELEASE = 17
"""The Java that our sources are written for, and the oldest that runs them."""

_SUMS = "kconform-sums.json"
"""Beside the classes: the SHA-256 of each file as it was compiled."""

ECJ = Coordinate("org.eclipse.jdt", "ecj", "3.33.0")


def compile_java(
    sources: Sequence[Path],
    classpath: Sequence[Path],
    *,
    resources: Mapping[str, str] | None = None,
    tell: Tell = silent,
    environ: Mapping[str, str] | None = None,
) -> Path:
    """The folder of classes made from `sources`, from the cache if nothing has changed.

    `resources` are text files to lie beside the classes, by their path. The key is the content of
    sources and jars and the kind of compiler. Raises EnvironmentProblem with the compiler's own
    words when the sources do not compile: the jars are then of a version that we cannot drive.
    """
    env = os.environ if environ is None else environ
    java, _ = find_java(env)
    extra = dict(resources or {})
    folder = cache_dir(env) / "java" / _key(sources, classpath, extra)
    if _is_whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    tell(f"compiling {len(sources)} Java sources")
    with tempfile.TemporaryDirectory(prefix=".compile-", dir=folder.parent) as aside:
        classes = Path(aside) / "classes"
        classes.mkdir()
        _compile(_compiler(java, tell, env), sources, classpath, classes)
        for name, text in extra.items():
            (classes / name).parent.mkdir(parents=True, exist_ok=True)
            (classes / name).write_text(text, encoding="utf-8")
        (classes / _SUMS).write_text(json.dumps(_sums(classes)), encoding="utf-8")
        _settle(classes, folder)
    return folder


def _sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != _SUMS)
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def _is_whole(folder: Path) -> bool:
    """Whether the files are those that were compiled. A class that is cut off or missing, as after
    a crash of the machine, would be an exception of the system under test."""
    try:
        expected = json.loads((folder / _SUMS).read_text(encoding="utf-8"))
        return bool(_sums(folder) == expected)
    except (OSError, ValueError):
        return False


def _settle(classes: Path, folder: Path) -> None:
    """Rename; another process may have been quicker with the same. What is damaged goes."""
    if folder.is_dir() and not _is_whole(folder):
        with suppress(OSError):
            folder.rename(classes.with_name("damaged"))
    try:
        classes.rename(folder)
    except OSError:
        if not _is_whole(folder):
            raise


def _key(sources: Iterable[Path], classpath: Iterable[Path], resources: Mapping[str, str]) -> str:
    # With the sums: folders of an earlier kconform have none, and their processes may be running.
    digest = hashlib.sha256(f"{RELEASE} {_SUMS}".encode())
    for path in (*sources, *classpath):
        content = sha256_of(path) if path.is_file() else str(path)
        digest.update(f"{path.name}={content};".encode())
    for name, text in sorted(resources.items()):
        digest.update(f"{name}={text};".encode())
    return digest.hexdigest()[:24]


_SHORT_RUN = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""Without the JVM's second compiler javac takes 4 s of processor time, with it 10 (Kafka 4.4.0)."""


def _compiler(java: Path, tell: Tell, environ: Mapping[str, str]) -> list[str]:
    """javac beside the Java that runs, else Eclipse's compiler on it."""
    javac = java.resolve().with_name("javac")
    if javac.is_file():
        return [str(javac), *_SHORT_RUN, "--release", str(RELEASE), "-Xlint:none", "-nowarn"]
    jars = maven_jars("ecj", [ECJ], tell=tell, environ=environ)
    main = "org.eclipse.jdt.internal.compiler.batch.Main"
    path = os.pathsep.join(map(str, jars))
    # Not --release: that needs a file of the JDK, which a JRE lacks.
    return [str(java), "-cp", path, main, f"-{RELEASE}", "-nowarn"]


def _compile(
    compiler: Sequence[str], sources: Sequence[Path], classpath: Sequence[Path], classes: Path
) -> None:
    command = [*compiler, "-encoding", "UTF-8", "-proc:none", "-d", str(classes)]
    command += ["-cp", os.pathsep.join(map(str, classpath)), *map(str, sources)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        words = (answer.stderr + answer.stdout).strip()
        raise EnvironmentProblem(
            "The Java sources that drive Kafka do not compile against these jars; they are of a "
            f"version that kconform does not know. The compiler says:\n{words[-3000:].strip()}"
        )
