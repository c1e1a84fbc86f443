"""A release of Kafka, or a build of one's own, as a broker that is started here.

It is one node on loopback with short timers, which is started at its first use and ends with this
process; for models in which another leader is elected there are two, for those of a full cache of
fetch sessions there is one with few slots, for groups that change their protocol one of each
migration policy, and for groups of KIP-848 one of each limit or assignment interval. It is driven
through its port as any other broker is.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode

from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import KafkaJars, chosen_jars, kafka_lib, release_of
from conformance.kafka.maven import Tell, silent
from conformance.systems.shared.produce.window import SPECIFICATION as PRODUCE
from conformance.systems.wire.address import SHARDS
from conformance.systems.wire.consumer.inner_steps import (
    ASSIGNMENT_INTERVAL_MS,
    FIRST_WITH_INTERVAL,
    REGEX_REFRESH_MS,
    WITHOUT_INTERVAL,
)
from conformance.systems.wire.consumer.reach import SIGN as CONSUMER_SIGN
from conformance.systems.wire.consumer.reach import SPECIFICATION as CONSUMER_GROUPS
from conformance.systems.wire.consumer.reach import default_assignor_of, has_interval, limit_of
from conformance.systems.wire.consumer.regexes import refreshes, regexes_of
from conformance.systems.wire.data.driven import SPECIFICATION as DATA_PATH
from conformance.systems.wire.data.reach import changes_leaders, slots_of
from conformance.systems.wire.data.session_cache import SIGN
from conformance.systems.wire.data.session_cache import SPECIFICATION as SESSION_CACHE
from conformance.systems.wire.data.sessions import SPECIFICATION as SESSIONS
from conformance.systems.wire.factory import PortSystem, WireFactory
from conformance.systems.wire.failover import MOVE
from conformance.systems.wire.mixed.reach import ASSIGNOR, policy_of
from conformance.systems.wire.mixed.reach import SPECIFICATION as MIXED_GROUPS
from conformance.systems.wire.transaction.reach import SPECIFICATION as TRANSACTIONS
from conformance.tla import Value

_DELAY_MS: Final = 300
_SETTINGS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "initial-delay": _DELAY_MS,
        "session": 800,
        "min-session": 10,
        "rebalance": 1200,
        "groups": 48,
    }
)
"""What the factory of a broker at a port is told of it."""
_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group.initial.rebalance.delay.ms": str(_DELAY_MS),
        "group.min.session.timeout.ms": "10",
        # Of KIP-848, and of releases that have it: short sessions, an assignment at each heartbeat.
        "group.consumer.min.session.timeout.ms": "100",
        "group.consumer.min.heartbeat.interval.ms": "50",
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.assignor.offload.enable": "false",
    }
)
_OF_RUNNING: Final = frozenset(
    {CONSUMER_GROUPS, MIXED_GROUPS, PRODUCE, TRANSACTIONS, DATA_PATH, SESSIONS, SESSION_CACHE}
)
"""Specifications of which the broker itself says what it can take."""
_WAITING_GROUPS: Final = 128
_NOWHERE: Final = "127.0.0.1:1"
"""The address of a broker that need not run: for what its settings alone say."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a model asks of the broker that is started for it."""

    brokers: int = 1
    slots: int = 0
    """For fetch sessions; 0: as delivered."""
    policy: str = ""
    """group.consumer.migration.policy; empty: as delivered."""
    assignor: str = ""
    """group.consumer.assignors; empty: as delivered, or what the policy's models need."""
    consumers: int = 0
    """group.consumer.max.size; 0: as delivered."""
    interval: int = 0
    """group.consumer.assignment.interval.ms."""
    refresh: int = 0
    """group.consumer.regex.refresh.interval.ms; 0: as delivered."""
    waits: bool = False
    """Tests wait ten seconds and more: so many more run side by side."""

    @property
    def settings(self) -> Mapping[str, str | int]:
        """What the factory of a broker at a port is told of it."""
        moved = {"fail-over": MOVE} if self.brokers > 1 else {}
        mixed = {"migration-policy": self.policy} if self.policy else {}
        assignor = {"assignor": self._assignors} if self._assignors else {}
        consumers = {
            "consumer-max-size": self.consumers,
            "assignment-interval": self.interval,
            "regex-refresh": self.refresh,
        }
        lanes = {"groups": _WAITING_GROUPS} if self.waits else {}
        return {"fetch-slots": self.slots, **moved, **mixed, **assignor, **consumers, **lanes}

    @property
    def _assignors(self) -> str:
        return self.assignor or (ASSIGNOR if self.policy else "")

    @property
    def properties(self) -> Mapping[str, str]:
        """The same, as the broker's own settings."""
        own = {
            "max.incremental.fetch.session.cache.slots": self.slots,
            "group.consumer.max.size": self.consumers,
            "group.consumer.migration.policy": self.policy,
            "group.consumer.assignors": self._assignors,
            "group.consumer.assignment.interval.ms": self.interval,
            "group.consumer.regex.refresh.interval.ms": self.refresh,
        }
        return {name: str(value) for name, value in own.items() if value}


class BrokerFactory:
    """Makes systems for a broker of a release; it starts with the first that needs its port."""

    def __init__(self, release: str) -> None:
        self._release = release
        # What a broker would be started for is not beyond its reach.
        self._unstarted = _at(_NOWHERE, release, Needs(refresh=REGEX_REFRESH_MS))

    def __call__(self, constants: Mapping[str, Value]) -> PortSystem:
        """A system for a model's constants. EnvironmentProblem if the broker does not start."""
        return _started(self._release, _needs_of(constants))(constants)

    def make_ready(self, tell: Tell) -> None:
        """Fetch the jars."""
        _jars(self._release, tell)

    def version_of(self, part: str) -> str:
        """As the jars themselves tell it."""
        return self._unstarted.version_of(part)

    def deviations(self) -> tuple[Deviation, ...]:
        """Those of the release that a port can show."""
        return self._unstarted.deviations()

    def file(self, name: str) -> Path:
        """Where a saved path of the table lies."""
        return self._unstarted.file(name)

    def beyond_reach(self) -> Mapping[str, str]:
        """What no path can bring about with these settings."""
        return self._unstarted.beyond_reach()

    def passes(self, constants: Mapping[str, Value], state: Mapping[str, Value]) -> str:
        """Why no group of a broker comes into a state; empty if one may."""
        return self._unstarted.passes(constants, state)

    def goes_on(self, constants: Mapping[str, Value], state: Mapping[str, Value]) -> frozenset[str]:
        """By which actions a broker goes on by itself in a state; empty where it stays."""
        return self._unstarted.goes_on(constants, state)

    def shared_name(self, constants: Mapping[str, Value]) -> str:
        """The address of the broker that was started here."""
        return _started(self._release, _needs_of(constants)).shared_name(constants)

    def cannot_take(self, specification: str, constants: Mapping[str, Value]) -> str:
        """Why a model cannot be driven; empty if it can."""
        if specification == CONSUMER_GROUPS and (reason := self._without_interval(constants)):
            return reason
        if specification in _OF_RUNNING:
            started = _started(self._release, _needs_of(constants))
            return started.cannot_take(specification, constants)
        return self._unstarted.cannot_take(specification, constants)

    def _without_interval(self, constants: Mapping[str, Value]) -> str:
        """A release before 4.3 starts, and knows nothing of the setting."""
        if has_interval(constants) and release_of(self._version) < FIRST_WITH_INTERVAL:
            return WITHOUT_INTERVAL
        return ""

    @property
    def _version(self) -> str:
        is_build = not self._release or os.sep in self._release
        return _jars(self._release, silent).version if is_build else self._release


def of_release(text: str) -> BrokerFactory:
    """`broker-VERSION`, or `broker` and `broker-FOLDER` for the jars of a build. UserError."""
    if os.sep in text:
        kafka_lib(Path(text))
    elif text:
        release_of(text)
    elif not os.environ.get("KCONFORM_KAFKA_LIB"):
        raise UserError(
            "The system `broker` is your own build: name the folder of its jars with --kafka-lib "
            "or KCONFORM_KAFKA_LIB. A release is `broker-VERSION`."
        )
    return BrokerFactory(text)


def _at(address: str, release: str, needs: Needs | None = None) -> WireFactory:
    known = f"kafka-{release}" if release else "kafka"
    settings = {**_SETTINGS, "deviations": known, **(needs or Needs()).settings}
    return WireFactory(f"{address}?{urlencode(settings)}")


def _needs_of(constants: Mapping[str, Value]) -> Needs:
    slots = slots_of(constants, SHARDS) if SIGN in constants else 0
    brokers = 2 if changes_leaders(constants) else 1
    if CONSUMER_SIGN not in constants:
        return Needs(brokers, slots, policy_of(constants))
    return Needs(
        assignor=default_assignor_of(constants),
        refresh=REGEX_REFRESH_MS if refreshes(constants) else 0,
        waits=bool(regexes_of(constants)),
        consumers=limit_of(constants),
        interval=ASSIGNMENT_INTERVAL_MS if has_interval(constants) else 0,
    )


def _jars(release: str, tell: Tell) -> KafkaJars:
    if os.sep in release:
        return kafka_lib(Path(release))
    return chosen_jars(release or None, None, tell=tell)


@cache
def _started(release: str, needs: Needs) -> WireFactory:
    """The brokers of this process; they end when the process does."""
    folder = Path(tempfile.mkdtemp(prefix="kconform-broker-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = ClusterSettings(needs.brokers, properties={**_PROPERTIES, **needs.properties})
    cluster = Cluster(_jars(release, silent), folder, settings)
    atexit.register(cluster.end)
    cluster.__enter__()
    return _at(cluster.bootstrap.partition(",")[0], release, needs)
