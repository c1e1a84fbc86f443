"""A small protocol for the judge's tests: clients that ask, a server that grants, unseen wires."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from conformance.judge.events import Recording, read_event
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping, load_mapping
from conformance.judge.verdict import Judgement
from conformance.tla import Spec
from tests.unit.tla.small import spec

BODY = r"""
CONSTANTS Clients, Grants
VARIABLES holder, wire, granted, waiting

vars == <<holder, wire, granted, waiting>>
Init ==
  /\ holder = "nobody"
  /\ wire = [c \in Clients |-> "idle"]
  /\ granted = 0
  /\ waiting = {}

Ask(c) == /\ wire[c] = "idle"
          /\ wire' = [wire EXCEPT ![c] = "asked"]
          /\ UNCHANGED <<holder, granted, waiting>>
Queue(c) == /\ wire[c] = "asked"
            /\ wire' = [wire EXCEPT ![c] = "queued"]
            /\ waiting' = waiting \union {c}
            /\ UNCHANGED <<holder, granted>>
Grant(c) == /\ holder = "nobody"
            /\ c \in waiting
            /\ granted < Grants
            /\ holder' = c
            /\ granted' = granted + 1
            /\ waiting' = waiting \ {c}
            /\ wire' = [wire EXCEPT ![c] = "granted"]
Release(c) == /\ holder = c
              /\ holder' = "nobody"
              /\ wire' = [wire EXCEPT ![c] = "idle"]
              /\ UNCHANGED <<granted, waiting>>
Next == \E c \in Clients : Ask(c) \/ Queue(c) \/ Grant(c) \/ Release(c)

TypeOK == /\ holder \in Clients \union {"nobody"}
          /\ wire \in [Clients -> {"idle", "asked", "queued", "granted"}]
          /\ granted \in 0..Grants
          /\ waiting \in SUBSET Clients
HolderWasGranted == holder # "nobody" => wire[holder] = "granted"
FewGrants == granted < 3
Endless == \A i \in 1..9999, j \in 1..9999, k \in 1..9999 : i + j + k + granted > 0
GrantsNeverFall == [][granted' >= granted]_vars
"""
CONFIG = 'CONSTANT Clients = {"a", "b"}\nCONSTANT Grants = 5'


def locks(folder: Path, config: str = CONFIG) -> Spec:
    """The protocol, bound."""
    return spec(folder, BODY, config)


def recording(*events: dict[str, object], name: str = "run") -> Recording:
    """A recording of these events, as a file would have them, a line each."""
    read = [read_event(json.loads(json.dumps(e)), f"run:{n}") for n, e in enumerate(events, 1)]
    return Recording(name, tuple(read), "run:1")


def mapping(folder: Path, text: str) -> Mapping:
    """The mapping with that text."""
    path = folder / "mapping.toml"
    path.write_text(f"schema = 1\n{text}")
    return load_mapping(path)


def judged(
    locks: Spec,
    declared: Mapping,
    *events: dict[str, object],
    invariants: Sequence[str] = ("TypeOK", "HolderWasGranted"),
    properties: Sequence[str] = ("GrantsNeverFall",),
) -> Judgement:
    """The verdict on a recording of these events."""
    return Judge(locks, declared, invariants, properties).judge(recording(*events))


HIDDEN = '[silent]\nactions = ["Ask", "Queue"]\nsteps = 4\n'


def write(path: Path, traces: int) -> Path:
    """Traces of many lengths, the lines of each with the others', with lies and damage in them."""
    rng, lines = random.Random(5), []
    for number in range(traces):
        for grants in range(1, 1 + rng.choice((1, 1, 2, 4, 7))):
            holder = rng.choice("ab")
            told = grants if rng.random() < 0.9 else 4
            grant = {"action": "Grant", "state": {"holder": holder, "granted": told}}
            lines += [(number, grant), (number, {"action": "Release"})]
        if number % 9 == 0:
            lines.append((number, {"action": "Steal"}))
    order = sorted(lines, key=lambda _: rng.random())
    order.sort(key=lambda line: line[0] // 5)
    text = [json.dumps({"trace": f"run-{number}", **event}) for number, event in order]
    path.write_text("\n".join([*text, "{no event", ""]))
    return path
