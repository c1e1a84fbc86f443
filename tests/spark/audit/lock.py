"""A lock that counts its takers: traces, states and rules of a protocol that is not Kafka's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from conformance.audit.coverage import ModelTable
from conformance.audit.evaluator import Evaluator
from conformance.audit.rules import Rulebook, compile_rules
from conformance.tla import Action, Spec, State, bind, fingerprint, load_module, parse_config
from conformance.traces.manifest import Identity
from conformance.traces.model import PartialState, Trace, TraceEnd, TraceStep
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import write_store

VARIABLES = ("holder", "count", "log")
ACTIONS = (Action("Take", ("a",)), Action("Take", ("b",)), Action("Drop"))
INITIAL: State = ("nobody", 0, ())
HASH = "ab" * 32
CONFIG = 'CONSTANTS Clients = {"a", "b"} Limit = 3 INIT Init NEXT Next'
INVARIANTS = ("CountIsLength", "HolderIsLast")
PROPERTIES = ("CountNeverFalls",)

IDENTITY = Identity(
    spec="Lock",
    spec_hash=HASH,
    model="lock",
    constants={"Clients": '{"a", "b"}', "Limit": "3"},
    variables=list(VARIABLES),
    actions=[str(action) for action in ACTIONS],
    system="toy",
    system_version="1",
)


@cache
def spec() -> Spec:
    return bind(load_module(Path(__file__).with_name("Lock.tla")), parse_config(CONFIG))


@cache
def rules(invariants: tuple[str, ...] = INVARIANTS) -> Rulebook:
    return compile_rules(spec(), ACTIONS, invariants, PROPERTIES)


def evaluator(store: TraceStore, invariants: tuple[str, ...] = INVARIANTS) -> Evaluator:
    return Evaluator.of(spec(), store, invariants, PROPERTIES)


@cache
def reachable() -> tuple[list[State], list[tuple[State, int, State]]]:
    states, edges = [INITIAL], []
    for state in states:
        for action, target in spec().successors(state):
            edges.append((state, ACTIONS.index(action), target))
            if target not in states:
                states.append(target)
    return states, edges


def model_table(without: Sequence[int] = ()) -> ModelTable:
    states, edges = reachable()
    kept = [edge for number, edge in enumerate(edges) if number not in without]
    return ModelTable(
        states=np.array([fingerprint(state) for state in states]),
        source=np.array([fingerprint(edge[0]) for edge in kept]),
        action=np.array([edge[1] for edge in kept], np.int32),
        target=np.array([fingerprint(edge[2]) for edge in kept]),
    )


def walk(trace_id: int, length: int = 6) -> Trace:
    rng, state = random.Random(trace_id), INITIAL
    steps: list[TraceStep] = []
    end = TraceEnd.LENGTH
    for _ in range(length):
        choices = spec().successors(state)
        if not choices:
            end = TraceEnd.DEADLOCK
            break
        action, state = rng.choice(choices)
        steps.append(TraceStep(action, state))
    return Trace(trace_id, trace_id, INITIAL, tuple(steps), end)


def of_states(trace_id: int, first: PartialState, *steps: tuple[int, PartialState]) -> Trace:
    path = tuple(TraceStep(ACTIONS[code], state) for code, state in steps)
    return Trace(trace_id, 0, first, path, TraceEnd.LENGTH)


def save(path: Path, traces: Sequence[Trace]) -> TraceStore:
    states = [state for trace in traces for state in trace.states if state]
    columns = infer_columns(VARIABLES, states, reference=reachable()[0])
    write_store(path, IDENTITY, columns, traces)
    return TraceStore.open(path, spec_hash=HASH)
