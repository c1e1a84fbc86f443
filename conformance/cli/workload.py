"""kconform workload: makes a history with real clients."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from conformance.cli.cluster import LibOption, VersionOption, teller
from conformance.cli.history import judge_files
from conformance.cli.options import JsonOption, ReportOption, SeedOption
from conformance.cli.session import session
from conformance.errors import UserError
from conformance.events import StageFinished
from conformance.files import check_folder
from conformance.kafka.jars import chosen_jars
from conformance.printable import counted
from conformance.verdict import Verdict
from conformance.workload.plan import LIBRARIES, ProducerKind, WorkloadSettings
from conformance.workload.running import (
    WorkloadPlace,
    check_libraries,
    run_workload,
)


class PlainAcks(StrEnum):
    """What plain producers wait for."""

    ALL = "all"
    ONE = "1"
    NONE = "0"


def workload(
    bootstrap: Annotated[str, typer.Option(help="HOST:PORT of a broker, or several with commas.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the history.")],
    seconds: Annotated[float, typer.Option(min=1.0, help="How long clients go on.")] = 60.0,
    seed: SeedOption = None,
    clients: Annotated[str, typer.Option(help="Client libraries that take turns.")] = ",".join(
        LIBRARIES
    ),
    kinds: Annotated[str, typer.Option(help="How producers send.")] = ",".join(ProducerKind),
    topics: Annotated[int, typer.Option(min=1, help="Topics to create.")] = 1,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each.")] = 3,
    producers: Annotated[int, typer.Option(min=1, help="Producers of each kind.")] = 1,
    consumers: Annotated[int, typer.Option(min=1, help="Members of each group.")] = 2,
    acks: Annotated[PlainAcks, typer.Option(help="acks of plain producers.")] = PlainAcks.ALL,
    crash_every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between kills of a client; 0: none is killed.")
    ] = 6.0,
    unclean_election: Annotated[
        bool, typer.Option("--unclean-election", help="Topics allow unclean leader election.")
    ] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Then judge it, as history does.")] = False,
    version: VersionOption = None,
    kafka_lib: LibOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a history: real clients send, poll, commit, abort and die by a seeded plan."""
    with session("workload", as_json=as_json, report=report) as work:
        check_folder(output)
        if output.exists() and any(output.iterdir()):
            raise UserError(f"{output} is not empty. Name another folder with -o.")
        started = time.monotonic()
        settings = WorkloadSettings(
            seed=work.settings.seed if seed is None else seed,
            seconds=seconds,
            topics=_topics(topics),
            partitions=partitions,
            libraries=_names(clients),
            kinds=_kinds(kinds),
            acks=str(acks),
            producers=producers,
            consumers=consumers,
            crash_every=crash_every,
        )
        check_libraries(settings.libraries)
        tell = teller(work, "workload")
        jars = chosen_jars(version, kafka_lib, tell=tell) if "java" in settings.libraries else None
        place = WorkloadPlace(bootstrap, output, jars, unclean_election)
        made = run_workload(settings, place, tell)
        for problem in made.problems:
            work.say(problem)
        summary = (
            f"{counted(made.clients, 'client')}, {made.killed} of them killed; "
            f"{counted(len(made.files), 'file')}, seed {settings.seed}"
        )
        verdict = Verdict.INCONCLUSIVE if made.problems else Verdict.PASS
        spent = time.monotonic() - started
        work.emit(StageFinished("workload", bootstrap, verdict, spent, summary))
        if judge:
            judge_files(work, made.files, output / "findings", {})
        else:
            work.closing = f"judge it: kconform history '{output}/*.ndjson' -o findings"


def _topics(count: int) -> tuple[str, ...]:
    """Names that no earlier workload has used: groups and transactional ids have them too."""
    stamp = f"workload-{time.time_ns() // 1_000_000:x}"
    return tuple(f"{stamp}-{number}" for number in range(1, count + 1))


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UserError(f"--clients takes names with commas: {', '.join(LIBRARIES)}.")
    return names


def _kinds(text: str) -> tuple[ProducerKind, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    wrong = [name for name in names if name not in list(ProducerKind)]
    if wrong or not names:
        raise UserError(
            f"--kinds takes names with commas, of {', '.join(ProducerKind)}; not {text!r}."
        )
    return tuple(kind for kind in ProducerKind if kind in names)
