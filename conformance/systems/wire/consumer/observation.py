"""What is seen of a group of KIP-848 and its members, as ConsumerGroup.tla's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from conformance.systems.wire.consumer.member import (
    NO_EPOCH,
    Commit,
    CommitAnswer,
    ConsumerProcess,
    ConsumerState,
    Heartbeat,
    HeartbeatAnswer,
)
from conformance.systems.wire.consumer.reach import NO_ASSIGNOR, ConsumerSettings
from conformance.systems.wire.consumer.requests import DescribedMember, Description
from conformance.tla import Fn, Value

OF_GROUP = (
    "groupEpoch",
    "assignmentEpoch",
    "target",
    "memberEpoch",
    "subscribed",
    "described",
    "preferred",
)
"""What ConsumerGroupDescribe shows."""
VARIABLES = (*OF_GROUP, "consumer", "channel", "commit")
"""Observed."""


def not_always(settings: ConsumerSettings) -> frozenset[str]:
    """What an observation may lack: all of a group whose regular expressions are being resolved;
    the target, which is not described of a topic that is deleted."""
    if settings.regexes:
        return frozenset(OF_GROUP)
    return frozenset() if all(topic.stays for topic in settings.topics) else frozenset({"target"})


def group_values(
    group: Description,
    shown: Mapping[str, DescribedMember],
    names: Iterable[str],
) -> dict[str, Value]:
    """The group's variables. `shown`: the members by name."""

    def by_member(value: Callable[[DescribedMember], Value], nothing: Value) -> Fn:
        return Fn({name: value(shown[name]) if name in shown else nothing for name in names})

    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "target": by_member(lambda member: member.target, frozenset()),
        "memberEpoch": by_member(lambda member: member.epoch, NO_EPOCH),
        "subscribed": by_member(lambda member: _names(member.reads), frozenset()),
        "described": by_member(lambda member: member.assigned, frozenset()),
        "preferred": group.assignor if shown else NO_ASSIGNOR,
    }


def member_values(members: Iterable[ConsumerProcess]) -> dict[str, Value]:
    """The members' variables."""
    members = tuple(members)
    return {
        "consumer": Fn({member.name: consumer_value(member.consumer) for member in members}),
        "channel": Fn({member.name: message_value(member.channel) for member in members}),
        "commit": Fn({member.name: commit_value(member.commit) for member in members}),
    }


def consumer_value(consumer: ConsumerState) -> Fn:
    """As the specification's `consumer[m]`."""
    return Fn(
        {
            "state": consumer.state,
            "epoch": consumer.epoch,
            "given": _values(consumer.given),
            "owned": _values(consumer.owned),
            "local": _values(consumer.local),
            "named": consumer.named,
            "reads": _names(consumer.reads),
            "news": consumer.news,
        }
    )


def message_value(message: Heartbeat | HeartbeatAnswer | None) -> Fn:
    """As the specification's `channel[m]`."""
    fields: dict[Value, Value] = {
        "type": "None",
        "epoch": NO_EPOCH,
        "named": False,
        "owned": frozenset(),
        "reads": frozenset(),
        "error": "NONE",
        "told": False,
        "given": frozenset(),
    }
    match message:
        case Heartbeat(epoch, owned, reads):
            fields |= {"type": "Request", "epoch": epoch, "named": owned is not None}
            fields |= {"owned": _values(owned or ()), "reads": _names(reads)}
        case HeartbeatAnswer(error, epoch, given):
            fields |= {"type": "Answer", "epoch": epoch, "error": error, "told": given is not None}
            fields["given"] = _values(given or ())
    return Fn(fields)


def commit_value(commit: Commit | CommitAnswer | None) -> Fn:
    """As the specification's `commit[m]`."""
    fields: dict[Value, Value] = {
        "type": "None",
        "epoch": NO_EPOCH,
        "partitions": frozenset(),
        "error": "NONE",
    }
    match commit:
        case Commit(epoch, partitions):
            fields |= {"type": "Request", "epoch": epoch, "partitions": _values(partitions)}
        case CommitAnswer(step, error):
            fields |= {"type": "Answer", "partitions": _values(step), "error": error}
    return Fn(fields)


def _names(names: Iterable[str]) -> frozenset[Value]:
    return frozenset(names)


def _values(partitions: Iterable[int]) -> frozenset[Value]:
    return frozenset(partitions)
