"""Runs TLC as a subprocess that leaves nothing behind, whatever happens to it or to us."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from conformance.children import end_with_us
from conformance.errors import EnvironmentProblem
from conformance.modelcheck.form import Simulation
from conformance.modelcheck.tlc_output import MessageCode, Transcript, messages, statistics
from conformance.tla import Tools, library_path

OnProgress = Callable[[int, int], None]
"""Called with generated and distinct states whenever TLC reports them (once a minute)."""

_KILL_AFTER = 5.0
"""Seconds between asking a JVM to end and making it."""


@dataclass(frozen=True, slots=True)
class TlcOptions:
    """How to run TLC. One worker: only then is the counterexample the shortest."""

    workers: int = 1
    heap: str = "2g"
    timeout: float | None = None
    """Seconds of wall clock; None waits for ever."""
    optimize: bool | None = None
    """Whether the JVM's optimizing compiler runs; None: unless the run is known to be short."""


SHORT_RUN = 20_000
"""Distinct states below which the JVM's optimizing compiler costs more than it saves: a fifth
of the processor time of a run of 7,000 states; above, it halves the time."""


@dataclass(frozen=True, slots=True)
class TlcJob:
    """What to run: a root module and, in the same folder, its configuration; where else modules
    are; what to dump; whether the run is short; whether to simulate."""

    module: Path
    config: Path
    search: tuple[Path, ...] = ()
    check_deadlock: bool = False
    dump: Path | None = None
    short: bool = False
    """A run so short that the JVM's optimizing compiler would cost more than it saves."""
    simulation: Simulation | None = None


@dataclass(frozen=True, slots=True)
class TlcResult:
    """TLC's own exit code (negative: killed by that signal) and all that it said."""

    exit_code: int
    timed_out: bool
    seconds: float
    transcript: Transcript


class Cancelled(Exception):
    """The run was stopped through its `Processes`."""


class Processes(AbstractContextManager["Processes"]):
    """The JVMs that are running, so that all can be ended at once; closing ends them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._closed = False

    def start(
        self, command: list[str], cwd: Path, *, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        """Start one, in a session of its own: an interrupt at the terminal comes to us first."""
        with self._lock:
            if self._closed:
                raise Cancelled
            process = subprocess.Popen(
                command,
                cwd=cwd,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            end_with_us(process)
            self._running.add(process)
            return process

    def __len__(self) -> int:
        """How many there are."""
        return len(self._running)

    def end(self, process: subprocess.Popen[str]) -> None:
        """End it if it still runs, and wait for it."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_KILL_AFTER)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with self._lock:
            self._running.discard(process)

    @property
    def closed(self) -> bool:
        """Whether everything was told to end."""
        return self._closed

    def close(self) -> None:
        """End all that run and start no more."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            self.end(process)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def run_tlc(
    job: TlcJob,
    tools: Tools,
    options: TlcOptions,
    processes: Processes,
    on_progress: OnProgress,
) -> TlcResult:
    """Run TLC to its end, its time limit or the closing of `processes` (Cancelled)."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tlc-") as scratch:
        command = tlc_command(job, tools, options, Path(scratch))
        try:
            process = processes.start(command, job.module.parent)
        except OSError as error:
            raise EnvironmentProblem(f"Java ({tools.java}) does not start: {error}.") from error
        watch = TlcWatch(processes, process, options.timeout)
        try:
            transcript = listen(process.stdout or (), on_progress)
            process.wait()
        finally:
            watch.stop()
            processes.end(process)
            if process.stdout is not None:
                process.stdout.close()
    if processes.closed:
        raise Cancelled
    return TlcResult(process.returncode, watch.fired, time.monotonic() - started, transcript)


def tlc_command(job: TlcJob, tools: Tools, options: TlcOptions, scratch: Path) -> list[str]:
    """The command line; only options that TLC 2.15 and today's TLC share."""
    library = f"-DTLA-Library={library_path(job.module, job.search)}"
    jvm = (*jvm_options(options, scratch, optimize=optimizes(job, options)), library)
    return tools.command("tlc2.TLC", *tlc_arguments(job, options, scratch), jvm=jvm)


def jvm_options(options: TlcOptions, scratch: Path, *, optimize: bool) -> tuple[str, ...]:
    """What a JVM for TLC is started with, whatever the job."""
    return (
        f"-Xmx{options.heap}",
        # Recursive operators over long logs: code that is not optimized has the larger frames.
        "-Xss8m",
        "-XX:+UseSerialGC" if options.workers == 1 else "-XX:+UseParallelGC",
        # TLC unpacks its standard modules there; two runs would disturb each other.
        f"-Djava.io.tmpdir={scratch}",
        "-Dfile.encoding=UTF-8",
        "-Dstdout.encoding=UTF-8",
        *(() if optimize else ("-XX:TieredStopAtLevel=1",)),
    )


def tlc_arguments(job: TlcJob, options: TlcOptions, scratch: Path) -> list[str]:
    """What TLC's main method gets; the module and its configuration are found in its library."""
    # A fixed fingerprint polynomial: the same run gives the same collision probability.
    arguments = ["-tool", "-cleanup", "-metadir", str(scratch / "states"), "-fp", "0"]
    arguments += ["-workers", str(options.workers), "-config", job.config.name]
    if not job.check_deadlock:
        arguments.append("-deadlock")
    if job.dump is not None:
        arguments += ["-dump", "dot,actionlabels", str(job.dump.absolute())]
    if (simulation := job.simulation) is not None:
        # TLC's own default seed is the time; aril is what else its random choices depend on.
        arguments += ["-simulate", f"num={simulation.behaviours}", "-depth", str(simulation.depth)]
        arguments += ["-seed", str(simulation.seed), "-aril", "0"]
    (scratch / "states").mkdir()
    return [*arguments, job.module.name]


def optimizes(job: TlcJob, options: TlcOptions) -> bool:
    """Whether the JVM's optimizing compiler pays for a job."""
    return not job.short if options.optimize is None else options.optimize


def listen(lines: Iterable[str], on_progress: OnProgress) -> Transcript:
    """All that TLC says, read while it runs."""
    transcript = Transcript()
    for message in messages(lines):
        transcript.add(message)
        if message.code == MessageCode.PROGRESS and (numbers := statistics(message.text)):
            on_progress(*numbers)
        elif message.code == MessageCode.PROGRESS_SIMULATION and transcript.generated_states:
            on_progress(transcript.generated_states, 0)
    return transcript


class TlcWatch:
    """Ends the process when its time is over; `fired` says that it did."""

    def __init__(
        self, processes: Processes, process: subprocess.Popen[str], seconds: float | None
    ) -> None:
        self.fired = False
        self._processes, self._process = processes, process
        self._timer = None if seconds is None else threading.Timer(seconds, self._fire)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def _fire(self) -> None:
        self.fired = True
        self._processes.end(self._process)

    def stop(self) -> None:
        """The process ended by itself, or somebody else ends it."""
        if self._timer is not None:
            self._timer.cancel()
