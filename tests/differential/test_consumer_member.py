"""The consumer that is played at a port, against the specification's: every step of the models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.modelcheck.check import graph_and_spec
from conformance.stages.context import constants_of, one_model
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    ConsumerState,
    Heartbeat,
    HeartbeatAnswer,
    WireMember,
    is_of_a_member,
    step_of_member,
)
from conformance.systems.wire.consumer.observation import (
    commit_value,
    consumer_value,
    message_value,
)
from conformance.systems.wire.consumer.reach import settings_of
from conformance.tla import Fn, Value


def fields_of(value: Mapping[Value, Value]) -> dict[str, Any]:
    """A record's fields; of what kind each is the specification's TypeOK says."""
    return {str(name): one for name, one in value.items()}


def consumer_of(value: Mapping[Value, Value]) -> ConsumerState:
    fields = fields_of(value)
    return ConsumerState(**fields)


def message_of(value: Mapping[Value, Value]) -> Heartbeat | HeartbeatAnswer | None:
    fields = fields_of(value)
    owned, given = fields["owned"], fields["given"]
    if fields["type"] == "Request":
        return Heartbeat(fields["epoch"], owned if fields["named"] else None, fields["reads"])
    if fields["type"] == "Answer":
        told = given if fields["told"] else None
        return HeartbeatAnswer(str(fields["error"]), fields["epoch"], told)
    return None


def commit_of(value: Mapping[Value, Value]) -> Commit | CommitAnswer | None:
    fields = fields_of(value)
    partitions = fields["partitions"]
    if fields["type"] == "Request":
        return Commit(fields["epoch"], partitions)
    if fields["type"] == "Answer":
        return CommitAnswer(partitions, str(fields["error"]))
    return None


@pytest.mark.parametrize(
    "name", ["consumer/commits-2m", "consumer/static-2m", "consumer/topics-1m"]
)
def test_every_step_of_a_member_is_the_specifications(name: str) -> None:
    graph, prepared = graph_and_spec(one_model(name))
    settings = settings_of(constants_of(prepared))
    consumer, channel, commit = map(graph.variables.index, ("consumer", "channel", "commit"))
    states = list(graph.states)
    taken = set()
    for source, target, code in zip(graph.source, graph.target, graph.action, strict=True):
        action = graph.actions[code]
        if not is_of_a_member(action):
            continue
        who = str(action.args[0])
        names = settings.names_while_reconciling
        instance, reads = settings.instances[who], settings.reads[who]
        member = WireMember(who, instance, reads, names_while_reconciling=names)
        before, after = states[source], states[target]
        member.consumer = consumer_of(entry(before[consumer], who))
        member.channel = message_of(entry(before[channel], who))
        member.commit = commit_of(entry(before[commit], who))
        step_of_member(member, action)
        assert consumer_value(member.consumer) == entry(after[consumer], who), action
        assert message_value(member.channel) == entry(after[channel], who), action
        assert commit_value(member.commit) == entry(after[commit], who), action
        taken.add(action.name)
    assert {"Join", "SendHeartbeat", "Assign", "ReceiveAnswer"} <= taken


def entry(value: Value, member: str) -> Fn:
    assert isinstance(value, Fn)
    found = value[member]
    assert isinstance(found, Fn)
    return found
