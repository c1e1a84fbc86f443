"""The consumer that is played at a port, against the specification's: every step of the models."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.modelcheck.check import graph_and_spec
from conformance.stages.context import constants_of, one_model
from conformance.systems.wire.consumer.member import (
    Answer,
    Commit,
    CommitAnswer,
    Consumer,
    Heartbeat,
    Member,
)
from conformance.systems.wire.consumer.system import (
    OF_A_MEMBER,
    commit_value,
    consumer_value,
    message_value,
    settings_of,
)
from conformance.tla import Fn, Value

# A record of the specification has values of any kind; what they are its TypeOK says, no type here.


def consumer_of(value: Mapping[Value, Value]) -> Consumer:
    fields = {str(name): one for name, one in value.items()}
    return Consumer(**fields)  # type: ignore[arg-type]  # drawn


def message_of(value: Mapping[Value, Value]) -> Heartbeat | Answer | None:
    fields = {str(name): one for name, one in value.items()}
    owned, given = fields["owned"], fields["given"]
    if fields["type"] == "Request":
        return Heartbeat(fields["epoch"], owned if fields["named"] else None)  # type: ignore[arg-type]  # drawn
    if fields["type"] == "Answer":
        told = given if fields["told"] else None
        return Answer(str(fields["error"]), fields["epoch"], told)  # type: ignore[arg-type]  # drawn
    return None


def commit_of(value: Mapping[Value, Value]) -> Commit | CommitAnswer | None:
    fields = {str(name): one for name, one in value.items()}
    partitions = fields["partitions"]
    if fields["type"] == "Request":
        return Commit(fields["epoch"], partitions)  # type: ignore[arg-type]  # drawn
    if fields["type"] == "Answer":
        return CommitAnswer(partitions, str(fields["error"]))  # type: ignore[arg-type]  # drawn
    return None


@pytest.mark.parametrize("name", ["consumer/commits-2m", "consumer/static-2m"])
def test_every_step_of_a_member_is_the_specifications(name: str) -> None:
    graph, prepared = graph_and_spec(one_model(name))
    settings = settings_of(constants_of(prepared))
    consumer, channel, commit = map(graph.variables.index, ("consumer", "channel", "commit"))
    states = list(graph.states)
    taken = set()
    for source, target, code in zip(graph.source, graph.target, graph.action, strict=True):
        action = graph.actions[code]
        if action.name not in OF_A_MEMBER:
            continue
        who = str(action.args[0])
        names = settings.names_while_reconciling
        member = Member(who, settings.instances[who], names_while_reconciling=names)
        before, after = states[source], states[target]
        member.consumer = consumer_of(entry(before[consumer], who))
        member.channel = message_of(entry(before[channel], who))
        member.commit = commit_of(entry(before[commit], who))
        OF_A_MEMBER[action.name](member)
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
