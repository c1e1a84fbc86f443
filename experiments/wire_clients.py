"""Runs real consumers in the loop, and prints who departs, and how (docs/lab-notes/client-runs.md).
The stories of what departs go to the error output.

The consumers are those of docs/clients: librdkafka, kafka-python, aiokafka (the extra `clients`),
Kafka's own of two releases (a JVM each), franz-go and Sarama (built where Go is). One that cannot
be started on this machine is told of.
Run: python experiments/wire_clients.py [CLIENT ...] [--examples N] [--jobs N] [--seed N]
    [--patience SECONDS]
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from conformance.errors import UserError
from conformance.events import Finding
from conformance.kafka.jars import chosen_jars
from conformance.kafka.java import compile_java
from conformance.stages.client import ClientTestRequest, ExampleTally, client
from conformance.stages.context import Context
from conformance.verdict import Verdict

CLIENTS = Path(__file__).resolve().parents[1] / "docs" / "clients"
WORDS = "{bootstrap} {topic} {group} {instance}"


class Missing(Exception):
    """What this machine lacks."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A consumer: its name with its version, the command that starts it, its variant."""

    name: str
    command: str
    variant: str = "java"


def python(package: str, program: str, variant: str = "java") -> Subject:
    try:
        name = f"{package} {version(package)}"
    except PackageNotFoundError:
        raise Missing(f"{package}: the extra `clients` is not installed") from None
    path = shlex.quote(str(CLIENTS / program))
    return Subject(name, f"python {path} {WORDS}", variant)


def java(release: str) -> Subject:
    jars = chosen_jars(release, None)
    classes = compile_java([CLIENTS / "JavaConsumer.java"], jars.classpath)
    classpath = shlex.quote(":".join(map(str, (classes, *jars.classpath))))
    quick = "-Xshare:auto -XX:TieredStopAtLevel=1"
    return Subject(f"Apache Kafka {release}", f"java {quick} -cp {classpath} JavaConsumer {WORDS}")


@cache
def built() -> tempfile.TemporaryDirectory[str]:
    """Where Go programs are built; gone when this process ends."""
    return tempfile.TemporaryDirectory()


def go(module: str, name: str, variant: str = "java") -> Subject:
    """The program in the folder of this name, which go.mod ties to a version of the module."""
    compiler, folder = shutil.which("go"), CLIENTS / name
    if compiler is None:
        raise Missing(f"{name}: there is no Go to build it")
    program = Path(built().name) / name
    command = [compiler, "build", "-o", str(program), "."]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Missing(f"{name} cannot be built: {ended.stderr.strip()[-300:]}")
    (line,) = re.findall(rf"{re.escape(module)} v(\S+)", (folder / "go.mod").read_text())
    return Subject(f"{name} {line}", f"{shlex.quote(str(program))} {WORDS}", variant)


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "librdkafka": lambda: python("confluent-kafka", "librdkafka.py", "librdkafka"),
    "kafka-python": lambda: python("kafka-python", "kafka_python.py"),
    "aiokafka": lambda: python("aiokafka", "aiokafka_consumer.py"),
    "kafka-3.8.1": lambda: java("3.8.1"),
    "kafka-4.4.0": lambda: java("4.4.0"),
    "franz-go": lambda: go("github.com/twmb/franz-go", "franz-go", "franz-go"),
    "sarama": lambda: go("github.com/IBM/sarama", "sarama", "sarama"),
}


def row(subject: Subject, tally: ExampleTally) -> str:
    """One line of the table."""
    verdicts = tally.verdicts
    fate = f"{verdicts[Verdict.PASS]} agree"
    if verdicts[Verdict.FAIL]:
        fate += f", {verdicts[Verdict.FAIL]} depart"
    if verdicts[Verdict.INCONCLUSIVE]:
        fate += f", {verdicts[Verdict.INCONCLUSIVE]} inconclusive"
        fate += f" ({tally.spoiled} spoiled by a slow machine)" if tally.spoiled else ""
    given = f"{tally.given.total():,} of {len(tally.given)} kinds"
    callbacks = "yes" if tally.told else "no"
    examples = f"{verdicts.total()} | {tally.events:,} | {given}"
    return f"| {subject.name} | {subject.variant} | {examples} | {callbacks} | {fate} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(SUBJECTS))
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--patience", type=float, default=8.0, help="in seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := [name for name in options.clients if name not in SUBJECTS]:
        parser.error(f"there is no client {unknown[0]}; there are {', '.join(SUBJECTS)}")
    print("| client | variant | examples | events | answers | callbacks | outcome |")
    print("|---|---|---|---|---|---|---|", flush=True)
    departures: list[str] = []
    stories: list[str] = []
    for name in options.clients or SUBJECTS:
        try:
            subject = SUBJECTS[name]()
            request = ClientTestRequest(
                subject.command,
                subject.variant,
                options.examples,
                requests=15,
                jobs=options.jobs,
                patience=options.patience,
            )
            tally = client(Context(seed=options.seed), request)
        except (Missing, UserError) as error:
            print(f"| {name} | | | | | | not run: {str(error).splitlines()[0]} |", flush=True)
            print(error, file=sys.stderr)
            continue
        print(row(subject, tally), flush=True)
        departures += titles(subject.name, tally)
        stories += [
            line for finding in findings(tally) for line in (subject.name, *finding.story, "")
        ]
    print("\n".join(("", *departures) if departures else ()))
    print("\n".join(stories), file=sys.stderr)


def findings(tally: ExampleTally) -> list[Finding]:
    return sorted(tally.findings.values(), key=lambda finding: -finding.count)


def titles(name: str, tally: ExampleTally) -> list[str]:
    """A line for each way in which a client departs, and for each that was not seen again."""
    departs = [f"{name} departs in {finding.count}: {finding.title}" for finding in findings(tally)]
    ways: dict[str, list[str]] = {}
    for text in tally.once:  # "example 9 (seed 1): what it did"
        example, way = text.split(": ", 1)
        ways.setdefault(way, []).append(example)
    return departs + [
        f"{name} departs once, and not again, in {len(examples)}: {way} (first in {examples[0]})"
        for way, examples in sorted(ways.items(), key=lambda pair: -len(pair[1]))
    ]


if __name__ == "__main__":
    main()
