"""A coordinator that moves although no step moved it: a broker that got no time, not a fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.leadership import Leaders, beside
from conformance.systems.wire.port import ABSENT, Port

OFFSETS = "__consumer_offsets"


class Broker:
    """Tells of the offsets topic; `led` is leader and epoch by partition."""

    address = "127.0.0.1:9092"

    def __init__(self, version: int = 9) -> None:
        self.versions = {"metadata": version}
        self.led: dict[int, tuple[int, int]] = {0: (1, 0), 1: (1, 0)}
        self.error = ErrorCode.none
        self.gone = False

    def offers(self, api: str) -> bool:
        return self.versions[api] != ABSENT

    def ask_body(self, body: Any, _seconds: float = 0.0) -> Any:
        if self.gone:
            raise SystemFailed("the broker closed the connection")
        assert [one.name for one in body.topics] == [OFFSETS]
        epochs = self.versions["metadata"] >= 7
        partitions = [
            SimpleNamespace(
                partition_index=index,
                leader_id=leader,
                **({"leader_epoch": epoch} if epochs else {}),
            )
            for index, (leader, epoch) in self.led.items()
        ]
        return SimpleNamespace(
            topics=[SimpleNamespace(error_code=self.error, partitions=partitions)]
        )


def seen(broker: Broker) -> Leaders:
    leaders = Leaders(cast("Port", broker), OFFSETS)
    leaders.look(again=False)
    return leaders


@pytest.mark.parametrize("now", [(1, 2), (2, 1)])
def test_a_new_epoch_is_told_once(now: tuple[int, int]) -> None:
    broker = Broker()
    leaders = seen(broker)
    assert leaders.changed() == ""
    broker.led[1] = now
    assert leaders.changed() == (
        f"the leader of {OFFSETS}-1 changed from broker 1 in epoch 0 to broker {now[0]} in epoch "
        f"{now[1]}, and no step moved it"
    )
    assert leaders.changed() == ""


def test_without_a_leader_it_is_told_when_the_next_one_leads() -> None:
    broker = Broker()
    leaders = seen(broker)
    broker.led[0] = (-1, 1)
    assert leaders.changed() == ""
    broker.led[0] = (1, 2)
    assert "from broker 1 in epoch 0 to broker 1 in epoch 2" in leaders.changed()


def test_what_a_step_moved_is_looked_at_again() -> None:
    broker = Broker()
    leaders = seen(broker)
    broker.led[0] = (2, 1)
    leaders.look(again=False)
    broker.led[0] = (3, 2)
    leaders.look(again=True)
    assert leaders.changed() == ""


def nothing_asked() -> Broker:
    return Broker(ABSENT)


def no_epochs() -> Broker:
    return Broker(6)


def no_such_topic() -> Broker:
    broker = Broker()
    broker.error = ErrorCode.unknown_topic_or_partition
    return broker


def closes() -> Broker:
    broker = Broker()
    broker.gone = True
    return broker


@pytest.mark.parametrize("kind", [nothing_asked, no_epochs, no_such_topic, closes])
def test_a_broker_that_does_not_tell_is_never_excused(kind: Any) -> None:
    broker = kind()
    leaders = seen(broker)
    broker.led = {0: (2, 9), 1: (2, 9)}
    assert leaders.changed() == ""


def test_what_was_not_there_at_first_is_looked_for_again() -> None:
    broker = no_such_topic()
    leaders = seen(broker)
    broker.error = ErrorCode.none
    leaders.look(again=False)
    broker.led[0] = (2, 1)
    assert leaders.changed() != ""


@pytest.mark.parametrize(("group", "partitions"), [("kconform-1", 1), ("kconform-1", 50), ("", 7)])
def test_a_group_beside_another_lies_in_its_partition(group: str, partitions: int) -> None:
    other = beside(group, partitions)
    assert other != group
    assert hashed(other) % partitions == hashed(group) % partitions


def hashed(text: str) -> int:
    """As Java's documentation has it: the sum of s[i] * 31^(n - 1 - i), in 32 bits."""
    total = sum(ord(one) * 31 ** (len(text) - 1 - i) for i, one in enumerate(text))
    return total % 2**31
