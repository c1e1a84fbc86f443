"""The bridge's process: compiled at first use against a version's jars, then started."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from conformance.kafka.jars import KafkaJars
from conformance.kafka.java import compile_java
from conformance.kafka.maven import Tell, silent
from conformance.systems.external import ProcessTransport
from conformance.tla import find_java

SOURCES = Path(__file__).parent / "java"
_MAIN = "kconform.Bridge"
_OPTIONS = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xshare:auto",
)
"""One heap for thousands of resets, one thread that works: the serial collector is the quickest.

The time is spread thinly over much of Kafka: after 2,400 resets C2 has still not made one cheaper,
and until then it takes as much of the processor as the steps themselves."""

_BINDINGS = ("slf4j-reload4j", "slf4j-log4j", "log4j-slf4j", "logback-classic")
"""Left out: without a binding of slf4j nothing is logged, and steps are the quicker for it."""

_MEMORY = Path("/dev/shm")


def bridge_command(jars: KafkaJars, tell: Tell = silent) -> str:
    """The command line that starts the bridge, but for its folder. EnvironmentProblem if it does
    not compile against these jars."""
    sources = sorted(SOURCES.rglob("*.java"))
    classes = compile_java(sources, jars.classpath, tell=tell)
    java, _ = find_java(os.environ)
    quiet = [jar for jar in jars.classpath if not jar.name.startswith(_BINDINGS)]
    path = os.pathsep.join(map(str, [classes, *quiet]))
    return shlex.join([str(java), *_OPTIONS, "-cp", path, _MAIN])


class BridgeTransport:
    """A bridge with a folder for its brokers' disks, which is removed with it.

    In memory where that is possible: what is tested is which files are written and read, not how
    long a disk takes.
    """

    def __init__(self, command: str) -> None:
        in_memory = "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK)
        self._folder = tempfile.mkdtemp(
            prefix="kconform-kafka-", dir=_MEMORY if in_memory else None
        )
        try:
            self._process = ProcessTransport(f"{command} {shlex.quote(self._folder)}")
        except BaseException:
            self._remove()
            raise

    def exchange(self, line: bytes, seconds: float) -> bytes:
        """Send a line and wait for one."""
        return self._process.exchange(line, seconds)

    def last_words(self) -> str:
        """The end of what the process wrote to standard error."""
        return self._process.last_words()

    def hang_up(self) -> None:
        """Let the process end, without waiting for it."""
        self._process.hang_up()

    def close(self) -> None:
        """Let the process end, and remove its folder."""
        self._process.close()
        self._remove()

    def kill(self) -> None:
        """The same, without waiting for it to end by itself."""
        self._process.kill()
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
