"""A recording's plan: a TOML file with brokers, topics, clients and faults (docs/cluster.md)."""

from __future__ import annotations

import hashlib
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from conformance import toml
from conformance.errors import UserError
from conformance.inputs import read_text

NODE_FAULTS = ("kill", "stop", "pause", "isolate")
"""Faults of a node; each has a time after which it is undone."""
CLIENT_FAULTS = ("kill-client", "stop-client", "start-client")
OTHER_FAULTS = ("elect",)


class Topic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to create before anything else."""

    name: str
    partitions: int = 1
    replicas: int = 0
    """0: three, or as many as there are brokers."""
    configs: dict[str, str] = {}


class ScenarioClient(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client in a process of its own; `name` is its client id."""

    name: str
    role: str
    topic: str
    library: str = "confluent-kafka"
    group: str = ""
    instance: str = ""
    acks: str = "all"
    rate: float = 20.0
    batch: int = 1
    idempotent: bool = False
    session_ms: int = 3000
    max_poll_ms: int = 6000
    starts: float = 0.0
    """Seconds after the cluster is ready; -1: only when a fault starts it."""


class ScheduledFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that happens at a time."""

    at: float
    action: str
    node: int | str = ""
    """A number, `leader:TOPIC`, `follower:TOPIC`, `controller`, `coordinator:GROUP` or `any`."""
    client: str = ""
    topic: str = ""
    seconds: float = 4.0
    """How long a node is down, paused or isolated."""


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults drawn from the seed."""

    actions: list[str]
    every: float = 6.0
    node: str = "any"
    seconds: float = 4.0


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is recorded."""

    brokers: int = 1
    seconds: float = 20.0
    settings: dict[str, str] = {}
    topic: list[Topic] = []
    client: list[ScenarioClient] = []
    fault: list[ScheduledFault] = []
    random: Faults | None = None
    tap: bool = True
    agent: bool = True


@dataclass(frozen=True, slots=True)
class ScenarioPlan:
    """A scenario with the faults that a seed drew."""

    scenario: Scenario
    seed: int
    text: str = field(repr=False)
    faults: tuple[ScheduledFault, ...] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of the scenario's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_plan(path: Path, seed: int) -> ScenarioPlan:
    """The scenario at `path` with the faults of this seed. Raises UserError."""
    return plan_of(read_text(path), seed, str(path))


def plan_of(text: str, seed: int, name: str = "given") -> ScenarioPlan:
    """The scenario of a text with the faults of this seed. Raises UserError."""
    try:
        scenario = toml.convert(tomllib.loads(text), Scenario)
    except (ValueError, RecursionError) as error:
        raise UserError(f"The scenario {name} cannot be read: {error}") from error
    _check(name, scenario)
    return ScenarioPlan(scenario, seed, text, _all_faults(scenario, seed))


def faults_plan(brokers: int, seed: int, faults: Faults, seconds: float) -> ScenarioPlan:
    """Only faults of nodes, for brokers that serve somebody else's clients. Raises UserError."""
    scenario = Scenario(brokers=brokers, seconds=seconds, random=faults)
    wrong = [action for action in faults.actions if action not in NODE_FAULTS]
    if wrong:
        raise UserError(f"{wrong[0]} is no fault of a broker; those are {', '.join(NODE_FAULTS)}.")
    return ScenarioPlan(scenario, seed, "", _all_faults(scenario, seed))


def run_of(plan: ScenarioPlan, number: int, seed: int) -> ScenarioPlan:
    """One of several runs on the same brokers: names of its own (`t-r3`), faults of this seed."""
    scenario = _renamed(plan.scenario, f"-r{number}")
    return ScenarioPlan(scenario, seed, plan.text, _all_faults(scenario, seed))


def _renamed(scenario: Scenario, suffix: str) -> Scenario:
    """The scenario with the suffix at each name of a topic, client, group and instance."""
    return msgspec.structs.replace(
        scenario,
        topic=[
            msgspec.structs.replace(topic, name=topic.name + suffix) for topic in scenario.topic
        ],
        client=[_with_suffix(client, suffix, _CLIENT_NAMES) for client in scenario.client],
        fault=[_with_suffix(fault, suffix, _FAULT_NAMES) for fault in scenario.fault],
        random=scenario.random and _with_suffix(scenario.random, suffix, ("node",)),
    )


_CLIENT_NAMES = ("name", "topic", "group", "instance")
_FAULT_NAMES = ("client", "topic", "node")


Named = TypeVar("Named", ScenarioClient, ScheduledFault, Faults)


def _with_suffix(item: Named, suffix: str, fields: Sequence[str]) -> Named:
    """The suffix at those fields that name anything; not at a node's number, or `controller`."""
    changed = {}
    for field_name in fields:
        value = getattr(item, field_name)
        named = bool(value) if field_name != "node" else ":" in str(value)
        if named:
            changed[field_name] = value + suffix
    return msgspec.structs.replace(item, **changed)


def _all_faults(scenario: Scenario, seed: int) -> tuple[ScheduledFault, ...]:
    """The faults that the scenario names and those that the seed draws, in their order."""
    faults = [*scenario.fault, *_drawn(scenario, seed)]
    return tuple(sorted(faults, key=lambda fault: fault.at))


def _drawn(scenario: Scenario, seed: int) -> Sequence[ScheduledFault]:
    """One fault in each period, at a random moment of its first half."""
    drawn = scenario.random
    if drawn is None:
        return ()
    source = random.Random(seed)
    faults = []
    start = drawn.every / 2
    while start + drawn.seconds < scenario.seconds:
        at = start + source.random() * drawn.every / 2
        action = source.choice(drawn.actions)
        client = source.choice(scenario.client).name if action in CLIENT_FAULTS else ""
        topic = source.choice(scenario.topic).name if action == "elect" else ""
        node: int | str = drawn.node
        if node == "any":
            node = source.randint(1, scenario.brokers)
        faults.append(ScheduledFault(round(at, 3), action, node, client, topic, drawn.seconds))
        start += drawn.every
    return faults


def _check(name: str, scenario: Scenario) -> None:
    """What the types do not say. Raises UserError."""
    topics = {topic.name for topic in scenario.topic}
    clients = {client.name for client in scenario.client}
    problems = [
        f"client {client.name} uses topic {client.topic!r}, which is not declared"
        for client in scenario.client
        if client.topic not in topics
    ]
    problems += [
        f"client {client.name}: {problem}"
        for client in scenario.client
        for problem in _client_problems(client)
    ]
    actions = [fault.action for fault in scenario.fault]
    actions += scenario.random.actions if scenario.random else []
    known = NODE_FAULTS + CLIENT_FAULTS + OTHER_FAULTS
    problems += [
        f"there is no fault {action!r}; the faults are {', '.join(known)}"
        for action in actions
        if action not in known
    ]
    problems += [
        f"fault {fault.action} at {fault.at} names client {fault.client!r}, which is not declared"
        for fault in scenario.fault
        if fault.action in CLIENT_FAULTS and fault.client not in clients
    ]
    if len(clients) < len(scenario.client):
        problems.append("two clients have the same name")
    if scenario.random and scenario.random.every <= 0:
        problems.append("random.every must be positive")
    if problems:
        raise UserError(f"The scenario {name} is wrong: {'; '.join(problems)}.")


def _client_problems(client: ScenarioClient) -> Sequence[str]:
    libraries: Mapping[str, Sequence[str]] = {
        "producer": ("confluent-kafka", "kafka-python", "aiokafka"),
        "consumer": ("confluent-kafka", "kafka-python", "aiokafka", "java"),
    }
    problems: list[str] = []
    if client.role not in libraries:
        problems.append(f"role is producer or consumer, not {client.role!r}")
    elif client.library not in libraries[client.role]:
        problems.append(f"library is one of {', '.join(libraries[client.role])}")
    if client.role == "consumer" and not client.group:
        problems.append("a consumer needs a group")
    if client.acks not in ("0", "1", "all"):
        problems.append("acks is 0, 1 or all")
    return problems


def as_json(fault: ScheduledFault) -> dict[str, Any]:
    """A fault for the recording's manifest."""
    converted: dict[str, Any] = msgspec.to_builtins(fault)
    return converted
