"""Fetches jars from Maven repositories with the Ivy that PySpark carries, into kconform's cache.

A set of jars is a folder that appears whole or not at all, with the SHA-256 of every jar beside
them; later use verifies it. The user's own settings hold: `KCONFORM_IVY_SETTINGS` (an Ivy settings
file), Spark's `DEFAULT_ARTIFACT_REPOSITORY`, a mirror of ~/.m2/settings.xml, and what
JAVA_TOOL_OPTIONS tells every JVM.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from conformance.children import end_with_us
from conformance.errors import DataError, EnvironmentProblem
from conformance.files import no_space, space_for, tells_of_no_space
from conformance.modelcheck.cache import cache_dir
from conformance.tla import find_java

Tell = Callable[[str], None]
"""Takes one line on how far a long piece of work is."""

_MANIFEST = "jars.json"
_DOWNLOADED = re.compile(r"\[SUCCESSFUL ]\s+\S+#([^;]+);")
_FOUND = re.compile(r"^\s*found \S+#([^;]+);")
_MISSING = re.compile(r"::\s+(\S+#\S+;\S+?)(?:: not found|!\S+)\s*$", re.MULTILINE)
_UNREACHABLE = re.compile(
    r"(Host \S+ not found|Server access error|Connection (refused|timed out|reset)"
    r"|UnknownHostException|No route to host|PKIX|SSLHandshake)",
    re.IGNORECASE,
)


def silent(line: str) -> None:
    """A `Tell` for callers that want only the result."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A jar of a Maven repository. With a classifier it comes alone, without what it depends on."""

    group: str
    artifact: str
    version: str
    classifier: str = ""
    excluded: tuple[str, ...] = ()
    """Artifacts that it declares and that are not wanted."""

    def __str__(self) -> str:
        name = f"{self.group}:{self.artifact}:{self.version}"
        return f"{name}:{self.classifier}" if self.classifier else name


class NotInRepository(EnvironmentProblem):
    """The repositories answered, and one of the coordinates is not there."""


def maven_jars(
    name: str,
    coordinates: Sequence[Coordinate],
    *,
    tell: Tell = silent,
    environ: Mapping[str, str] | None = None,
) -> tuple[Path, ...]:
    """The jars of `coordinates` and what they need at run time, sorted by name.

    Fetched at the first use into the cache's folder `jars/NAME-<hash of the coordinates>`.
    Raises EnvironmentProblem (no Java, no network), NotInRepository, DataError (a damaged jar).
    """
    env = os.environ if environ is None else environ
    key = hashlib.sha256("\n".join(map(repr, coordinates)).encode()).hexdigest()[:12]
    folder = cache_dir(env) / "jars" / f"{name}-{key}"
    if not folder.is_dir():
        with _locked(folder):
            if not folder.is_dir():
                _fetch(name, folder, coordinates, env, tell)
    return _verified(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _verified(folder: Path) -> tuple[Path, ...]:
    """The folder's jars, each with the SHA-256 that it had when it was fetched."""
    try:
        sums: dict[str, str] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        for jar, expected in sums.items():
            if sha256_of(folder / jar) != expected:
                raise ValueError(f"{jar} is not what was fetched")
    except (OSError, ValueError) as error:
        raise DataError(
            f"The jars in {folder} are damaged ({error}). Remove that folder and start again: "
            "they are fetched once more."
        ) from error
    return tuple(folder / jar for jar in sorted(sums))


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(
    name: str,
    folder: Path,
    coordinates: Sequence[Coordinate],
    environ: Mapping[str, str],
    tell: Tell,
) -> None:
    """Resolve and retrieve beside `folder`, then rename."""
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as aside:
        work = Path(aside)
        (work / "ivy.xml").write_text(_ivy_module(coordinates), encoding="utf-8")
        (work / "settings.xml").write_text(_ivy_settings(work, environ), encoding="utf-8")
        settings = environ.get("KCONFORM_IVY_SETTINGS") or str(work / "settings.xml")
        _run_ivy(name, work, settings, coordinates, environ, tell)
        with space_for(folder):
            jars = sorted((work / "jars").glob("*.jar"))
            sums = {jar.name: sha256_of(jar) for jar in jars}
            text = json.dumps(sums, indent=1)
            (work / "jars" / _MANIFEST).write_text(text, encoding="utf-8")
            (work / "jars").rename(folder)


def _run_ivy(
    name: str,
    work: Path,
    settings: str,
    coordinates: Sequence[Coordinate],
    environ: Mapping[str, str],
    tell: Tell,
) -> None:
    """Run Ivy in a JVM of its own, telling each artifact that it has found or downloaded."""
    java, _ = find_java(environ)
    pattern = f"{work}/jars/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(java), "-Xmx256m", "-jar", str(_ivy_jar()), "-novalidate"]
    command += ["-settings", settings, "-cache", str(work / "cache"), "-ivy", str(work / "ivy.xml")]
    command += ["-types", "jar", "bundle", "-confs", "default", "-retrieve", pattern]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(environ),
    ) as process:
        end_with_us(process)
        try:
            lines = list(_fetches(process, name, tell))
        except BaseException:
            process.kill()
            raise
    if process.returncode or not any((work / "jars").glob("*.jar")):
        raise _reason(coordinates, lines)


def _fetches(process: subprocess.Popen[str], name: str, tell: Tell) -> Iterator[str]:
    assert process.stdout is not None
    result = fetched = 0
    for line in process.stdout:
        if match := _FOUND.match(line):
            result += 1
            tell(f"{name}: {result} artifacts found, {match[1]}")
        elif (match := _DOWNLOADED.search(line)) and ".jar" in line:
            fetched += 1
            tell(f"{name}: {fetched} of {result} jars fetched, {match[1]}")
        yield line


def _reason(coordinates: Sequence[Coordinate], lines: Sequence[str]) -> EnvironmentProblem:
    """What Ivy's output says is wrong."""
    wanted = ", ".join(map(str, coordinates))
    text = "".join(lines)
    if tells_of_no_space(text):
        return EnvironmentProblem(str(no_space(cache_dir())))
    if _UNREACHABLE.search(text):
        where = _UNREACHABLE.search(text)
        return EnvironmentProblem(
            f"The Maven repository cannot be reached ({where[0] if where else ''}), so that "
            f"{wanted} could not be fetched. Check the network and the settings of Maven or Ivy "
            "(KCONFORM_IVY_SETTINGS, DEFAULT_ARTIFACT_REPOSITORY, ~/.m2/settings.xml, proxies in "
            "JAVA_TOOL_OPTIONS), or use jars that are on this machine: --kafka-lib FOLDER."
        )
    missing = sorted(set(_MISSING.findall(text)))
    if missing:
        return NotInRepository(
            f"The Maven repository has no {', '.join(missing)} (wanted for {wanted}). Check the "
            "version, or use jars that are on this machine: --kafka-lib FOLDER."
        )
    tail = " ".join(line.strip() for line in lines[-12:] if line.strip())
    return EnvironmentProblem(
        f"{wanted} could not be fetched: Ivy ended with an error. Its last words: {tail}"
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise EnvironmentProblem(
        "PySpark's jars, of which Ivy fetches Kafka's, were not found. Type `pip install "
        "'kafka-conformance[spark]'`, or use jars that are on this machine: --kafka-lib FOLDER."
    )


def _ivy_module(coordinates: Sequence[Coordinate]) -> str:
    """An ivy.xml that depends on the coordinates."""
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="kconform" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(map(_dependency, coordinates))}</dependencies></ivy-module>"
    )


def _dependency(wanted: Coordinate) -> str:
    inner = "".join(f"<exclude module={quoteattr(name)}/>" for name in wanted.excluded)
    if wanted.classifier:
        name, kind = quoteattr(wanted.artifact), quoteattr(wanted.classifier)
        inner += f'<artifact name={name} type="jar" ext="jar" m:classifier={kind}/>'
    return (
        f"<dependency org={quoteattr(wanted.group)} name={quoteattr(wanted.artifact)} "
        f'rev={quoteattr(wanted.version)} conf="default-&gt;default" '
        f'transitive="{str(not wanted.classifier).lower()}">{inner}</dependency>'
    )


def _ivy_settings(work: Path, environ: Mapping[str, str]) -> str:
    """Settings with one repository: the user's mirror, or the one that Ivy knows as its own.

    Not the local Maven repository: it may hold a module's description without its jar, and Ivy
    then looks nowhere else for the jar.
    """
    home = Path(environ.get("HOME") or "~").expanduser()
    mirror = environ.get("DEFAULT_ARTIFACT_REPOSITORY") or _maven_mirror(home / ".m2")
    root = f" root={quoteattr(mirror)}" if mirror else ""
    return (
        '<ivysettings><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(work / 'cache'))} "
        f"resolutionCacheDir={quoteattr(str(work / 'resolution'))}/>"
        f'<resolvers><ibiblio name="central" m2compatible="true"{root}/></resolvers>'
        "</ivysettings>"
    )


def _maven_mirror(folder: Path) -> str | None:
    """The address that ~/.m2/settings.xml puts in the place of Maven Central."""
    try:
        root = ET.parse(folder / "settings.xml").getroot()
    except (OSError, ET.ParseError):
        return None
    for mirror in root.iterfind(".//{*}mirror"):
        names = (mirror.findtext("{*}mirrorOf") or "").replace(" ", "").split(",")
        if {"central", "*", "external:*"} & set(names) and "!central" not in names:
            return mirror.findtext("{*}url")
    return None
