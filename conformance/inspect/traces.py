"""A partition's history as traces that `kconform judge` and `kconform import` read.

Two of each partition. `orders-0.ndjson` is the moment of the copies, one event for each window of
it: `--invariants-only` asks of it the same formulas as the inspection. `orders-0.elections.ndjson`
is the controller's history, one event for each registration: the judge looks for a behaviour of the
specification in which just these follow each other, what the brokers did in between being unseen.
Offsets and epochs are those of the abstraction; the mappings beside say what they stand for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from conformance.events import JsonValue
from conformance.files import written_aside
from conformance.inspect.abstraction import NOBODY, RegisteredPartition, Window, windows
from conformance.inspect.copies import Copies
from conformance.inspect.history import Elections
from conformance.inspect.judgement import PartitionJudgement
from conformance.inspect.models import REPLICATION
from conformance.tla import format_value, make_function, to_itf

MODEL = REPLICATION
"""Names the specification; what the files decide is in the mappings."""
_SHOWN = (
    "registration", "online", "leaderEpoch", "leader", "log", "logStartOffset", "highWatermark",
    "epochCache", "fetchState", "fetchOffset", "exposed",
)  # fmt: skip
_UNSEEN = (
    "BecomeLeader", "BecomeFollower", "FetchRoundTrip", "SubmitExpandIsr", "SubmitShrinkIsr",
    "ProcessAlterPartition", "UpdateIsr", "TruncateToHighWatermark",
)  # fmt: skip
"""What brokers do between two registrations, of which the metadata log tells nothing."""
_UNSEEN_STEPS = 6
"""The leader and a follower learn of it, the follower truncates and fetches, the leader proposes to
take it in; and one to spare."""
_WHILE_NOBODY_LEADS = ("Crash", "Restart")


def write(partitions: Iterable[PartitionJudgement], copies: Copies, folder: Path) -> None:
    """The traces and mappings of each partition with a history."""
    for judged in partitions:
        elections, name = judged.subject.elections, judged.subject.name
        if elections is None or not judged.states:
            continue
        windowed = list(windows(judged.moment))
        _write(folder / name, _events(judged, windowed), _mapping(judged, windowed))
        history = registrations(elections, copies)
        if history:
            events = _elections(name, elections, history)
            _write(folder / f"{name}.elections", events, _mapping_of_elections(history))


def _write(stem: Path, events: Iterable[dict[str, Any]], mapping: str) -> None:
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    for suffix, text in ((".ndjson", lines), (".mapping.toml", mapping)):
        with written_aside(stem.with_name(stem.name + suffix)) as path:
            path.write_text(text, encoding="utf-8")


# --- the moment of the copies ---------------------------------------------------------------------


def _events(judged: PartitionJudgement, windowed: list[Window]) -> Iterator[dict[str, Any]]:
    """An event shows whole variables; what files cannot show is left out."""
    for number, window in enumerate(windowed):
        state = {name: to_itf(window.values[name]) for name in _SHOWN}
        name = judged.subject.name if len(windowed) == 1 else f"{judged.subject.name} {number}"
        yield {
            "trace": name,
            "state": state,
            "source": f"offsets {window.cuts[0]} to {window.cuts[-1]}",
        }


def _mapping(judged: PartitionJudgement, windowed: list[Window]) -> str:
    """Constants that bound nothing, and in comments what the abstract offsets stand for."""
    names = frozenset(judged.moment.replicas)
    offsets = max(len(window.cuts) for window in windowed)
    epochs = max(len(window.epochs) for window in windowed)
    lines = ["schema = 1"]
    for window in windowed:
        lines.append(f"# offsets: {_table(window.cuts)}")
        lines.append(f"# leader epochs: {_table(window.epochs)}")
    lines += [
        "[constants]",
        f"Brokers = '{format_value(names)}'",
        f"InitialLeader = '{format_value(min(names))}'",
        f"Offsets = '0..{offsets}'",
        f"Epochs = '0..{max(epochs, 1)}'",
        "PartitionEpochs = '0..1000000'",
    ]
    return "\n".join(lines) + "\n"


def _table(real: tuple[int, ...]) -> str:
    return ", ".join(f"{abstract} is {offset}" for abstract, offset in enumerate(real))


# --- the controller's history ---------------------------------------------------------------------


def registrations(elections: Elections, copies: Copies) -> list[tuple[RegisteredPartition, int]]:
    """The registrations that change what the specification has of them, and their offsets.

    Epochs begin at 0. Empty where the specification has no such beginning, or no such steps: a
    history that does not begin with the partition's creation, or with replicas outside the ISR,
    and one in which replicas are reassigned. It ends where nobody is left in the ISR but not the
    last member alone may be elected: the specification has no eligible leader replicas (KIP-966).
    """
    first = elections.registrations[0]
    whole = elections.whole and {*first.isr} == {*first.replicas} and first.leader in first.isr
    if not whole or any(
        registration.replicas != first.replicas for registration in elections.registrations
    ):
        return []
    result: list[tuple[RegisteredPartition, int]] = []
    before: tuple[object, ...] = ()
    silent = 0
    last: frozenset[int] = frozenset()
    for registration in elections.registrations:
        if not registration.isr and (len(last) > 1 or last != {*registration.eligible}):
            break
        last = frozenset(registration.electable)
        facts = (registration.leader, registration.leader_epoch, last)
        silent += facts == before
        if facts != before:
            number = registration.partition_epoch - first.partition_epoch - silent
            leader = NOBODY if registration.leader < 0 else copies.name(registration.leader)
            isr = frozenset(copies.name(node) for node in registration.electable)
            epoch = registration.leader_epoch - first.leader_epoch
            result.append((RegisteredPartition(leader, epoch, isr, number), registration.offset))
        before = facts
    return result


def _elections(
    name: str, elections: Elections, history: Sequence[tuple[RegisteredPartition, int]]
) -> Iterator[dict[str, Any]]:
    """The creation, then one event for each change, with the steps that it may be."""
    yield _registration(name, *history[0])
    unclean = {registration.offset for registration in elections.unclean}
    for (before, _), (after, offset) in pairwise(history):
        actions = [_UNCLEAN] if offset in unclean else _changes(before, after)
        steps = [_action(action, after) for action in actions]
        yield {**_registration(name, after, offset), "action": steps}


_UNCLEAN = "ElectUncleanLeader"
_ARGUMENTS = {
    "ElectLeader": ("epoch", "leader"),
    "ElectUncleanLeader": ("epoch", "leader"),
    "FenceBroker": ("epoch", None, "leader"),
    "TakeOffline": ("epoch", None),
    "HandleAlterPartition": ("leader",),
}
"""What of the registration after it an action's arguments say; None: not known."""


def _changes(before: RegisteredPartition, after: RegisteredPartition) -> list[str]:
    """Actions that may have changed the registration so."""
    if after.leader_epoch == before.leader_epoch:
        return ["HandleAlterPartition", "FenceBroker"]
    return ["TakeOffline"] if after.leader == NOBODY else ["ElectLeader", "FenceBroker"]


def _action(name: str, after: RegisteredPartition) -> dict[str, JsonValue]:
    known: dict[str | None, JsonValue] = {
        "epoch": after.leader_epoch,
        "leader": after.leader,
        None: None,
    }
    return {"name": name, "args": [known[action_name] for action_name in _ARGUMENTS[name]]}


def _registration(name: str, partition: RegisteredPartition, offset: int) -> dict[str, Any]:
    value = make_function(
        {
            "leader": partition.leader,
            "leaderEpoch": partition.leader_epoch,
            "isr": partition.isr,
            "partitionEpoch": partition.partition_epoch,
        }
    )
    source = f"__cluster_metadata-0, offset {offset}"
    return {"trace": name, "state": {"registration": to_itf(value)}, "source": source}


def _mapping_of_elections(history: Sequence[tuple[RegisteredPartition, int]]) -> str:
    """Nobody writes: who may lead, and who is in the ISR, does not need records to be told."""
    first, last = history[0][0], history[-1][0]
    stopped = sum(partition.leader == NOBODY for partition, _ in history)
    unseen = (*_UNSEEN, *(_WHILE_NOBODY_LEADS if stopped else ()))
    steps = _UNSEEN_STEPS + bool(stopped)
    return "\n".join(
        [
            "schema = 1",
            "[silent]",
            f"actions = {json.dumps(unseen)}",
            f"steps = {steps}",
            "[constants]",
            f"Brokers = '{format_value(first.isr)}'",
            f"InitialLeader = '{format_value(first.leader)}'",
            "Offsets = '0..0'",
            "AppendCounts = '{0}'",
            f"BrokerEpochs = '0..{stopped}'",
            f"Epochs = '0..{max(last.leader_epoch, 1)}'",
            f"PartitionEpochs = '0..{last.partition_epoch}'",
            "LogStartMoves = 'FALSE'",
            "",
        ]
    )
