"""What real_logs lets happen on a broker: groups of all kinds, commits, transactions, deletions.

Members of KIP-848 and its kind are driven by raw requests, so that one joins late, leaves or falls
silent at will; classic groups and mixed ones by librdkafka too. An act that the broker refuses is
counted as refused.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.errors import DataError
from conformance.kafka.client import BrokerGone, Connection
from conformance.kafka.cluster import Cluster
from conformance.kafka.codec import uuid_text
from conformance.kafka.schemas import Body

TOPICS = ("t0", "t1", "t2")
PARTITIONS = 3
_NAMES = 8
"""So many groups of each kind: later stages meet those of former ones."""
_API_VERSIONS = 18
_API = {
    "consumer group": 68,
    "classic and consumer members": 68,
    "share group": 76,
    "streams group": 88,
}
"""The heartbeats by their API keys; a release may not have them."""
_PATIENCE = 25
"""Fetches until the state of a new share group is there, and tries to begin a transaction."""
_CONCURRENT_TRANSACTIONS = 51
_GROUP_CONFIG = 32
"""ConfigResource.Type.GROUP."""
_COMMIT_BY_NAME, _COMMIT_WITH_RETENTION = 9, 2
"""Versions: newer commits name topics by id, and older ones say when they expire."""
_TRANSACTIONS = {False: 3, True: 5}
"""Versions of TxnOffsetCommit and EndTxn: of transactions before KIP-890, and after it."""


class Refused(Exception):
    """A broker's error code."""


@dataclass(slots=True)
class Member:
    """A member of a consumer, share or streams group, by its heartbeats."""

    api: str
    group: str
    id: str
    epoch: int = 0
    owned: dict[str, Any] = field(default_factory=dict)
    """What it holds, as its next heartbeat says."""

    def beat(self, connection: Connection, joins: Body) -> None:
        """A heartbeat; `joins`: what the first one says besides. Raises Refused."""
        first = joins if self.epoch == 0 else {}
        body = {"groupId": self.group, "memberId": self.id, "memberEpoch": self.epoch}
        answer = connection.call(self.api, {**body, **first, **self.owned})
        if answer["errorCode"]:
            self.epoch = 0
            raise Refused(f"{self.api} {answer['errorCode']}")
        self.epoch = answer["memberEpoch"]
        if self.api == "ConsumerGroupHeartbeat" and answer["assignment"] is not None:
            self.owned = {"topicPartitions": answer["assignment"]["topicPartitions"]}
        if self.api == "StreamsGroupHeartbeat" and answer["activeTasks"] is not None:
            tasks = ("activeTasks", "standbyTasks", "warmupTasks")
            self.owned = {name: answer[name] or [] for name in tasks}

    def leave(self, connection: Connection) -> None:
        """The last heartbeat."""
        body = {"groupId": self.group, "memberId": self.id, "memberEpoch": -1}
        connection.call(self.api, body)


class Workload:
    """Acts on one broker, drawn from a seed."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._cluster, self._chance = cluster, chance
        self._connection = cluster.connection()
        self._topic_ids: dict[str, str] = {}
        acts: Mapping[str, tuple[int, Callable[[], None]]] = {
            "commits of a simple consumer": (3, self._simple),
            "commits that expire": (1, self._expiring),
            "classic group": (3, self._classic),
            "consumer group": (5, self._consumer),
            "classic and consumer members": (1, self._mixed),
            "share group": (4, self._share),
            "streams group": (3, self._streams),
            "transaction": (4, self._transaction),
            "transactional producer of librdkafka": (1, self._librdkafka_transaction),
            "group deleted": (1, self._delete_group),
            "offsets deleted": (1, self._delete_offsets),
            "topic deleted": (1, self._delete_topic),
        }
        served = {entry["apiKey"] for entry in self._call("ApiVersions", {}, 0)["apiKeys"]}
        self._acts = {
            name: act for name, act in acts.items() if _API.get(name, _API_VERSIONS) in served
        }

    def run(self, seconds: float) -> None:
        """Act after act, each once before any comes twice."""
        self._prepare()
        acts, weights = [*self._acts], [weight for weight, _ in self._acts.values()]
        first = self._chance.sample(acts, len(acts))
        until = time.monotonic() + seconds
        while first or time.monotonic() < until:
            name = first.pop() if first else self._chance.choices(acts, weights)[0]
            try:
                self._acts[name][1]()
            except Refused as error:
                self.refused[f"{name}: {error}"] += 1
            except DataError:  # a field that the release's requests do not have
                self.refused[f"{name}: not in this release"] += 1
            except BrokerGone:
                self.refused[f"{name}: no answer"] += 1
                self._connection = self._cluster.connection()
            else:
                self.done[name] += 1
        self._connection.close()

    def _prepare(self) -> None:
        for topic in TOPICS:
            self._cluster.create_topic(topic, partitions=PARTITIONS)
        for topic in self._cluster.metadata(TOPICS)["topics"]:
            self._topic_ids[topic["name"]] = topic["topicId"]
        self._produce()
        self._cluster.await_that("coordinators answer", self._coordinated, 60.0)

    def _coordinated(self) -> bool:
        """Whether every name's coordinator has loaded; asked, the topics come to be."""
        for kind in ("simple", "transactional"):
            names = [f"{kind}-{number}" for number in range(_NAMES)]
            body = {"keyType": int(kind == "transactional"), "coordinatorKeys": names}
            found = self._call("FindCoordinator", body)["coordinators"]
            if any(entry["errorCode"] for entry in found):
                return False
        try:
            for number in range(_NAMES):
                self._commit(f"simple-{number}")
                self._initialise(f"transactional-{number}")
        except Refused:
            return False
        return True

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(self._librdkafka())
        for number in range(30):
            producer.produce(self._chance.choice(TOPICS), str(number), partition=number % 3)
        producer.flush(10)

    def _librdkafka(self) -> dict[str, Any]:
        return {"bootstrap.servers": self._cluster.bootstrap, "log_level": 0}

    def _name(self, kind: str) -> str:
        return f"{kind}-{self._chance.randrange(_NAMES)}"

    def _call(self, api: str, body: Body, version: int | None = None) -> Body:
        return self._connection.call(api, body, version)

    # ---- commits ---------------------------------------------------------------------------

    def _offsets(self, **more: object) -> list[dict[str, Any]]:
        partitions = self._chance.sample(range(PARTITIONS), self._chance.randrange(1, 4))
        entries = [
            {"partitionIndex": index, "committedOffset": self._chance.randrange(10), **more}
            for index in partitions
        ]
        return [{"name": self._chance.choice(TOPICS), "partitions": entries}]

    def _commit(self, group: str, version: int = _COMMIT_BY_NAME, **more: object) -> None:
        body = {"groupId": group, "topics": self._offsets(), **more}
        _checked(self._call("OffsetCommit", body, version)["topics"], "OffsetCommit")

    def _simple(self) -> None:
        for _ in range(self._chance.randrange(1, 12)):
            self._commit(self._name("simple"))

    def _expiring(self) -> None:
        body = {"retentionTimeMs": self._chance.choice([1, 500])}
        self._commit(self._name("expiring"), _COMMIT_WITH_RETENTION, **body)

    def _delete_offsets(self) -> None:
        partitions = [{"partitionIndex": index} for index in range(PARTITIONS)]
        topics = [{"name": topic, "partitions": partitions} for topic in TOPICS]
        group = self._name(self._chance.choice(["simple", "classic", "consumer", "streams"]))
        _checked([self._call("OffsetDelete", {"groupId": group, "topics": topics})], "OffsetDelete")

    def _delete_group(self) -> None:
        kind = self._chance.choice(["simple", "classic", "consumer", "share", "streams", "mixed"])
        answer = self._call("DeleteGroups", {"groupsNames": [self._name(kind)]})
        _checked(answer["results"], "DeleteGroups")

    def _delete_topic(self) -> None:
        name = f"passing-{self._chance.randrange(10**6)}"
        self._cluster.create_topic(name)
        partitions = [{"partitionIndex": 0, "committedOffset": 1}]
        topics = [{"name": name, "partitions": partitions}]
        for kind in ("simple", "consumer"):
            body = {"groupId": self._name(kind), "topics": topics}
            self._call("OffsetCommit", body, _COMMIT_BY_NAME)
        self._cluster.delete_topics([name])

    # ---- groups ----------------------------------------------------------------------------

    def _members(self, api: str, kind: str, joins: Callable[[], Body]) -> None:
        """Members come, beat, commit perhaps, and leave or fall silent."""
        chance, group = self._chance, self._name(kind)
        members = [Member(api, group, self._id()) for _ in range(chance.randrange(1, 4))]
        asked = [joins() for _ in members]
        present = 1
        for _ in range(chance.randrange(4, 16)):
            present = min(len(members), present + chance.randrange(2))
            for member, first in list(zip(members, asked, strict=True))[:present]:
                member.beat(self._connection, first)
            if kind != "share" and chance.random() < 0.3:
                one = members[0]
                self._commit(group, generationIdOrMemberEpoch=one.epoch, memberId=one.id)
            time.sleep(chance.choice([0.0, 0.05]))
        for member in members[:present]:
            if chance.random() < 0.6:
                member.leave(self._connection)

    def _id(self) -> str:
        return uuid_text(self._chance.randbytes(16))

    def _consumer(self) -> None:
        regex = self._chance.random() < 0.2
        subscribed = {"subscribedTopicRegex": "t.*"} if regex else {"subscribedTopicNames": TOPICS}

        def joins() -> Body:
            instance = self._name("instance") if self._chance.random() < 0.2 else None
            names: Body = {
                "instanceId": instance,
                "rebalanceTimeoutMs": 5000,
                "topicPartitions": [],
            }
            return {**names, **subscribed}

        self._members("ConsumerGroupHeartbeat", "consumer", joins)

    def _streams(self) -> None:
        processes = [self._id(), self._id()]
        subtopology = {
            "subtopologyId": "0",
            "sourceTopics": [TOPICS[0]],
            "sourceTopicRegex": [],
            "stateChangelogTopics": [],
            "repartitionSinkTopics": [],
            "repartitionSourceTopics": [],
            "copartitionGroups": [],
        }

        def joins() -> Body:
            return {
                "rebalanceTimeoutMs": 5000,
                "topology": {"epoch": 1, "subtopologies": [subtopology]},
                "activeTasks": [],
                "standbyTasks": [],
                "warmupTasks": [],
                "processId": self._chance.choice(processes),
                "clientTags": [],
            }

        self._members("StreamsGroupHeartbeat", "streams", joins)

    def _share(self) -> None:
        group, topic = self._name("share"), self._chance.choice(TOPICS)
        config = {"name": "share.auto.offset.reset", "configOperation": 0, "value": "earliest"}
        resource = {"resourceType": _GROUP_CONFIG, "resourceName": group, "configs": [config]}
        self._call("IncrementalAlterConfigs", {"resources": [resource]})
        member = Member("ShareGroupHeartbeat", group, self._id())
        joins = {"subscribedTopicNames": [topic]}
        for _ in range(3):
            member.beat(self._connection, joins)
            time.sleep(0.1)
        self._produce()
        acquired, epoch, wanted = 0, 0, self._chance.randrange(3, 10)
        while epoch < wanted or (not acquired and epoch < _PATIENCE):
            member.beat(self._connection, joins)
            acquired += self._acknowledge(member, topic, 2 * epoch)
            epoch += 1
        if self._chance.random() < 0.7:
            member.leave(self._connection)
        if not acquired:
            raise Refused("no record was acquired")

    def _acknowledge(self, member: Member, topic: str, epoch: int) -> int:
        """Fetch, and answer for what was acquired; the number of ranges of offsets."""
        topic_id = self._topic_ids[topic]
        head = {"groupId": member.group, "memberId": member.id}
        body = {
            **head,
            "shareSessionEpoch": epoch,
            "maxWaitMs": 200,
            "maxRecords": self._chance.randrange(1, 8),
            "batchSize": 4,
            "topics": [_share_topic(topic_id, range(PARTITIONS))] if epoch == 0 else [],
        }
        answer = self._call("ShareFetch", body)
        _checked([answer], "ShareFetch")
        answered = [
            {
                "partitionIndex": partition["partitionIndex"],
                "acknowledgementBatches": [
                    {
                        "firstOffset": acquired["firstOffset"],
                        "lastOffset": acquired["lastOffset"],
                        "acknowledgeTypes": [self._chance.choice([1, 1, 2, 3])],
                    }
                    for acquired in partition["acquiredRecords"]
                ],
            }
            for entry in answer["responses"]
            for partition in entry["partitions"]
        ]
        topics = [{"topicId": topic_id, "partitions": answered}] if answered else []
        body = {**head, "shareSessionEpoch": epoch + 1, "topics": topics}
        _checked([self._call("ShareAcknowledge", body)], "ShareAcknowledge")
        return sum(len(entry["acknowledgementBatches"]) for entry in answered)

    def _classic(self) -> None:
        if self._chance.random() < 0.3:
            self._classic_raw()
        else:
            self._consumers("classic", ["classic"] * self._chance.randrange(1, 3))

    def _classic_raw(self) -> None:
        group = self._name("raw")
        body = {
            "groupId": group,
            "sessionTimeoutMs": 6000,
            "rebalanceTimeoutMs": 6000,
            "protocolType": self._chance.choice(["consumer", "connect"]),
            "protocols": [{"name": "any", "metadata": b"\0\0\0\0\0\0\0\0\0\0"}],
        }
        joined = self._call("JoinGroup", body, 3)
        _checked([joined], "JoinGroup")
        who = {
            "groupId": group,
            "memberId": joined["memberId"],
            "generationId": joined["generationId"],
        }
        given = [{"memberId": joined["memberId"], "assignment": b"\0\0\0\0\0\0\0\0\0\0"}]
        _checked([self._call("SyncGroup", {**who, "assignments": given}, 3)], "SyncGroup")
        self._commit(
            group,
            generationIdOrMemberEpoch=joined["generationId"],
            memberId=joined["memberId"],
        )
        if self._chance.random() < 0.5:
            self._call("LeaveGroup", {"groupId": group, "memberId": joined["memberId"]}, 2)

    def _mixed(self) -> None:
        self._consumers("mixed", ["classic", "consumer"])

    def _consumers(self, kind: str, protocols: Sequence[str]) -> None:
        """Consumers of librdkafka in one group, the second after the first."""
        from confluent_kafka import Consumer, KafkaException

        group, consumers = self._name(kind), []
        try:
            for number, protocol in enumerate(protocols):
                settings: Body = {"group.id": group, "group.protocol": protocol}
                settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
                if protocol == "classic":
                    settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
                    settings["partition.assignment.strategy"] = "cooperative-sticky"
                if self._chance.random() < 0.3:
                    settings["group.instance.id"] = f"static-{number}"
                consumer = Consumer({**self._librdkafka(), **settings})
                consumer.subscribe(list(TOPICS))
                consumers.append(consumer)
                self._poll(consumers, 2.5)
        except KafkaException as error:
            raise Refused(str(error)) from error
        finally:
            for consumer in consumers:
                consumer.close()

    @staticmethod
    def _poll(consumers: Sequence[Any], seconds: float) -> None:
        from confluent_kafka import KafkaException

        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for consumer in consumers:
                message = consumer.poll(0.1)
                if message is not None and not message.error():
                    try:
                        consumer.commit(message, asynchronous=False)
                    except KafkaException:  # a rebalance: the next one commits
                        continue

    # ---- transactions ----------------------------------------------------------------------

    def _transaction(self) -> None:
        """Commits in a transaction, which is committed, aborted, or left open."""
        version = _TRANSACTIONS[
            self._cluster.jars.release >= (4, 0, 0) and self._chance.random() < 0.5
        ]
        name = self._name("transactional")
        made = self._call(
            "InitProducerId", {"transactionalId": name, "transactionTimeoutMs": 9000}, 4
        )
        _checked([made], "InitProducerId")
        who = {"producerId": made["producerId"], "producerEpoch": made["producerEpoch"]}
        for _ in range(self._chance.randrange(1, 4)):
            group = self._name("simple")
            head: Body = {"transactionalId": name, **who}
            if version < _TRANSACTIONS[True]:
                self._retried("AddOffsetsToTxn", {**head, "groupId": group}, 3)
            body = {**head, "groupId": group, "topics": self._offsets()}
            _checked(self._call("TxnOffsetCommit", body, version)["topics"], "TxnOffsetCommit")
            how = self._chance.choice([True, True, False, None])
            if how is None:
                return
            ended = self._retried("EndTxn", {**head, "committed": how}, version)
            if version == _TRANSACTIONS[True]:
                who = {part: ended[part] for part in who}

    def _initialise(self, name: str) -> Body:
        body = {"transactionalId": name, "transactionTimeoutMs": 9000}
        return self._retried("InitProducerId", body, 4)

    def _retried(self, api: str, body: Body, version: int) -> Body:
        """Asked again while the transaction before is being completed. Raises Refused."""
        for _ in range(_PATIENCE):
            answer = self._call(api, body, version)
            if answer["errorCode"] != _CONCURRENT_TRANSACTIONS:
                break
            time.sleep(0.1)
        _checked([answer], api)
        return answer

    def _librdkafka_transaction(self) -> None:
        from confluent_kafka import KafkaException, Producer

        producer = Producer({**self._librdkafka(), "transactional.id": self._name("producer")})
        try:
            producer.init_transactions(10)
            for _ in range(self._chance.randrange(1, 4)):
                producer.begin_transaction()
                producer.produce(self._chance.choice(TOPICS), b"value")
                if self._chance.random() < 0.7:
                    producer.commit_transaction(10)
                else:
                    producer.abort_transaction(10)
        except KafkaException as error:
            raise Refused(str(error)) from error


def _share_topic(topic_id: str, partitions: Sequence[int]) -> Body:
    return {"topicId": topic_id, "partitions": [{"partitionIndex": index} for index in partitions]}


def _checked(entries: Sequence[Body], api: str) -> None:
    """Raises Refused with the first error code among entries and their partitions."""
    for entry in entries:
        for part in (entry, *entry.get("partitions", ())):
            if part.get("errorCode"):
                raise Refused(f"{api} {part['errorCode']}")
