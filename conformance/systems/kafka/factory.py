"""Makes systems of one version of Kafka: jars, bridge, a JVM per process of ours."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from conformance.deviations.table import Deviation, load_choices, load_deviations
from conformance.errors import EnvironmentProblem, UserError
from conformance.kafka.jars import KafkaJars, kafka_jars, kafka_lib, release_of
from conformance.kafka.maven import Tell, silent
from conformance.systems.external import CHANNELS, AdapterChannel, AdapterTimeouts
from conformance.systems.kafka.bridge import BridgeTransport, bridge_command
from conformance.systems.kafka.compaction import KafkaCompactionSystem, not_driven
from conformance.systems.kafka.consumer_commits import KafkaCommitsSystem
from conformance.systems.kafka.consumer_positions import KafkaPositionsSystem
from conformance.systems.kafka.consumer_topics import KafkaTopicsSystem
from conformance.systems.kafka.consumers import JavaConsumerGroupSystem, KafkaConsumerGroupSystem
from conformance.systems.kafka.directories import KafkaAssignmentSystem, KafkaDirectoriesSystem
from conformance.systems.kafka.groups import KafkaGroupSystem
from conformance.systems.kafka.mixed import KafkaMixedGroupSystem
from conformance.systems.kafka.persister import KafkaPersisterSystem
from conformance.systems.kafka.produce import KafkaProduceSystem
from conformance.systems.kafka.producer import KafkaProducerSystem
from conformance.systems.kafka.reassignment import KafkaReassignmentSystem
from conformance.systems.kafka.runtime import KafkaRuntimeSystem
from conformance.systems.kafka.runtime_tasks import KafkaTasksSystem
from conformance.systems.kafka.runtime_timers import KafkaTimedGroupsSystem
from conformance.systems.kafka.share import KafkaShareSystem
from conformance.systems.kafka.storage import KafkaStorageSystem
from conformance.systems.kafka.system import KafkaSystem
from conformance.systems.kafka.transactional_log import (
    KafkaExpiringLogSystem,
    KafkaStoredLogSystem,
    KafkaTransactionalLogSystem,
)
from conformance.systems.protocol import SystemFactory, SystemFailed, SystemUnderTest
from conformance.systems.shared.group.settings import settings_of
from conformance.systems.shared.mixed.settings import settings_of as mixed_settings_of
from conformance.systems.shared.produce.window import SIGN as _OF_PRODUCE
from conformance.systems.shared.produce.window import SPECIFICATION as _PRODUCE
from conformance.systems.shared.produce.window import other_window
from conformance.systems.wire.consumer.inner_steps import FIRST_WITH_INTERVAL, WITHOUT_INTERVAL
from conformance.systems.wire.consumer.reach import has_interval
from conformance.systems.wire.consumer.reach import settings_of as consumer_settings_of
from conformance.tla import Value

TRIED: Final = ("3.8.1", "3.9.0", "3.9.1", "4.0.0", "4.1.0", "4.2.0", "4.3.0", "4.4.0")
"""Versions that suites were driven through, 4.2.0 and 4.3.0 by those of the runtime only; others
between them are likely to work."""

_CLIENT: Final = "+client"
"""At the end of a system's name, alone or as `+client-VERSION`."""
_JAVA_CLIENT: Final = "client"
"""The part of a deviation that is the Java consumer's."""

_TABLE = Path(__file__).parent / "deviations.toml"
_OLDEST = (3, 8, 0)
_LIMITS = AdapterTimeouts(start=120.0, call=30.0)
_REPLICATION, _GROUPS, _RUNTIME = "Replication", "GroupMembership", "CoordinatorStore"
_OF_RUNTIME = (_RUNTIME, "CoordinatorGroups", "CoordinatorTransactions")
_CONSUMER_GROUPS, _TRANSACTIONS = "ConsumerGroup", "Transactions"
_TRANSACTIONAL_LOG, _MIXED_GROUPS, _SHARE = "TransactionalLog", "MixedGroup", "SharePartition"
_STORED_LOG, _EXPIRING_LOG = "TransactionalLogRestarts", "TransactionalLogExpiry"
_SHARE_STATES = "ShareCoordinator"
_PRODUCER = "TransactionManager"
_TASKS, _GROUP_TIMERS = "CoordinatorTasks", "CoordinatorGroupTimers"
_COMPACTION = "LogCompaction"
_STORAGE = "LogStorage"
_DIRECTORIES, _ASSIGNMENT = "DirectoryMove", "DirectoryAssignment"
_REASSIGNMENT = "Reassignment"
_COMMITS = "ConsumerCommits"
_POSITIONS = "ConsumerPositions"
_TOPICS = "ConsumerTopics"
_OF_CONSUMERS = (_COMMITS, _POSITIONS, _TOPICS)
_OF_ALL_RELEASES = (
    *(
        _TRANSACTIONAL_LOG,
        _STORED_LOG,
        _EXPIRING_LOG,
        _STORAGE,
        _DIRECTORIES,
        _ASSIGNMENT,
        _REASSIGNMENT,
    ),
    *_OF_CONSUMERS,
)
_OF_BROKERS = (_REPLICATION, "ReplicationInterruptedFetches")
_OF_TRANSACTIONS = (
    _TRANSACTIONS,
    "TransactionErrors",
    "TransactionExpiry",
    "TransactionProducerIds",
)
_SIGNS: Final[Mapping[str, str]] = {
    "Sessions": _TASKS,
    "TimedMembers": _GROUP_TIMERS,
    "MemberIds": _GROUPS,
    "MaxBatch": _RUNTIME,
    _OF_PRODUCE: _PRODUCE,
    "NamesWhileReconciling": _CONSUMER_GROUPS,
    "Coordinators": _TRANSACTIONS,
    "MaxRestarts": _STORED_LOG,
    "ProducersExpire": _EXPIRING_LOG,
    "PieceSizes": _TRANSACTIONAL_LOG,
    "MaxGroupEpoch": _SHARE_STATES,
    "DeliveryLimit": _SHARE,
    "BatchErrors": _PRODUCER,
    "KeepsLastBatch": _COMPACTION,
    "RetainedRecords": _STORAGE,
    "AssignmentFailures": _ASSIGNMENT,
    "DirectoryFailures": _DIRECTORIES,
    "FirstReplicas": _REASSIGNMENT,
    "Malformed": _MIXED_GROUPS,
    "AutoCommit": _COMMITS,
    "GroupAssigns": _POSITIONS,
    "Shares": _TOPICS,
}
"""Constants that models of one specification have, and others do not; an extension's come first."""

_METADATA_VERSIONS: Final[Mapping[str, str | None]] = {
    "TruncateOnFetch": None,  # the newest that the release has in production
    "Kip320": "IBP_2_6_IV0",
}
"""By protocol of the specification. Followers truncate on fetch from 2.7-IV1 on (KIP-595)."""

KafkaDriven = (
    KafkaSystem
    | KafkaGroupSystem
    | KafkaConsumerGroupSystem
    | KafkaMixedGroupSystem
    | KafkaRuntimeSystem
    | KafkaProduceSystem
    | KafkaTransactionalLogSystem
    | KafkaStoredLogSystem
    | KafkaExpiringLogSystem
    | KafkaShareSystem
    | KafkaPersisterSystem
    | KafkaProducerSystem
    | KafkaCompactionSystem
    | KafkaStorageSystem
    | KafkaDirectoriesSystem
    | KafkaAssignmentSystem
    | KafkaReassignmentSystem
    | KafkaCommitsSystem
    | KafkaPositionsSystem
    | KafkaTopicsSystem
    | SystemUnderTest
)
"""What of a release is driven."""

_FIRST_RUNTIME: Final = (4, 0, 0)
_FIRST_SHARE_GROUPS: Final = (4, 1, 0)
"""KIP-932: early access in 4.0, a preview in 4.1."""
_FIRST_COMPLETE_COUNT: Final = (4, 2, 0)
"""KIP-1226: what is stored of a share partition counts its settled records (KAFKA-19797)."""
_FIRST_VERSION_2: Final = (4, 0, 0)
_FIRST_STRICT_MARKERS: Final = (4, 2, 0)
"""KIP-890 and KIP-1228: transactions of version 2, and markers of it that need a new epoch."""
_WITHOUT_KIP_320: Final = (4, 0, 0)
"""Up to 3.9 a cluster of ZooKeeper's could be told to speak inter.broker.protocol.version 2.6."""


@cache
def _deviations() -> tuple[Deviation, ...]:
    """Of all versions. The table is read once: a broker's tests make a system for each lane."""
    return load_deviations(_TABLE)


@cache
def _choices() -> tuple[Deviation, ...]:
    return load_choices(_TABLE)


@dataclass(frozen=True, slots=True)
class KafkaFactory:
    """Makes systems of a version, or of the jars that KCONFORM_KAFKA_LIB names."""

    release: str
    """Empty for one's own build; a folder of jars is one, too."""
    client: str | None = None
    """The release whose Java consumers are a group's members; None: they are kconform's."""

    @property
    def version(self) -> str:
        """As the jars themselves tell it."""
        return _jars(self.release).version if _is_build(self.release) else self.release

    def version_of(self, part: str) -> str:
        """Of the brokers, or of the Java client where that is another one."""
        return self.client or self.version if part == _JAVA_CLIENT else self.version

    def deviations(self) -> tuple[Deviation, ...]:
        """Where Kafka is known to depart from the specification."""
        known = _deviations()
        if self.client is None:
            known = tuple(deviation for deviation in known if deviation.part != _JAVA_CLIENT)
        return known

    def choices(self) -> tuple[Deviation, ...]:
        """What the specification leaves to a build of Kafka."""
        return _choices()

    def file(self, name: str) -> Path:
        """Where a saved path of the table lies."""
        return _TABLE.parent / "paths" / name

    @property
    def name(self) -> str:
        """The system's name, as it is given on the command line."""
        name = _name(self.release)
        if self.client is None:
            return name
        return name + _CLIENT + (f"-{self.client}" if self.client != self.release else "")

    def __call__(self, constants: Mapping[str, Value]) -> KafkaDriven:
        """A system for these constants. UserError if Kafka does not run that protocol."""
        specification = specification_of(constants)
        reason = self.cannot_take(specification, constants)
        if reason:
            raise UserError(f"{self.name} cannot take this model: {reason}.")
        if specification in _ALL_BRIDGED:
            system, greeting = _ALL_BRIDGED[specification]
            return system(_bridge(self.release, self.name, greeting), constants)
        if specification == _SHARE_STATES:
            channel = _bridge(self.release, self.name, _SHARE_STATE_COMMANDS)
            counts = release_of(self.version) >= _FIRST_COMPLETE_COUNT
            return KafkaPersisterSystem(channel, constants, counts=counts)
        if specification == _TRANSACTIONS:
            channel = _bridge(self.release, self.name, _TRANSACTION_COMMANDS)
            return _transactions(channel, constants)
        if specification == _CONSUMER_GROUPS:
            coordinator = _bridge(self.release, self.name, _CONSUMER_COMMANDS)
            settings = consumer_settings_of(constants)
            clients = self._clients(coordinator)
            if clients is None:
                return KafkaConsumerGroupSystem(coordinator, settings)
            return JavaConsumerGroupSystem(coordinator, settings, clients)
        if specification == _MIXED_GROUPS:
            channel = _bridge(self.release, self.name, _CONSUMER_COMMANDS)
            return KafkaMixedGroupSystem(channel, mixed_settings_of(constants))
        if specification == _REPLICATION:
            channel = _bridge(self.release, self.name, _COMMANDS)
            return KafkaSystem(channel, constants, _METADATA_VERSIONS[str(constants["Protocol"])])
        coordinators = _bridge(self.release, self.name, _GROUP_COMMANDS)
        return KafkaGroupSystem(coordinators, settings_of(constants), self._clients(coordinators))

    def _clients(self, coordinators: AdapterChannel) -> AdapterChannel | None:
        """Where the consumers run: beside the coordinators if they are of the same jars."""
        if self.client is None or self.client == self.release:
            return None if self.client is None else coordinators
        try:
            return _bridge(self.client, self.name, ())
        except BaseException:
            CHANNELS.give_back(coordinators)
            raise

    def steps_a_second(self, specification: str) -> float:
        """On two cores of 2026: consumers and coordinators of groups are quicker than brokers with
        disks, and these than brokers that start again all the time."""
        if specification in (_GROUPS, *_OF_CONSUMERS):
            return 2_000.0
        return 500.0 if specification == _STORAGE else 1_000.0

    def make_ready(self, tell: Tell) -> None:
        """Fetch the jars and compile the bridge, those of the Java client too."""
        for release in (self.release, self.client or self.release):
            if release not in _ready:
                _compiled(_fetched(release, tell), tell)
                _ready.add(release)

    def cannot_take(self, specification: str, constants: Mapping[str, Value]) -> str:
        """What Kafka does not speak: other specifications, the protocols of history."""
        if specification == _GROUPS:
            return ""
        if specification == _CONSUMER_GROUPS:
            return (
                self._without_runtime()
                or self._without_assignment_interval(constants)
                or self._without_consumer_protocol()
                or self._beyond_clients(constants)
            )
        if self.client is not None:
            return f"its Java consumers are driven by {_GROUPS} and {_CONSUMER_GROUPS} only"
        if specification in (*_OF_RUNTIME, _TASKS, _GROUP_TIMERS, _MIXED_GROUPS):
            return self._without_runtime()
        if specification in (_SHARE, _SHARE_STATES):
            return self._without_share_groups()
        if specification in _OF_ALL_RELEASES:
            return ""
        if specification == _PRODUCER:
            return self._without_version_2(constants)
        if specification == _COMPACTION:
            return not_driven(constants)
        if specification == _PRODUCE:
            return other_window(constants)
        if specification in _OF_TRANSACTIONS:
            return self._other_transactions(constants) or self._beyond_epochs(constants)
        if specification not in _OF_BROKERS:
            others = (
                *(*_OF_BROKERS, _GROUPS, _CONSUMER_GROUPS, _MIXED_GROUPS, _SHARE_STATES),
                *_ALL_BRIDGED,
            )
            driven = f"{', '.join(others)}, {' and '.join(_OF_TRANSACTIONS)}"
            return f"Kafka's classes are driven by {driven}, not by {specification}"
        protocol = str(constants["Protocol"])
        if protocol not in _METADATA_VERSIONS:
            return f"no Kafka that can be driven here speaks {protocol}"
        if protocol == "Kip320" and release_of(self.version) >= _WITHOUT_KIP_320:
            return "from 4.0 on Kafka always truncates on fetch (KIP-595): not as Kip320 does"
        return ""

    def _beyond_clients(self, constants: Mapping[str, Value]) -> str:
        """Whether the Java consumers are to subscribe to more than the bridge's one topic."""
        if self.client is None or not constants:
            return ""
        settings = consumer_settings_of(constants)
        (first, *others) = settings.topics
        if others or not first.stays:
            return "its Java consumers subscribe to one topic"
        return "its Java consumers name no assignor" if len(settings.assignors) > 1 else ""

    def _other_transactions(self, constants: Mapping[str, Value]) -> str:
        """Whether the release runs this version of transactions: a broker runs version 1, too."""
        if constants["Version2"] is not True or self._without_version_2(constants):
            return self._without_version_2(constants)
        release = release_of(self.version)
        if constants["StrictMarkers"] is True or release < _FIRST_STRICT_MARKERS:
            return ""
        return "markers of transactions of version 2 need a new epoch from 4.2 on (KIP-1228)"

    def _without_version_2(self, constants: Mapping[str, Value]) -> str:
        if constants["Version2"] is not True or release_of(self.version) >= _FIRST_VERSION_2:
            return ""
        return "before 4.0 there are no transactions of version 2 (KIP-890)"

    def _beyond_epochs(self, constants: Mapping[str, Value]) -> str:
        """Whether a fence is to raise the last epoch of a producer id, and would raise it twice."""
        is_fenced = "LastEpoch" in constants and constants["TimeOuts"] is True
        if is_fenced and release_of(self.version) == _FIRST_VERSION_2:
            return "in 4.0.0 a fence raises the last epoch of an id to -32768 (KAFKA-19367)"
        return ""

    def _without_assignment_interval(self, constants: Mapping[str, Value]) -> str:
        if not has_interval(constants) or release_of(self.version) >= FIRST_WITH_INTERVAL:
            return ""
        return WITHOUT_INTERVAL

    def _without_consumer_protocol(self) -> str:
        if self.client is None or release_of(self.version_of(_JAVA_CLIENT)) >= _FIRST_RUNTIME:
            return ""
        return "before 4.0 the Java consumer's classes of KIP-848 are others"

    def _without_share_groups(self) -> str:
        if release_of(self.version) >= _FIRST_SHARE_GROUPS:
            return ""
        return "before 4.1 share groups (KIP-932) are not even a preview"

    def _without_runtime(self) -> str:
        if release_of(self.version) >= _FIRST_RUNTIME:
            return ""
        return "before 4.0 its default coordinator is not CoordinatorRuntime"


def specification_of(constants: Iterable[str]) -> str:
    """The specification whose models have these constants, or the one that it extends."""
    return next((of for sign, of in _SIGNS.items() if sign in constants), _REPLICATION)


def of_version(text: str) -> SystemFactory:
    """`kafka-VERSION`, or `kafka` for the jars of one's own build, or `kafka-FOLDER` for others.

    With `+client` the members of groups are Kafka's own Java consumers of the same jars, with
    `+client-VERSION` those of a release. UserError if a version is too old to be driven, or nothing
    says where the build is.
    """
    release, plus, client = text.partition(_CLIENT)
    if client and not client.startswith("-"):
        raise UserError(f"{text!r} names no client: write `{_CLIENT}` or `{_CLIENT}-VERSION`.")
    chosen = client.removeprefix("-") or release if plus else None
    for version in (release, chosen):
        _check(version)
    return KafkaFactory(release, chosen)


def _transactions(channel: AdapterChannel, constants: Mapping[str, Value]) -> SystemUnderTest:
    """Found by name, as the registry finds it: the steps are those of an adapter for `impl`."""
    module = importlib.import_module("conformance.systems.transaction.bridged")
    system: SystemUnderTest = module.create(channel, constants)
    return system


def _is_build(release: str) -> bool:
    """Whether it is no release: the build of KCONFORM_KAFKA_LIB, or a folder of jars."""
    return not release or os.sep in release


def _check(version: str | None) -> None:
    if version and os.sep in version:
        kafka_lib(Path(version))
        return
    if version and release_of(version) < _OLDEST:
        raise UserError(
            f"Kafka {version} cannot be driven: its classes are older than the bridge knows. Tried "
            f"were {', '.join(TRIED)}."
        )
    if version == "" and not os.environ.get("KCONFORM_KAFKA_LIB"):
        raise UserError(
            "The system `kafka` is your own build: name the folder of its jars with --kafka-lib or "
            f"KCONFORM_KAFKA_LIB. A release is `kafka-VERSION`; tried were {', '.join(TRIED)}."
        )


def _name(release: str) -> str:
    return f"kafka-{release}" if release else "kafka"


_ready: Final[set[str]] = set()
"""Releases whose jars and bridge this process has seen to: their sums are not taken again."""


@cache
def _jars(version: str) -> KafkaJars:
    return _fetched(version, silent)


def _fetched(version: str, tell: Tell) -> KafkaJars:
    if not _is_build(version):
        return kafka_jars(version, tell=tell)
    return kafka_lib(Path(version or os.environ["KCONFORM_KAFKA_LIB"]))


@cache
def _command(version: str) -> str:
    return _compiled(_jars(version), silent)


def _compiled(jars: KafkaJars, tell: Tell) -> str:
    try:
        return bridge_command(jars, tell)
    except EnvironmentProblem as error:
        raise EnvironmentProblem(f"{error}\nTried were {', '.join(TRIED)}.") from error


_COMMANDS: Final = ({"command": "reset", "brokers": 2, "metadata_version": None},)
_GROUP_COMMANDS: Final = ({"command": "group_reset", "max_size": 2, "initial_delay_ms": 1},)
_PRODUCE_COMMANDS: Final = ({"command": "produce_reset", "brokers": 1, "leader": 1},)
_TRANSACTION_COMMANDS: Final = (
    {
        "command": "txn_reset",
        "leader": 1,
        "brokers": 1,
        "partitions": 1,
        "version": 1,
        "last_epoch": -1,
        "epochs_of_id": -1,
        "verifies": True,
    },
)
_LOG_COMMANDS: Final = ({"command": "log_reset"},)
_CONSUMER_COMMANDS: Final = ({"command": "group_reset", "partitions": 1},)
_RUNTIME_COMMANDS: Final = (
    {"command": "runtime_reset", "brokers": 1, "max_batch": 1, "shards": "values"},
)

_SHARE_COMMANDS: Final = (
    {"command": "share_reset", "records": 1, "max_in_flight": 1, "delivery_limit": 1},
)
_SHARE_STATE_COMMANDS: Final = ({"command": "states_reset", "updates": 1},)
_PRODUCER_COMMANDS: Final = ({"command": "producer_reset", "version2": False},)
_COMPACTION_COMMANDS: Final = ({"command": "compaction_reset", "replicas": 1, "leader": 1},)
_REASSIGNMENT_COMMANDS: Final = ()
_DIRECTORIES_COMMANDS: Final = ({"command": "directories_reset", "assigns": False},)
_STORAGE_COMMANDS: Final = ({"command": "storage_reset", "segment": 1, "retained": -1},)
_COMMITS_COMMANDS: Final = ({"command": "commits_reset", "auto_commit": True},)
_TOPICS_COMMANDS: Final = (
    {"command": "topics_reset", "topics": ["t"], "others": [], "cooperative": False},
)
_POSITIONS_COMMANDS: Final = (
    {
        "command": "positions_reset",
        "group_assigns": False,
        "log": [],
        "epoch": 1,
        "committed": [{"offset": -1, "epoch": 0}],
        "policy": "earliest",
        "max_fetch": 1,
        "max_poll": 1,
    },
)

_AllBridged = (
    KafkaRuntimeSystem
    | KafkaProduceSystem
    | KafkaTransactionalLogSystem
    | KafkaStoredLogSystem
    | KafkaExpiringLogSystem
    | KafkaShareSystem
    | KafkaProducerSystem
    | KafkaCompactionSystem
    | KafkaStorageSystem
    | KafkaDirectoriesSystem
    | KafkaAssignmentSystem
    | KafkaReassignmentSystem
    | KafkaCommitsSystem
    | KafkaPositionsSystem
    | KafkaTopicsSystem
)
_Greeting = Sequence[Mapping[str, object]]
_ALL_BRIDGED: Final[Mapping[str, tuple[type[_AllBridged], _Greeting]]] = {
    **dict.fromkeys(_OF_RUNTIME, (KafkaRuntimeSystem, _RUNTIME_COMMANDS)),
    _TASKS: (KafkaTasksSystem, _RUNTIME_COMMANDS),
    _GROUP_TIMERS: (KafkaTimedGroupsSystem, _RUNTIME_COMMANDS),
    _PRODUCE: (KafkaProduceSystem, _PRODUCE_COMMANDS),
    _TRANSACTIONAL_LOG: (KafkaTransactionalLogSystem, _LOG_COMMANDS),
    _STORED_LOG: (KafkaStoredLogSystem, _LOG_COMMANDS),
    _EXPIRING_LOG: (KafkaExpiringLogSystem, _LOG_COMMANDS),
    _SHARE: (KafkaShareSystem, _SHARE_COMMANDS),
    _PRODUCER: (KafkaProducerSystem, _PRODUCER_COMMANDS),
    _COMPACTION: (KafkaCompactionSystem, _COMPACTION_COMMANDS),
    _STORAGE: (KafkaStorageSystem, _STORAGE_COMMANDS),
    _DIRECTORIES: (KafkaDirectoriesSystem, _DIRECTORIES_COMMANDS),
    _ASSIGNMENT: (KafkaAssignmentSystem, _DIRECTORIES_COMMANDS),
    _REASSIGNMENT: (KafkaReassignmentSystem, _REASSIGNMENT_COMMANDS),
    _COMMITS: (KafkaCommitsSystem, _COMMITS_COMMANDS),
    _POSITIONS: (KafkaPositionsSystem, _POSITIONS_COMMANDS),
    _TOPICS: (KafkaTopicsSystem, _TOPICS_COMMANDS),
}
"""By specification of which every action is one command: the system, and what a bridge is asked
first."""


def bridge_channel(release: str) -> AdapterChannel:
    """A bridge of a release that plays no system. EnvironmentProblem if it cannot be had."""
    return _bridge(release, _name(release), ())


def _bridge(release: str, name: str, greeting: _Greeting) -> AdapterChannel:
    """A bridge that can set up what the greeting asks for. EnvironmentProblem if it cannot."""
    channel = CHANNELS.borrow(_name(release), lambda: BridgeTransport(_command(release)), _LIMITS)
    try:
        _greet(channel, name, greeting)
    except BaseException:
        CHANNELS.give_back(channel)
        raise
    return channel


def _greet(channel: AdapterChannel, name: str, commands: Sequence[Mapping[str, object]]) -> None:
    """See that the bridge can set up brokers or coordinators of this version at all."""
    if channel.ready and commands is _COMMANDS:
        return
    try:
        channel.call([{"command": "hello"}, *commands])
    except SystemFailed as error:
        raise EnvironmentProblem(
            f"{name} cannot be driven: its classes are not as the bridge knows them. Tried were "
            f"{', '.join(TRIED)}.\n{error}"
        ) from error
