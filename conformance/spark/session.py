"""Owns the SparkSession: the only module that makes, configures or stops one."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType, MappingProxyType, TracebackType
from typing import BinaryIO

from conformance.errors import DataError, EnvironmentProblem, UserError
from conformance.files import tells_of_no_space
from conformance.tla import find_java

try:
    from py4j.java_gateway import JavaGateway
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession
except ModuleNotFoundError as error:
    raise EnvironmentProblem(
        "So much is recorded, judged or audited on Spark, which is not installed here. Type "
        "`pip install 'kafka-conformance[spark]'`, or ask for less: docs/installation.md says what "
        "needs no Spark."
    ) from error

LOCAL = "local[*]"

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # An overflow or a missing element must be an error, never a quiet NULL.
        "spark.sql.ansi.enabled": "true",
        # HotSpot interprets methods above 8,000 bytecodes: such plans run faster ungenerated.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        # Room for 2M distinct transitions in the generated hash map; with the default (65,536)
        # the scan takes three times as long, since nearly every row misses it.
        "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "21",
        # A compiled formula nests as deep as the spec does; a pass resolves about one level.
        "spark.sql.analyzer.maxIterations": "1000",
        # TLA+ tells `s` from `S`.
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
    }
)
"""What the audit's queries rely on; set on any session, also on one that was there before."""

START_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Without it Spark reads flipped bytes of Parquet pages in silence.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)
"""What must be said before a session starts."""

LOCAL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.driver.memory": "2g",
        # Spark's default of 200 is for clusters: here the tasks would cost more than the work.
        "spark.sql.shuffle.partitions": "8",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
)
"""For a JVM of our own on this machine; a container's host name often has no address."""

SHORT = 1_000_000
"""Steps up to which the JVM's optimizing compiler was seen to cost more than it saves, by the clock
and in processor time; more were not tried. (TLC's runs have such a limit too:
`modelcheck.tlc.SHORT_RUN`.)"""

_LAUNCH: Callable[[SparkConf, dict[str, object]], JavaGateway] = launch_gateway  # untyped there


@contextmanager
def spark_session(
    master: str | None = None,
    *,
    name: str = "kconform",
    settings: Mapping[str, str] = MappingProxyType({}),
    steps: int | None = None,
) -> Iterator[SparkSession]:
    """A session on `master` (`local[*]` if none), stopped at the end if it was started here.

    `steps`: about how many it is to record or to judge; None: nobody knows, perhaps very many.
    A process that has a session keeps it, and under spark-submit the master and the memory that
    were given there stand. Raises EnvironmentProblem without a usable Java, or when Spark cannot
    start or reach the master.
    """
    if master is not None:
        _check_reachable(master)  # also where a session stands: what was named must be there
    active = SparkSession.getActiveSession()
    if active is not None:
        yield _configure(active, settings)
        return
    with _set_aside() as output, _own_interrupt():
        session = _start(master, name, settings, output, short=steps is not None and steps <= SHORT)
        interrupt = _Interrupt(session)
        try:
            with interrupt:
                yield session
        except (PySparkException, Py4JError) as error:
            if _STOPPED in str(error):
                raise EnvironmentProblem(
                    f"The Spark master {master or LOCAL} did not take this application, or ended "
                    "it: Spark has stopped. Check with its own page that it runs, that it is of "
                    "the installed pyspark's version, and that it has free workers."
                ) from error
            if tells_of_no_space(str(error)):
                raise DataError(
                    "Spark found no space left on a disk: that of the store, or that of "
                    f"{tempfile.gettempdir()}, where it keeps what it works on. Free some space, "
                    "or name another place (-o, TMPDIR)."
                ) from error
            raise
        finally:
            interrupt.stop()


_STOPPED = "stopped SparkContext"
"""What every call says once a master was given up, which takes Spark a minute."""
_CONNECT = 5.0
"""Seconds in which a master must take a connection, and again, in which it must answer."""
_ADDRESS = re.compile(r"([^\s,/:]+|\[[^\]]+\]):(\d{1,5})")


_STREAM = b"/files/asked-by-kconform"
"""A file that no master serves: what it says of it shows that it speaks Spark's protocol."""
_FRAME, _STREAM_REQUEST, _STREAM_FAILURE, _TLS_ALERT = struct.Struct(">qb"), 6, 8, 0x15
"""A frame's length, itself counted, and the type of its message, as Spark numbers them
(org.apache.spark.network.protocol.Message)."""


def _check_reachable(master: str) -> None:
    """EnvironmentProblem unless a master with an address answers; one of several.

    One that takes connections and is no Spark master would cost a minute: Spark asks three times.
    """
    scheme, _, rest = master.partition("://")
    addresses = _ADDRESS.findall(rest) if scheme in ("spark", "k8s") else []
    problems: list[str] = []
    for host, port in addresses:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _CONNECT) as connection:
                if scheme == "k8s" or _speaks_spark(connection):
                    return
            problems.append(f"{host}:{port}: what answers there is no Spark master")
        except TimeoutError:
            problems.append(f"{host}:{port}: no answer within {_CONNECT:.0f} seconds")
        except (OSError, OverflowError, UnicodeError) as error:
            problems.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    if problems:
        raise EnvironmentProblem(
            f"The Spark master {master} cannot be reached ({'; '.join(problems)}). Start it, or "
            "name another one with --master; without --master Spark runs on this machine."
        )


def _speaks_spark(connection: socket.socket) -> bool:
    """Whether the other side answers as Spark does, or wants TLS, which the JVM is to settle."""
    size = _FRAME.size + 4 + len(_STREAM)
    name = struct.pack(">i", len(_STREAM)) + _STREAM
    connection.sendall(_FRAME.pack(size, _STREAM_REQUEST) + name)
    answer = b""
    end = time.monotonic() + _CONNECT
    while len(answer) < _FRAME.size and answer[:1] != bytes([_TLS_ALERT]):
        connection.settimeout(max(end - time.monotonic(), 0.01))
        more = connection.recv(_FRAME.size - len(answer))
        if not more:
            return False
        answer += more
    return answer[0] == _TLS_ALERT or _FRAME.unpack(answer)[1] == _STREAM_FAILURE


class _Interrupt(AbstractContextManager[None]):
    """Ctrl-C or SIGTERM while Spark works: the jobs are cancelled, and KeyboardInterrupt comes out.

    Py4J has one connection for each thread. A call that a signal breaks off leaves its answer in
    there, and the thread's next call would wait for the job and take that answer for its own. So
    whatever else must be said to the JVM is said by another thread, and an error that comes of
    the broken connection is the interrupt's.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._came = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, self._end)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._came and isinstance(error, Exception):
            raise KeyboardInterrupt from error

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if not self._came:
            self._came = True
            _apart(self._session.sparkContext.cancelAllJobs)
        raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop the session; once interrupted, by another thread."""
        if self._came:
            _apart(self._session.stop)
        else:
            self._session.stop()


_PATIENCE = 20.0
"""Seconds for a JVM to obey after an interrupt. It ends with this process in any case."""


def _apart(call: Callable[[], object]) -> None:
    """Call in a thread, and wait a while; the JVM may have been interrupted, too, and be gone."""

    def called() -> None:
        with suppress(Exception):
            call()

    thread = threading.Thread(target=called, daemon=True)
    thread.start()
    thread.join(_PATIENCE)


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Give both signals back afterwards: what follows has no jobs to cancel."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _set_aside() -> Iterator[BinaryIO]:
    """A file for what the JVM and Python's workers say; shown if all ends with our own fault.

    The JVM opens with warnings of its own (incubator modules, native libraries), on which nobody
    can act who runs an audit. Py4J logs an interrupt as an error, with its traceback.
    """
    with tempfile.TemporaryFile() as random, os.fdopen(os.dup(random.fileno()), "w") as log:
        handler = logging.StreamHandler(log)
        logging.getLogger().addHandler(handler)
        try:
            yield random
        except (UserError, KeyboardInterrupt):
            raise
        except BaseException:
            sys.stderr.write(_tail(random))
            raise
        finally:
            logging.getLogger().removeHandler(handler)


def _tail(output: BinaryIO, size: int = 4000) -> str:
    """The last of what was said."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - size))
    return output.read().decode(errors="replace")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold an interrupt back until the end: a JVM that loses us while it starts never ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.signal(number, hold) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def _configure(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in {**SETTINGS, **settings}.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _start(
    master: str | None, name: str, settings: Mapping[str, str], output: BinaryIO, *, short: bool
) -> SparkSession:
    wanted = {**SETTINGS, **START_SETTINGS}
    builder = SparkSession.builder.appName(name)
    conf = SparkConf(loadDefaults=False).setAppName(name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit: the JVM is there already
    if not submitted:
        _export_java_home()
        if (master or LOCAL).startswith("local"):
            # Spark's default is PATH's python3, which need not be that of our environment.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        conf, builder = conf.setMaster(master or LOCAL), builder.master(master or LOCAL)
        wanted |= _own_jvm(master or LOCAL, short=short)
    for key, value in {**wanted, **settings}.items():
        builder, conf = builder.config(key, value), conf.set(key, value)
    try:
        if not submitted and SparkContext._gateway is None:
            with _uninterrupted():
                gateway = _LAUNCH(conf, {"stdout": output, "stderr": output})
            SparkContext(conf=conf, gateway=gateway)
        session = builder.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        raise EnvironmentProblem(
            f"Spark could not start on {master or LOCAL}: {_cause(error, output)}. Check "
            "that the master is reachable, that it runs the same version as the installed "
            "pyspark, and that Java is a full one (a JRE without java.management is not enough)."
        ) from error
    session.sparkContext.setLogLevel("OFF")
    # PySpark logs every error that it raises; ours reach the user as exceptions.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    return session


def _cause(error: Exception, output: BinaryIO) -> str:
    """The line that says most: Py4J's first line only names the call, a dead JVM has spoken."""
    lines = [line.removeprefix(":").strip() for line in str(error).splitlines()] or ["no reason"]
    if isinstance(error, Py4JError) and len(lines) > 1:
        return lines[1]
    last = [line.strip() for line in _tail(output).splitlines() if line.strip()]
    return f"{lines[0]} ({last[-1]})" if last else lines[0]


def _own_jvm(master: str, *, short: bool) -> dict[str, str]:
    config = Path(__file__).with_name("log4j2.properties")
    options = f"-Dlog4j2.configurationFile={config.as_uri()}"
    if not master.startswith("local"):
        return {"spark.driver.extraJavaOptions": options}
    # Tasks run in this JVM, and throughput is all that counts: G1 scans some 8% fewer steps/s.
    options += " -XX:+UseParallelGC"
    if short:
        options += " -XX:TieredStopAtLevel=1"
    return {"spark.driver.extraJavaOptions": options, **LOCAL_SETTINGS}


def _export_java_home() -> None:
    """PySpark finds its Java through JAVA_HOME or PATH only; ours may be in neither."""
    java, _ = find_java(os.environ)
    os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
