"""Plans of workloads: what a seed settles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import pytest

from conformance.workload.client import ClientJob
from conformance.workload.plan import (
    CONSUMER_PROTOCOL_LIBRARIES,
    LIBRARIES,
    ClientRole,
    GroupProtocol,
    InstancePlan,
    PlannedAction,
    ProducerKind,
    WorkloadSettings,
    ending_plan,
    partitions_of,
    workload_plan,
)

SETTINGS = WorkloadSettings(seed=7, seconds=60.0, topics=("w-1", "w-2"))


def values(plan: Sequence[InstancePlan]) -> Iterator[str]:
    """All that is sent; of what a transformer sends how it begins."""
    for instance in plan:
        for step in instance.steps:
            yield from (record.value for record in step.records)
            if step.do is PlannedAction.TRANSFORM:
                yield step.value


def steps(plan: Sequence[InstancePlan], action: PlannedAction) -> list[object]:
    return [step for instance in plan for step in instance.steps if step.do is action]


def test_a_seed_settles_everything() -> None:
    plan = workload_plan(SETTINGS)
    assert plan == workload_plan(SETTINGS)
    assert ending_plan(SETTINGS) == ending_plan(SETTINGS)
    other = workload_plan(replace(SETTINGS, seed=8))
    assert [instance.steps for instance in plan] != [instance.steps for instance in other]
    assert [instance.dies for instance in plan] != [instance.dies for instance in other]


def test_every_value_is_sent_once() -> None:
    sent = Counter(values((*workload_plan(SETTINGS), *ending_plan(SETTINGS))))
    assert len(sent) > 1_000
    assert set(sent.values()) == {1}


def test_every_role_library_and_action_takes_part() -> None:
    plan = (*workload_plan(SETTINGS), *ending_plan(SETTINGS))
    assert {instance.role for instance in plan} == set(ClientRole)
    assert {instance.kind for instance in plan} == set(ProducerKind)
    assert {instance.library for instance in plan} == set(LIBRARIES)
    assert {step.do for instance in plan for step in instance.steps} == set(PlannedAction)
    assert {i.isolation for i in plan if i.role is ClientRole.READER} == {
        "read_committed",
        "read_uncommitted",
    }
    for action in (PlannedAction.TRANSACTION, PlannedAction.TRANSFORM):
        assert {step.commits for i in plan for step in i.steps if step.do is action} == {
            True,
            False,
        }


def test_producers_send_what_brokers_refuse_now_and_then_and_alone() -> None:
    plan = (*workload_plan(SETTINGS), *ending_plan(SETTINGS))
    oversized = Counter[ClientRole]()
    for instance in plan:
        for step in instance.steps:
            if any(record.is_oversized for record in step.records):
                assert len(step.records) == 1
                assert step.do is PlannedAction.SEND
                oversized[instance.role] += 1
    assert set(oversized) == {ClientRole.PRODUCER}
    assert oversized[ClientRole.PRODUCER] >= 10


def test_who_dies_comes_back_as_another_instance_with_the_same_transactional_id() -> None:
    plan = workload_plan(SETTINGS)
    dead = [instance for instance in plan if instance.dies is not None]
    assert len(dead) >= 5
    for instance in dead:
        name, _, number = instance.process.rpartition(".")
        (heir,) = [i for i in plan if i.process == f"{name}.{int(number) + 1}"]
        assert instance.dies is not None
        assert heir.starts > instance.dies
        assert (heir.client, heir.transactional_id) == (instance.client, instance.transactional_id)
        assert instance.starts + sum(step.rest for step in instance.steps) > instance.dies


def test_nobody_dies_if_nobody_is_to() -> None:
    settings = WorkloadSettings(seed=7, seconds=60.0, topics=("w",), crash_every=0.0)
    assert {instance.dies for instance in workload_plan(settings)} == {None}


def test_acks_are_those_of_plain_producers_only() -> None:
    settings = WorkloadSettings(seed=7, seconds=5.0, topics=("w",), acks="1")
    plan = (*workload_plan(settings), *ending_plan(settings))
    weak = [instance for instance in plan if instance.acks == "1"]
    assert {(instance.role, instance.kind) for instance in weak} == {
        (ClientRole.PRODUCER, ProducerKind.PLAIN)
    }


def test_the_seed_draws_who_joins_with_the_consumer_protocol() -> None:
    drawn = set()
    for seed in range(10):
        settings = replace(SETTINGS, seed=seed, consumer_protocol=CONSUMER_PROTOCOL_LIBRARIES)
        plan = (*workload_plan(settings), *ending_plan(settings))
        by_client = {(i.client, i.group_protocol) for i in plan}
        assert len(by_client) == len({i.client for i in plan})  # an heir joins as the dead one did
        drawn |= {(i.library, i.group_protocol) for i in plan if i.group}
        assert {i.group_protocol for i in plan if not i.group} == {GroupProtocol.CLASSIC}
    assert drawn == {
        *((library, GroupProtocol.CLASSIC) for library in LIBRARIES),
        *((library, GroupProtocol.CONSUMER) for library in CONSUMER_PROTOCOL_LIBRARIES),
    }
    assert {i.group_protocol for i in workload_plan(SETTINGS)} == {GroupProtocol.CLASSIC}


@pytest.mark.parametrize("kind", ProducerKind)
def test_one_kind_alone_has_no_clients_of_another(kind: ProducerKind) -> None:
    settings = WorkloadSettings(seed=7, seconds=5.0, topics=("w",), kinds=(kind,))
    plan = (*workload_plan(settings), *ending_plan(settings))
    transactional = kind is ProducerKind.TRANSACTIONAL
    assert any(instance.transactional_id for instance in plan) is transactional
    assert (ClientRole.TRANSFORMER in {instance.role for instance in plan}) is transactional
    assert bool(steps(plan, PlannedAction.FENCE)) is transactional


def test_the_end_reaches_every_partition() -> None:
    closer, *readers = ending_plan(SETTINGS)
    (last,) = [step for step in closer.steps if step.do is PlannedAction.SEND]
    everything = {(record.topic, record.partition) for record in last.records}
    assert everything == set(partitions_of(readers[0])) == set(partitions_of(readers[1]))
    assert {topic for topic, _ in everything} == {"w-1", "w-2", "w-1-out"}
    (fence,) = [step for step in closer.steps if step.do is PlannedAction.FENCE]
    ids = {instance.transactional_id for instance in workload_plan(SETTINGS)} - {""}
    assert set(fence.ids) == ids


def test_transformers_do_not_read_what_they_send() -> None:
    for instance in workload_plan(SETTINGS):
        if instance.role is ClientRole.TRANSFORMER:
            assert instance.output
            assert instance.output not in instance.topics


def test_a_job_is_read_as_it_was_written() -> None:
    for instance in workload_plan(SETTINGS):
        job = ClientJob("127.0.0.1:1", instance, "log", {"isolation": "read_committed"})
        assert msgspec.json.decode(msgspec.json.encode(job), type=ClientJob) == job
