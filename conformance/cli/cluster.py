"""kconform cluster: real brokers on this machine, to try things on and to record."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from conformance.children import end_with_us
from conformance.cli.options import JsonOption, ReportOption, SeedOption
from conformance.cli.session import CommandSession, session
from conformance.client.process import arguments, python_first
from conformance.errors import UserError
from conformance.events import JsonValue, Progress, StageFinished, StageStarted
from conformance.files import check_file, check_folder
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.incidents import INCIDENTS, make
from conformance.kafka.jars import KafkaJars, chosen_jars
from conformance.kafka.maven import Tell, silent
from conformance.kafka.recording import ScenarioRun, record
from conformance.kafka.scenario import (
    NODE_FAULTS,
    Faults,
    Scenario,
    ScenarioPlan,
    faults_plan,
    read_plan,
)
from conformance.kafka.schemas import Schemas
from conformance.kafka.series import plans, record_series
from conformance.kafka.tap import TapThread, writer_to
from conformance.kafka.tapped import tapped
from conformance.printable import counted
from conformance.stages.context import Context
from conformance.stages.judging import unclear_lines
from conformance.stages.recorded import (
    WrittenTrace,
    announce,
    judge_written,
    left_out,
    recordings,
    spoiled,
    write_traces,
)
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.admin import OFFSETS_TOPIC
from conformance.systems.wire.leadership import move_leaders
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import security_of
from conformance.verdict import Verdict

VersionOption = Annotated[
    str | None, typer.Option("--kafka", help="A release of Kafka.", show_default="4.4.0")
]
LibOption = Annotated[
    Path | None,
    typer.Option("--kafka-lib", help="A folder of jars: your own build (KCONFORM_KAFKA_LIB)."),
]

_VERDICTS = {0: Verdict.PASS, 1: Verdict.FAIL, 3: Verdict.INCONCLUSIVE}
"""By exit code, as of every command."""
_DAY_S, _FOREVER_S = 86_400.0, 1e9
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Run real Kafka brokers on this machine; disturb and record them.",
)


def teller(work: CommandSession, stage: str) -> Tell:
    """Tells a live terminal how far a long wait is; in CI nothing."""
    done = 0

    def tell(line: str) -> None:
        nonlocal done
        done += 1
        work.emit(Progress(stage, done, None, line))

    work.emit(StageStarted(stage))
    return tell


def properties(pairs: list[str] | None) -> dict[str, str]:
    """`key=value` pairs of an option."""
    result = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"--set takes key=value, as in server.properties; {pair!r} is not.")
        result[key.strip()] = value.strip()
    return result


def _listeners(pairs: list[str] | None) -> dict[str, str]:
    """`NAME:PROTOCOL` of an option."""
    result = {}
    for pair in pairs or []:
        name, _, protocol = pair.partition(":")
        if not name.isalnum() or protocol not in _PROTOCOLS:
            raise UserError(f"--listener takes NAME:PROTOCOL, one of {', '.join(_PROTOCOLS)}.")
        result[name.upper()] = protocol
    return result


@app.callback()
def options() -> None:
    """Run real Kafka brokers on this machine; disturb and record them."""


@app.command("run")
def run(
    folder: Annotated[Path, typer.Argument(help="Where the nodes keep their data and logs.")],
    version: VersionOption = None,
    kafka_lib: LibOption = None,
    brokers: Annotated[int, typer.Option(min=1, max=9, help="Combined KRaft nodes.")] = 1,
    heap: Annotated[int, typer.Option(min=128, help="Heap of each node in MB.")] = 320,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A broker setting, key=value.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(help="A topic to create, NAME or NAME:PARTITIONS.")
    ] = None,
    listener: Annotated[
        list[str] | None,
        typer.Option(help="A further listener, NAME:SSL, NAME:SASL_SSL or NAME:SASL_PLAINTEXT."),
    ] = None,
    scram: Annotated[
        list[str] | None,
        typer.Option(help="A user: 'SCRAM-SHA-256=[name=alice,password=secret]'."),
    ] = None,
    tap: Annotated[
        Path | None,
        typer.Option(help="Write every message, between clients and brokers and among brokers."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="End after so long; 0: with Ctrl-C.")] = 0.0,
    command: Annotated[
        str,
        typer.Option(help="Run this, {bootstrap} filled in, and end with it; its verdict counts."),
    ] = "",
    faults: Annotated[
        str, typer.Option(help=f"Faults of brokers, with commas: {', '.join(NODE_FAULTS)}.")
    ] = "",
    every: Annotated[float, typer.Option(min=1.0, help="Seconds from fault to fault.")] = 12.0,
    fault_seconds: Annotated[float, typer.Option(min=0.5, help="How long a fault lasts.")] = 4.0,
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start brokers, print their addresses, and end them with Ctrl-C, a signal or a command."""
    with session("cluster", as_json=as_json) as work:
        if tap is not None:
            check_file(tap)
        started = time.monotonic()
        tell = teller(work, "cluster")
        drawn = Faults(_split(faults), every, seconds=fault_seconds)
        plan = _faults(drawn, brokers, work.settings.seed if seed is None else seed)
        jars = chosen_jars(version, kafka_lib, tell=tell)
        schemas = Schemas.of(jars.classpath)
        settings = ClusterSettings(
            brokers=brokers,
            heap_mb=heap,
            properties=properties(setting),
            listeners=_listeners(listener),
            scram=tuple(scram or ()),
        )
        with ExitStack() as stack:
            taps: TapThread | None = None
            ends = None
            if tap is not None or "isolate" in drawn.actions:
                ends, links = tapped(range(1, brokers + 1))
                messages = tap or Path(os.devnull)
                messages.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(messages.open("w", encoding="utf-8"))
                taps = stack.enter_context(TapThread(schemas, links, writer_to(file)))
            cluster = Cluster(jars, folder, settings, schemas=schemas, endpoints=ends, tell=tell)
            stack.enter_context(cluster)
            for wanted in topic or []:
                name, _, partitions = wanted.partition(":")
                cluster.create_topic(name, partitions=int(partitions or 1))
            work.say(f"Kafka {jars.version} is ready: bootstrap.servers={cluster.bootstrap}")
            for name in settings.listeners:
                work.say(f"  {name}: {cluster.addresses(name)}")
            verdict = Verdict.PASS
            disturbed = ScenarioRun(plan, cluster, taps, {}, silent)
            try:
                if command:
                    verdict = _verdict_of(command, cluster.bootstrap, disturbed.drive)
                else:
                    until = time.monotonic() + (seconds or _FOREVER_S)
                    disturbed.drive(lambda: time.monotonic() < until)
            except KeyboardInterrupt:
                work.say("stopping")
            cluster.stop()
            for line in disturbed.lines():
                work.say(line)
            summary = f"{counted(brokers, 'broker')} of Kafka {jars.version}"
            if drawn.actions:
                summary += f", {counted(disturbed.happened, 'fault')}"
                if verdict is Verdict.PASS and not disturbed.happened:
                    work.say("no fault happened: let the command take longer, or lower --every")
                    verdict = Verdict.INCONCLUSIVE
            if taps is not None:
                summary += f", {taps.passed} messages, {taps.undecoded} of them not decoded"
        spent = time.monotonic() - started
        work.emit(StageFinished("cluster", "run", verdict, spent, summary))


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _faults(drawn: Faults, brokers: int, seed: int) -> ScenarioPlan:
    """The faults of a day, none if no action is named. Raises UserError."""
    if not drawn.actions:
        return ScenarioPlan(Scenario(brokers=brokers, seconds=_FOREVER_S), seed, "")
    return faults_plan(brokers, seed, drawn, _DAY_S)


def _verdict_of(
    command: str, bootstrap: str, meanwhile: Callable[[Callable[[], bool]], None] | None = None
) -> Verdict:
    """Run a command on the brokers; what its exit code says. UserError for one that says nothing.

    `kconform` is this one. What the command prints does not get among our JSON. `meanwhile` is
    done as long as what it is given holds: that the command runs.
    """
    words = python_first(arguments(command, {"bootstrap": bootstrap}))
    if words[0] == "kconform":
        words[:1] = [sys.executable, "-m", "conformance.cli"]
    try:
        with subprocess.Popen(words, stdout=sys.stderr) as process:
            end_with_us(process)
            if meanwhile is not None:
                meanwhile(lambda: process.poll() is None)
            code = process.wait()
    except OSError as error:
        raise UserError(f"The command cannot be started: {error}.") from error
    if code not in _VERDICTS:
        raise UserError(f"The command ended with {code}: {shlex.join(words)}")
    return _VERDICTS[code]


@app.command("record")
def record_command(
    scenario: Annotated[Path, typer.Option(help="A TOML file (docs/cluster.md).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    seed: SeedOption = None,
    version: VersionOption = None,
    kafka_lib: LibOption = None,
    runs: Annotated[
        int,
        typer.Option(
            min=1, help="Several runs on one start of the brokers, each with its own recording."
        ),
    ] = 1,
    judge: Annotated[
        bool, typer.Option("--judge", help="Then judge every partition and group of it.")
    ] = False,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario with real clients and faults; keep what tap, agent and disks tell."""
    with session("cluster", as_json=as_json, report=report) as work:
        check_folder(output)
        started = time.monotonic()
        tell = teller(work, "record")
        plan = read_plan(scenario, work.settings.seed if seed is None else seed)
        jars = chosen_jars(version, kafka_lib, tell=tell)
        if runs > 1:
            recording_report = _record_series(plan, runs, jars, output, tell)
        else:
            recording_report = _record_one(plan, jars, output, tell)
        figures: dict[str, JsonValue] = {**recording_report.figures, "seed": plan.seed}
        spent = time.monotonic() - started
        work.emit(
            StageFinished(
                "record",
                scenario.stem,
                recording_report.verdict,
                spent,
                recording_report.summary,
                figures,
            )
        )
        for line in recording_report.lines:
            work.say(line)
        if judge:
            _judge(work, output, None)


@dataclass(frozen=True, slots=True)
class _RecordingReport:
    """The report on a recording."""

    summary: str
    figures: dict[str, JsonValue]
    verdict: Verdict = Verdict.PASS
    lines: tuple[str, ...] = ()


def _record_one(plan: ScenarioPlan, jars: KafkaJars, output: Path, tell: Tell) -> _RecordingReport:
    made = record(plan, jars, output, tell=tell)
    summary = (
        f"{made.messages} messages ({made.undecoded} not decoded), "
        f"{counted(made.observations, 'observation')}, {counted(made.faults, 'fault')}"
    )
    figures: dict[str, JsonValue] = {
        "messages": made.messages,
        "undecoded": made.undecoded,
        "observations": made.observations,
        "faults": made.faults,
    }
    return _RecordingReport(summary, figures)


def _record_series(
    plan: ScenarioPlan, runs: int, jars: KafkaJars, output: Path, tell: Tell
) -> _RecordingReport:
    made = record_series(plans(plan, runs), jars, output, tell=tell)
    summary = (
        f"{counted(made.runs, 'run')}, {counted(made.observations, 'observation')}, "
        f"{counted(made.faults, 'fault')}"
    )
    lines = [f"{name} is spoiled: {why}" for name, why in made.spoiled.items()]
    if made.runs < runs:
        lines.append(
            f"The brokers were not in order after run {made.runs}: {runs - made.runs} runs are not "
            "made. Record them with another seed."
        )
    figures: dict[str, JsonValue] = {
        "runs": made.runs,
        "spoiled": len(made.spoiled),
        "observations": made.observations,
        "faults": made.faults,
    }
    verdict = Verdict.INCONCLUSIVE if lines else Verdict.PASS
    return _RecordingReport(summary, figures, verdict, tuple(lines))


RecordingArgument = Annotated[
    Path, typer.Argument(help="A folder that `cluster record` wrote, of one run or of a series.")
]


@app.command("incident")
def incident_command(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(INCIDENTS)}.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    seed: SeedOption = None,
    version: VersionOption = None,
    kafka_lib: LibOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let an incident happen on three brokers; keep copies of their files (docs/incident.md)."""
    with session("cluster", as_json=as_json) as work:
        check_folder(output)
        started = time.monotonic()
        tell = teller(work, "incident")
        jars = chosen_jars(version, kafka_lib, tell=tell)
        make(name, jars, output, seed=work.settings.seed if seed is None else seed, tell=tell)
        folders = " ".join(f"b{number}={output}/b{number}/data" for number in (1, 2, 3))
        work.say(f"kconform inspect {folders} --logs '{output}/*/server.log' -o findings")
        spent = time.monotonic() - started
        summary = f"Kafka {jars.version}: {INCIDENTS[name].summary}"
        work.emit(StageFinished("incident", str(output), Verdict.PASS, spent, summary))


@app.command("traces")
def traces_command(
    recording: RecordingArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")],
    as_json: JsonOption = False,
) -> None:
    """Make events of the specifications of a recording, and the mappings to judge them with."""
    with session("cluster", as_json=as_json) as work:
        check_folder(output)
        started = time.monotonic()
        made = _written(work, recording, output)
        for trace in made:
            work.say(trace.command)
        count = sum(len(trace.trace.events) for trace in made)
        summary = f"{len(made)} partitions and groups, {counted(count, 'event')}"
        spent = time.monotonic() - started
        work.emit(StageFinished("traces", str(output), Verdict.PASS, spent, summary))


@app.command("judge")
def judge_command(
    recording: RecordingArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Where traces are written.", show_default="RECORDING/traces"
        ),
    ] = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge every partition by Replication and every group by GroupMembership."""
    with session("cluster", as_json=as_json, report=report) as work:
        if output is not None:
            check_folder(output)
        _judge(work, recording, output)


def _judge(work: CommandSession, recording: Path, output: Path | None) -> None:
    """One stage for each trace: what fails is told with the command that judges it again."""
    context = Context(work.settings, work.emit)
    written = _written(work, recording, output)
    announce(context, written)
    for trace in written:
        for line in unclear_lines(judge_written(context, trace)):
            work.say(line)


def _written(work: CommandSession, recording: Path, output: Path | None) -> list[WrittenTrace]:
    """The traces of a recording, or of each run of a series; what is left out is told."""
    written: list[WrittenTrace] = []
    for folder in recordings(recording):
        if why := spoiled(folder):
            work.say(f"{folder} is left out: {why}")
            continue
        written += write_traces(folder, _traces_folder(recording, folder, output))
        if why := left_out(folder):
            work.say(why)
    return written


def _traces_folder(recording: Path, path: Path, output: Path | None) -> Path:
    """Where the traces of one recording go, of a series perhaps."""
    return path / "traces" if output is None else output / path.relative_to(recording)


@app.command("move")
def move(
    address: Annotated[str, typer.Argument(help="HOST:PORT of a broker.")],
    topic: Annotated[str, typer.Option(help="The topic whose leaders move.")] = OFFSETS_TOPIC,
    config: Annotated[
        Path | None, typer.Option("--wire-config", help="A Kafka client's properties (TLS, SASL).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Let other replicas lead a topic's partitions: by default, move the group coordinators."""
    with session("cluster", as_json=as_json) as work:
        started = time.monotonic()
        settings = str(config) if config else ""
        port = Port(parse_address(address), security_of(settings, ""))
        try:
            moved = move_leaders(port, topic)
        except SystemFailed as error:
            raise UserError(f"The leaders of {topic} cannot be moved: {error}") from error
        finally:
            port.close()
        text = ", ".join(f"{index}: {old} to {new}" for index, (old, new) in moved.items())
        spent = time.monotonic() - started
        work.emit(StageFinished("move", topic, Verdict.PASS, spent, f"leaders of {text}"))
