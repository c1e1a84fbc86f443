"""A judge without any cleverness, of two protocols that are written a second time in Python.

It knows nothing of the judge under test but what an event is. From every state it tries every
step, event by event, and forgets nothing. What it says of small recordings is the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from conformance.judge.events import Event
from conformance.tla import (
    Action,
    ActionPattern,
    Fn,
    ObservedPart,
    State,
    Value,
    canonical_sorted,
    equal,
    make_function,
    parse_value,
)


class Done(NamedTuple):
    """A step as the protocols below name it."""

    action: Action
    """With the arguments that events and mappings may name."""
    label: Action
    """The name that the specification gives it."""
    after: State


Protocol = Callable[[State], Iterator[Done]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What may go unseen."""

    silent: tuple[ActionPattern, ...]
    directly: tuple[ActionPattern, ...]
    steps: int
    each: int | None


class _Place(NamedTuple):
    """How far a behaviour is: events, state, and the unseen steps since the last event."""

    done: frozenset[int]
    state: State
    row: int
    load: tuple[tuple[str, int], ...]
    owners: frozenset[str]
    """Whose event must come next, because of an unseen step directly before it."""


def most_explained(
    protocol: Protocol,
    variables: Sequence[str],
    initial: State,
    events: Sequence[Event],
    earlier: Mapping[int, frozenset[int]],
    rules: Rules,
) -> int:
    """The most events that any behaviour explains; `earlier` are the events before each one."""
    begin = _Place(frozenset(), initial, 0, (), frozenset())
    known, ahead, most = {begin}, [begin], 0
    while ahead:
        place = ahead.pop()
        most = max(most, len(place.done))
        for following in (
            *_events(place, protocol, variables, events, earlier),
            *_unseen(place, protocol, rules),
        ):
            if following not in known:
                known.add(following)
                ahead.append(following)
    return most


def _events(
    place: _Place,
    protocol: Protocol,
    variables: Sequence[str],
    events: Sequence[Event],
    earlier: Mapping[int, frozenset[int]],
) -> Iterator[_Place]:
    for number, event in enumerate(events):
        if number in place.done or not earlier[number] <= place.done:
            continue
        owner = _owner(event)
        if owner is not None and place.owners - {owner}:
            continue
        if not _shows(variables, place.state, event.before):
            continue
        afters = [place.state]
        if event.actions:
            afters = [
                step.after
                for step in protocol(place.state)
                if any(one.admits(step.action) for one in event.actions)
            ]
        for after in afters:
            if _shows(variables, after, event.after):
                yield _Place(place.done | {number}, after, 0, (), frozenset())


def _unseen(place: _Place, protocol: Protocol, rules: Rules) -> Iterator[_Place]:
    if place.row == rules.steps:
        return
    for step in protocol(place.state):
        load = dict(place.load)
        if step.label.args:
            process = str(step.label.args[0])
            load[process] = load.get(process, 0) + 1
            if rules.each is not None and load[process] > rules.each:
                continue
        loads = tuple(sorted(load.items())) if rules.each is not None else ()
        moved = place._replace(state=step.after, row=place.row + 1, load=loads)
        if any(one.admits(step.action) for one in rules.silent):
            yield moved
        if any(one.admits(step.action) for one in rules.directly):
            owner = {str(step.label.args[0])} if step.label.args else set()
            yield moved._replace(owners=place.owners | owner)


def _owner(event: Event) -> str | None:
    if event.process:
        return event.process
    if len(event.actions) == 1 and event.actions[0].args:
        first = event.actions[0].args[0]
        return first if isinstance(first, str) else None
    return None


def _shows(variables: Sequence[str], state: State, parts: Sequence[ObservedPart]) -> bool:
    shown = dict(zip(variables, state, strict=True))
    return all(_shown(shown, str(part.place), part.value) for part in parts)


def _shown(shown: Mapping[str, Value], place: str, value: Value) -> bool:
    """Written out once more, by the text of the place."""
    if place.startswith("Len("):
        found = _at(shown, place[4:-1])
        return isinstance(found, tuple) and equal(len(found), value)
    if place.startswith("Cardinality("):
        found = _at(shown, place[12:-1])
        return isinstance(found, frozenset) and equal(len(found), value)
    if r" \in " in place:
        member, _, where = place.partition(r" \in ")
        found = _at(shown, where)
        wanted = parse_value(member)
        return isinstance(found, frozenset) and equal(wanted in found, value)
    found = _at(shown, place)
    return found is not None and equal(found, value)


def _at(shown: Mapping[str, Value], place: str) -> Value | None:
    name, _, key = place.partition(".")
    found = shown[name]
    if not key:
        return found
    return found.get(key) if isinstance(found, Fn) else None


# --- two protocols --------------------------------------------------------------------------------

LOCKS = ("holder", "wire", "granted", "waiting")
"""The variables of tests/unit/judge/locks.py, in their order."""
GRANTS = 5


def locks_init(clients: Sequence[str]) -> State:
    wire = make_function(dict.fromkeys(clients, "idle"))
    return "nobody", wire, 0, frozenset[Value]()


def locks(state: State) -> Iterator[Done]:
    """Clients that ask, a server that grants."""
    holder, wire, granted, waiting = state
    assert isinstance(wire, Fn)
    assert isinstance(waiting, frozenset)
    assert isinstance(granted, int)

    def done(name: str, client: Value, after: State) -> Done:
        action = Action(name, (client,))
        return Done(action, action, after)

    def sent(client: Value, what: str) -> Fn:
        return Fn({**wire.mapping, client: what})

    for client, at in wire.items():
        if at == "idle":
            yield done("Ask", client, (holder, sent(client, "asked"), granted, waiting))
        if at == "asked":
            queued = holder, sent(client, "queued"), granted, waiting | {client}
            yield done("Queue", client, queued)
        if holder == "nobody" and client in waiting and granted < GRANTS:
            after = client, sent(client, "granted"), granted + 1, waiting - {client}
            yield done("Grant", client, after)
        if holder == client:
            yield done("Release", client, ("nobody", sent(client, "idle"), granted, waiting))


POST = ("log", "wire")
POST_BODY = r"""
VARIABLES log, wire
Nodes == {"a", "b"}
Init == log = [n \in Nodes |-> <<>>] /\ wire = {}
Write(n) == /\ Len(log[n]) < 2
            /\ log' = [log EXCEPT ![n] = Append(@, n)]
            /\ UNCHANGED wire
Send(n) == /\ \E k \in 1..Len(log[n]) : wire' = wire \union {[from |-> n, at |-> k, of |-> log[n]]}
           /\ UNCHANGED log
Receive(m) == /\ wire' = wire \ {m}
              /\ \E n \in Nodes \ {m.from} :
                   /\ Len(log[n]) < 3
                   /\ log' = [log EXCEPT ![n] = Append(@, m.from)]
Lose(m) == wire' = wire \ {m} /\ UNCHANGED log
Next == \/ \E n \in Nodes : Write(n) \/ Send(n)
        \/ \E m \in wire : Receive(m) \/ Lose(m)
"""


def post_init() -> State:
    return make_function({"a": (), "b": ()}), frozenset[Value]()


def post(state: State) -> Iterator[Done]:
    """Logs, of which entries are sent; messages are received, or lost."""
    log, wire = state
    assert isinstance(log, Fn)
    assert isinstance(wire, frozenset)
    for node, entries in log.items():
        assert isinstance(entries, tuple)
        if len(entries) < 2:
            action = Action("Write", (node,))
            yield Done(action, action, (Fn({**log.mapping, node: (*entries, node)}), wire))
        for at in range(1, len(entries) + 1):
            action = Action("Send", (node,))
            message = make_function({"from": node, "at": at, "of": entries})
            yield Done(action, action, (log, wire | {message}))
    for message in canonical_sorted(wire):
        assert isinstance(message, Fn)
        left = wire - {message}
        unnamed = Action("Next")
        yield Done(Action("Lose", (message,)), unnamed, (log, left))
        for node, entries in log.items():
            assert isinstance(entries, tuple)
            if node != message["from"] and len(entries) < 3:
                after = Fn({**log.mapping, node: (*entries, message["from"])})
                yield Done(Action("Receive", (message,)), unnamed, (after, left))
