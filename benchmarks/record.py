"""Runs measurements, keeps what they print, and writes it into the documents.

    python -m benchmarks.record NAME...     runs these and writes the documents
    python -m benchmarks.record --missing   runs those of which no run is kept
    python -m benchmarks.record             writes the documents from what is kept

`measurements.toml` names each measurement, its command and its document. What a run printed is kept
in `recorded/NAME.json` with the machine, the load, the commit and the date; a document has it
between two marks, and nobody writes there by hand (`tests/unit/test_measurements.py`). Where no run
is kept the document has the command alone, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent


@dataclass(frozen=True, slots=True)
class Measurement:
    """What is measured: `command` is words, `{python}` being the interpreter that runs this."""

    name: str
    command: tuple[str, ...]
    document: str
    codes: tuple[int, ...] = (0,)
    """Exit codes of a run that measured what it should."""
    goal: str = ""
    """What the figures should be, where there is a goal; the document has it above the run."""

    @property
    def kept(self) -> Path:
        """Where its last run is kept."""
        return HERE / "recorded" / f"{self.name}.json"

    @property
    def shown(self) -> str:
        """The command as one types it."""
        return shlex.join("python" if word == "{python}" else word for word in self.command)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a measurement, as it is kept."""

    command: str
    date: str
    commit: str
    machine: str
    load: str
    """At its beginning and its end; empty if it is not known."""
    seconds: float
    """By the clock; `processor` of the run and its processes. 0 if they are not known."""
    processor: float
    output: str


def measurements() -> tuple[Measurement, ...]:
    """All that are known."""
    table = tomllib.loads((HERE / "measurements.toml").read_text(encoding="utf-8"))
    return tuple(
        Measurement(
            row["name"],
            tuple(shlex.split(row["command"])),
            row["document"],
            tuple(row.get("codes", (0,))),
            row.get("goal", ""),
        )
        for row in table["measurement"]
    )


def kept(measurement: Measurement) -> Run | None:
    """The last run; None if none is kept."""
    try:
        return Run(**json.loads(measurement.kept.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def run(measurement: Measurement) -> Run:
    """Run it; CalledProcessError if it fails: a failure is no measurement."""
    words = [sys.executable if word == "{python}" else word for word in measurement.command]
    before, started, used = os.getloadavg()[0], time.monotonic(), _processor()
    lines = []
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:  # shown at once: who interrupts a long run has the rows so far
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode not in measurement.codes:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Run(
        command=measurement.shown,
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        commit=_commit(),
        machine=machine(),
        load=f"{before:.0f} to {os.getloadavg()[0]:.0f}",
        seconds=round(time.monotonic() - started, 1),
        processor=round(_processor() - used, 1),
        output="".join(lines).strip("\n"),
    )


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _commit() -> str:
    """The commit of what is measured, and whether that was changed since."""
    changed = _git("status", "--porcelain", "--", "conformance", "impl", "spec", "models")
    return _git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")


def _git(*words: str) -> str:
    command = ["git", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine() -> str:
    """The machine's class: processors, their kind, memory. Nothing that names the machine."""
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} x {_processor_kind()}, {gigabytes:.0f} GiB"


def _processor_kind() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return os.uname().machine
    match = re.search(r"^model name\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else os.uname().machine


def keep(measurement: Measurement, done: Run) -> None:
    """Keep a run in place of the last one."""
    text = json.dumps(asdict(done), indent=1, ensure_ascii=False)
    measurement.kept.write_text(text + "\n", encoding="utf-8")


def shown(measurement: Measurement) -> str:
    """Its goal and its last run as the documents have them, or that there is none."""
    goal = f"Goal: {measurement.goal}\n\n" if measurement.goal else ""
    done = kept(measurement)
    if done is None:
        return f"{goal}`{measurement.shown}`: no run is kept."
    facts = [done.date, f"commit {done.commit}", done.machine]
    if done.load:
        facts.append(f"load {done.load}")
    if done.seconds:
        facts.append(f"{done.seconds:,.0f} s, {done.processor:,.0f} s of processor time")
    return f"{goal}`{done.command}` ({', '.join(facts)}):\n\n```\n{done.output}\n```"


def written(document: str, text: str, known: Sequence[Measurement]) -> str:
    """The document's text with every run in its place. LookupError if a mark is missing."""
    for measurement in known:
        if measurement.document == document:
            begin, end = marks(measurement.name)
            before, result, rest = text.partition(begin)
            _, closed, after = rest.partition(end)
            if not result or not closed:
                raise LookupError(
                    f"{document} has no place for {measurement.name}: {begin} ... {end}"
                )
            text = f"{before}{begin}\n{shown(measurement)}\n{end}{after}"
    return text


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a measurement in its document."""
    return f"<!-- recorded: {name} -->", f"<!-- end: {name} -->"


def documents(known: Sequence[Measurement]) -> Iterator[Path]:
    """The documents that have measurements."""
    return (ROOT / name for name in dict.fromkeys(measurement.document for measurement in known))


def main() -> None:
    """Run what is named, then write the documents."""
    known = {measurement.name: measurement for measurement in measurements()}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--missing", action="store_true", help="those of which no run is kept")
    options = parser.parse_args()
    names = [*options.names]
    if options.missing:
        names += [
            measurement.name for measurement in known.values() if not measurement.kept.is_file()
        ]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"there is no measurement {unknown[0]}; there are {', '.join(known)}")
    try:
        for name in names:
            print(f"{name}: {shlex.join(known[name].command)}", file=sys.stderr, flush=True)
            keep(known[name], run(known[name]))
    finally:  # also of an interrupted or failed call: documents agree with what is kept
        _write_documents(list(known.values()))


def _write_documents(known: Sequence[Measurement]) -> None:
    for path in documents(known):
        text = path.read_text(encoding="utf-8")
        path.write_text(written(str(path.relative_to(ROOT)), text, known), encoding="utf-8")


if __name__ == "__main__":
    main()
