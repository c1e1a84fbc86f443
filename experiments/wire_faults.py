"""The kill table through the port: faults of our own server, found by nothing but requests.

Each fault of the group coordinator, of idempotent produce and of transactions (faults.toml in
conformance/systems/group, produce and transaction) is put into a copy of impl/, which is served by
`python -m impl.wire`; the suites of the fault's models are driven through its port until a test
disagrees. docs/bugs.md keeps a table. Exit code 1 if a fault that a port can show is not
found, or if the clean copy disagrees.

Run: python experiments/wire_faults.py [FAULT ...] [--budget SECONDS] [--clean]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers import drive, ours, selected
from conformance.bugs.fault import Catalogue, Fault, copied, load_catalogue, relocated
from conformance.replay.suite import ReplayResult
from conformance.stages.context import one_model

ROOT = Path(__file__).resolve().parents[1]
SYSTEMS = ROOT / "conformance" / "systems"
AT_A_PORT = {
    "group": (),
    "produce": ("produce/bench/retries-1b", "produce/bumps-1b", "produce/bench/window-1b"),
    "transaction": (
        "transaction/port-v2",
        "transaction/port-v2-instances",
        "transaction/port-v1-instances",
    ),
}
"""The catalogues, and models that a port takes beside those of a fault: Kafka's window has five
batches."""
FIRST = {
    **dict.fromkeys(("Y1", "Y10", "Y13", "Y15"), "transaction/port-v2-instances"),
    "Y14": "transaction/port-v1-instances",
}
"""The models of a port by which a fault is likely to be found."""
CLIENT = ("group/client/", "producer/")
ONE_REPLICA = "it takes a second replica, and our server has none"
NOT_DRIVEN = {
    "D5": "ExpireNewMember takes five minutes (NewMemberJoinTimeoutMs) and is not driven",
    "G1": "it takes a fail-over, and our server has no second broker",
    "Q1": "it takes a restart, and no request restarts a broker",
    **dict.fromkeys(("Q5", "Q6", "Q7", "Q8", "Y4", "Y6"), ONE_REPLICA),
    "Y3": "our server appends at once, so nothing is ever pending",
    "Y8": "it takes a fail-over, and our server has no second broker",
}
"""Faults that a port could show, and why no suite does."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a fault; `model` found it, after so much of all that was driven."""

    model: str
    steps: int
    seconds: float
    words: str


def out_of_reach(fault: Fault) -> str:
    """Why no port could ever show it; empty if one could."""
    if fault.unseen is not None:
        return "that the specification does not see"
    if all(patch.file.startswith(CLIENT) for patch in fault.patches):
        return "of the client: at a port the members are the harness's own"
    return ""


def judge(served: AbstractContextManager[Path], models: Sequence[str], budget: float) -> Outcome:
    """Serve this copy, and drive the models until one disagrees or the time is over."""
    started, steps, undone = time.monotonic(), 0, []
    with served as folder:
        for name in models:
            if time.monotonic() - started > budget:
                undone.append(f"{name} (no time was left)")
                continue
            size = int(one_model(name).constants.get("MaxSize", "0"))
            with ours(folder, size, faulty=True) as system:
                if reason := selected(system, name):
                    undone.append(f"{name} ({reason})")
                    continue
                result = drive(system, name)
            steps += result.steps
            if result.divergences:
                return Outcome(name, steps, time.monotonic() - started, _words(result))
    left = f"; not driven: {', '.join(undone)}" if undone else ""
    return Outcome("", steps, time.monotonic() - started, f"nothing disagrees{left}")


def _words(result: ReplayResult) -> str:
    (divergence,) = result.divergences
    if divergence.detail:
        return f"{divergence.kind}: {divergence.detail.splitlines()[0]}"
    return f"{divergence.kind} at step {divergence.step}, {divergence.action}"


def models_of(catalogue: Catalogue, fault: Fault | None = None) -> Sequence[str]:
    """Those of a fault, or of all faults, that may find it through a port."""
    own = fault.models if fault is not None else ()
    first = FIRST.get("" if fault is None else fault.id)
    at_a_port = sorted(AT_A_PORT[catalogue.system], key=lambda model: model != first)
    return (*(own or catalogue.models), *at_a_port)


def row(fault: Fault, text: str, outcome: Outcome) -> str:
    cells = (fault.id, fault.jira, fault.title, text, f"{outcome.steps:,}")
    return f"| {' | '.join(cells)} | {outcome.seconds:.0f} s | {outcome.words} |"


def judged(catalogues: Sequence[Catalogue], ids: Sequence[str], budget: float) -> list[str]:
    """Print a row for each fault; the ids of those that survive."""
    print("| fault | JIRA | what is wrong | found by | steps | time | how it shows |")
    print("|---|---|---|---|---|---|---|")
    survivors = []
    beyond: dict[str, list[str]] = {}
    cases = [(catalogue, fault) for catalogue in catalogues for fault in catalogue.faults]
    for catalogue, fault in cases:
        if ids and fault.id not in ids:
            continue
        if reason := out_of_reach(fault):
            beyond.setdefault(reason, []).append(fault.id)
        elif reason := NOT_DRIVEN.get(fault.id, ""):
            print(row(fault, "not driven", Outcome("", 0, 0.0, reason)), flush=True)
        else:
            outcome = judge(relocated(fault), models_of(catalogue, fault), budget)
            if not outcome.model:
                survivors.append(fault.id)
            print(row(fault, outcome.model or "nothing", outcome), flush=True)
    print(f"\nnot found: {', '.join(survivors) or 'none'}")
    for reason, faults in beyond.items():
        print(f"not at a port, {len(faults)} {reason}: {', '.join(faults)}")
    return survivors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*")
    parser.add_argument("--budget", type=float, default=120.0, help="Seconds for each fault.")
    parser.add_argument("--clean", action="store_true", help="Judge a copy without a fault.")
    options = parser.parse_args()
    catalogues = [load_catalogue(SYSTEMS / name / "faults.toml") for name in AT_A_PORT]
    if options.clean:
        models = [model for catalogue in catalogues for model in models_of(catalogue)]
        outcome = judge(copied(), models, options.budget)
        print(f"clean copy: {outcome.words}; {outcome.steps:,} steps, {outcome.seconds:.0f} s")
        sys.exit(bool(outcome.model))
    sys.exit(bool(judged(catalogues, options.faults, options.budget)))


if __name__ == "__main__":
    main()
