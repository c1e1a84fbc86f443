"""Findings on Kafka's classes as plain JUnit tests, for those who maintain them.

A test stands alone: it calls Kafka's classes of one release, JUnit and Mockito, and nothing of
ours. It is red where the finding is, and green where it is not.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.kafka.jars import KafkaJars
from conformance.kafka.maven import Coordinate
from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.classic import ClassicGroupScene
from conformance.systems.kafka.junit.client import VARIABLES as OF_CLIENTS
from conformance.systems.kafka.junit.client import ConsumerScene
from conformance.systems.kafka.junit.commits import CommitScene
from conformance.systems.kafka.junit.compaction import CompactionScene
from conformance.systems.kafka.junit.consumer import ConsumerGroupScene
from conformance.systems.kafka.junit.directory import DirectoryScene
from conformance.systems.kafka.junit.java import rendered, text
from conformance.systems.kafka.junit.membership import MembershipScene
from conformance.systems.kafka.junit.mixed import MixedGroupScene
from conformance.systems.kafka.junit.partition import PartitionScene
from conformance.systems.kafka.junit.persister import PersisterScene
from conformance.systems.kafka.junit.positions import PositionsScene
from conformance.systems.kafka.junit.producer import ProducerScene
from conformance.systems.kafka.junit.reassignment import ReassignmentScene
from conformance.systems.kafka.junit.replica import ReplicaScene
from conformance.systems.kafka.junit.runtime import RuntimeScene
from conformance.systems.kafka.junit.runtime_groups import RuntimeGroupScene
from conformance.systems.kafka.junit.share import ShareScene
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.kafka.junit.storage import StorageScene
from conformance.systems.kafka.junit.topics import TopicsScene
from conformance.systems.kafka.junit.transaction import TransactionScene
from conformance.systems.kafka.junit.transactional_log import TransactionalLogScene
from conformance.systems.kafka.runtime import HAS_GROUPS
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn

LIBRARIES = (
    Coordinate("org.junit.platform", "junit-platform-console-standalone", "1.11.4"),
    Coordinate("org.mockito", "mockito-core", "5.14.2"),
)
"""What a test needs beside Kafka's jars."""

_METHOD = "doesNotDepart"


def junit_test(
    behaviour: Behaviour,
    constants: Mapping[str, str],
    jars: KafkaJars,
    deviation: Deviation | None = None,
) -> str:
    """The Java source of a test for the release of these jars.

    UserError for a behaviour that ends with no departure of Kafka's classes, and for a release
    that is too old.
    """
    scene = scene_of(behaviour, constants)
    if jars.release < scene.oldest:
        oldest = ".".join(map(str, scene.oldest))
        raise UserError(
            f"This JUnit test is written for Kafka {oldest} and later, not for {jars.version}. "
            "Name a release with --kafka."
        )
    test = scene.test()
    title = deviation.title if deviation else "agrees with the specification"
    values = {
        "name": class_name(deviation),
        "title": text(title),
        "method": "departs" if deviation is None else _METHOD,
        "description": _comment(deviation),
        "test": test,
        **scene.placeholders,
    }
    return rendered(Path(__file__).parent / scene.template, values, scene.parts(test), jars)


def scene_of(behaviour: Behaviour, constants: Mapping[str, str]) -> JUnitScene:
    """The scene that says the behaviour. Unsayable if there is none."""
    if "unadded" in behaviour.variables:
        return DirectoryScene.of(behaviour)
    if "fetchState" in behaviour.variables:
        return ReplicaScene.of(behaviour)
    if "registration" in behaviour.variables and "alter" in behaviour.variables:
        return ReassignmentScene.of(behaviour)
    if "fences" in behaviour.variables:
        return PersisterScene.of(behaviour, constants)
    if "rec" in behaviour.variables:
        return ShareScene.of(behaviour, constants)
    if "shard" in behaviour.variables:
        if HAS_GROUPS in constants and "timers" in behaviour.variables:
            raise Unsayable("no test is written for the session timers of groups")
        scene = RuntimeGroupScene if HAS_GROUPS in constants else RuntimeScene
        return scene.of(behaviour, constants)
    if "lastError" in behaviour.variables:
        return ProducerScene.of(behaviour, constants)
    if "recoveryPoint" in behaviour.variables:
        return StorageScene.of(behaviour, constants)
    if "lastData" in behaviour.variables:
        return CompactionScene.of(behaviour, constants)
    if "abortIndex" in behaviour.variables:
        return TransactionalLogScene.of(behaviour)
    if "preJoin" in behaviour.variables:
        return CommitScene.of(behaviour, constants)
    if "tps" in behaviour.variables:
        return PositionsScene.of(behaviour, constants)
    if "snapshot" in behaviour.variables:
        return TopicsScene.of(behaviour, constants)
    differing = {name for name, _, _ in DepartingPath(behaviour).differing()}
    if "groupRecord" in behaviour.variables:
        if differing <= OF_CLIENTS:
            return ConsumerScene.of(behaviour)
        return ClassicGroupScene.of(behaviour, constants)
    if "parked" in behaviour.variables:
        return MixedGroupScene.of(behaviour, constants)
    if "assignmentEpoch" in behaviour.variables:
        if "consumer" in differing:
            return MembershipScene.of(behaviour)
        return ConsumerGroupScene.of(behaviour, constants)
    if "transactionLog" in behaviour.variables:
        path = DepartingPath(behaviour)
        if path.action(len(path) - 1).args[0] in fn(path.value(0, "log")):
            return PartitionScene.of(behaviour)
        return TransactionScene.of(behaviour, constants)
    raise Unsayable("it is of no protocol that tests are written for")


def signature(scene: JUnitScene) -> str:
    """How the test's method begins in the class that `junit_test` writes."""
    template = Path(__file__).parent / scene.template
    lines = template.read_text(encoding="utf-8").splitlines()
    [line] = [line.strip() for line in lines if "void $method(" in line]
    return line.replace("$method", _METHOD)


def class_name(deviation: Deviation | None) -> str:
    """The test's class."""
    words = re.findall(r"[A-Za-z0-9]+", deviation.id if deviation else "finding")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Test"


def _comment(deviation: Deviation | None) -> str:
    if deviation is None:
        return "/** Written by kconform of a saved divergence. */"
    words = textwrap.wrap(deviation.description, 96, initial_indent=" * ", subsequent_indent=" * ")
    return "\n".join(["/**", f" * {deviation.title}.", " *", *words, " */"])
