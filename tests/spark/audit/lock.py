"""A lock that counts its takers: a protocol of a few lines that is not Kafka's."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from conformance.audit.coverage import ModelTable
from conformance.audit.rules import Rule, Rulebook
from conformance.tla.values import Action, State, fingerprint
from conformance.traces.manifest import Identity, Manifest
from conformance.traces.model import End, PartialState, Trace, TraceStep
from conformance.traces.states import infer_columns
from conformance.traces.store import TraceStore
from conformance.traces.writer import write_store

VARIABLES = ("holder", "count", "log")
LIMIT = 3
ACTIONS = (Action("Take", ("a",)), Action("Take", ("b",)), Action("Drop"))
INITIAL: State = ("nobody", 0, ())
HASH = "ab" * 32

IDENTITY = Identity(
    spec="Lock",
    spec_hash=HASH,
    model="lock",
    constants={"Limit": str(LIMIT)},
    variables=list(VARIABLES),
    actions=[str(action) for action in ACTIONS],
    system="toy",
    system_version="1",
)


class Lock:
    """The spec as a function."""

    variables = VARIABLES

    def initial_states(self) -> Sequence[State]:
        return [INITIAL]

    def successors(self, state: State, action: Action) -> Sequence[State]:
        holder, count, log = state
        assert isinstance(count, int)
        assert isinstance(log, tuple)
        if action.name == "Drop":
            return [("nobody", count, log)] if holder != "nobody" else []
        if holder != "nobody" or count == LIMIT:
            return []
        return [(action.args[0], count + 1, (*log, action.args[0]))]

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        for action in ACTIONS:
            for target in self.successors(state, action):
                yield action, target


def rule(name: str, text: str) -> Rule:
    return Rule(name, f"({text})", f"(NOT ({text}))", location=f"Lock.tla:{len(name)}")


def take(client: str) -> Rule:
    return rule(
        f'Take("{client}")',
        f"holder = 'nobody' AND count < {LIMIT} AND `holder'` = '{client}' AND "
        f"`count'` = count + 1 AND `log'` = concat(log, array('{client}'))",
    )


RULES = Rulebook(
    variables=VARIABLES,
    init=rule("Init", "holder = 'nobody' AND count = 0 AND size(log) = 0"),
    actions={
        0: take("a"),
        1: take("b"),
        2: rule("Drop", "holder <> 'nobody' AND `holder'` = 'nobody' AND `count'` = count AND "
                "`log'` = log"),
    },
    invariants=[
        rule("CountIsLength", "count = size(log)"),
        rule("HolderIsLast", "holder = 'nobody' OR holder <=> get(log, size(log) - 1)"),
    ],
    properties=[rule("CountNeverFalls", "`count'` >= count")],
)  # fmt: skip


def reachable() -> tuple[list[State], list[tuple[State, int, State]]]:
    lock, states, edges = Lock(), [INITIAL], []
    for state in states:
        for action, target in lock.steps(state):
            edges.append((state, ACTIONS.index(action), target))
            if target not in states:
                states.append(target)
    return states, edges


def model_table(without: Sequence[int] = ()) -> ModelTable:
    states, edges = reachable()
    kept = [edge for number, edge in enumerate(edges) if number not in without]
    return ModelTable(
        states=np.array([fingerprint(state) for state in states]),
        initial=np.array([fingerprint(INITIAL)]),
        source=np.array([fingerprint(edge[0]) for edge in kept]),
        action=np.array([edge[1] for edge in kept], np.int32),
        target=np.array([fingerprint(edge[2]) for edge in kept]),
    )


def walk(trace_id: int, length: int = 6) -> Trace:
    rng, lock, state = random.Random(trace_id), Lock(), INITIAL
    steps: list[TraceStep] = []
    end = End.LENGTH
    for _ in range(length):
        choices = list(lock.steps(state))
        if not choices:
            end = End.DEADLOCK
            break
        action, state = rng.choice(choices)
        steps.append(TraceStep(action, state))
    return Trace(trace_id, trace_id, INITIAL, tuple(steps), end)


def of_states(trace_id: int, first: PartialState, *steps: tuple[int, PartialState]) -> Trace:
    path = tuple(TraceStep(ACTIONS[code], state) for code, state in steps)
    return Trace(trace_id, 0, first, path, End.LENGTH)


def save(path: Path, traces: Sequence[Trace]) -> TraceStore:
    states = [state for trace in traces for state in trace.states if state]
    columns = infer_columns(VARIABLES, states, reference=reachable()[0])
    write_store(path, IDENTITY, columns, traces)
    return TraceStore.open(path, spec_hash=HASH)
