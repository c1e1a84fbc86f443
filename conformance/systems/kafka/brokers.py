"""The brokers in the JVM, seen from here: commands with plain numbers, views of what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from conformance.systems.external import AdapterChannel
from conformance.systems.shared.replication.controller import (
    AlterPartitionItem,
    PartitionRegistration,
)
from conformance.systems.shared.replication.views import (
    BrokerView,
    MessageView,
    alter_partition_view,
)

_REMEMBERED = 200_000


class Proposal(msgspec.Struct, frozen=True, rename="camel"):
    """An ISR change as a leader sends it; members as (broker, broker epoch)."""

    leader_epoch: int
    partition_epoch: int
    isr_with_broker_epoch: tuple[tuple[int, int], ...] = msgspec.field(name="isr")

    @property
    def isr(self) -> frozenset[int]:
        """Its members."""
        return frozenset(broker for broker, _ in self.isr_with_broker_epoch)


class IsrChange(NamedTuple):
    """A follower that a leader may take into the ISR, or put out of it."""

    leader: int
    follower: int
    expand: bool

    @property
    def name(self) -> str:
        """The specification's."""
        return "ExpandIsr" if self.expand else "ShrinkIsr"


class _BridgeView(msgspec.Struct, frozen=True, array_like=True):
    """One broker as the bridge writes it: View.java."""

    online: bool
    broker_epoch: int
    leader_epoch: int
    leader: int | None
    isr: tuple[int, ...]
    partition_epoch: int
    pending_isr: tuple[int, ...]
    followers: tuple[tuple[int, int], ...]
    log: tuple[int, ...]
    log_start_offset: int
    high_watermark: int
    epoch_cache: tuple[tuple[int, int], ...]
    fetch_state: str
    fetch_offset: int
    message: tuple[str, int, int, int, int, int, str, int, int, tuple[int, ...], int, int] | None


class _BridgeTurn(msgspec.Struct, frozen=True):
    asked: tuple[str, ...]
    waited: bool


_as_view = msgspec.json.Decoder(_BridgeView).decode
_as_texts = msgspec.json.Decoder(list[str]).decode
_as_proposal = msgspec.json.Decoder(Proposal | None).decode
_as_steps = msgspec.json.Decoder(list[str]).decode
_as_turn = msgspec.json.Decoder(_BridgeTurn).decode
_as_truth = msgspec.json.Decoder(bool).decode
_as_number = msgspec.json.Decoder(int).decode


class BridgedBrokers:
    """All brokers of one bridge. What is told of them is as of the last command that named them."""

    def __init__(self, channel: AdapterChannel, count: int, *, partition_epochs: bool) -> None:
        self._channel = channel
        self._ids = tuple(range(1, count + 1))
        self._partition_epochs = partition_epochs
        self._texts: dict[int, str] = {}
        self._decoded: dict[str, BrokerView] = {}

    def reset(self, states: Mapping[int, PartitionRegistration], version: str | None) -> None:
        """New processes on empty disks; each hears of the partition, followers start to fetch."""
        commands: list[dict[str, object]] = [
            {"command": "reset", "brokers": len(self._ids), "metadata_version": version}
        ]
        for broker, state in states.items():
            commands.append(hearing(broker, state))
            if state.leader != broker:  # Init lies after the first round, which truncates nothing
                commands.append({"command": "truncate", "broker": broker})
        self._run(commands, self._ids)

    def hear(self, broker: int, state: PartitionRegistration) -> None:
        """The broker's metadata tells of the partition's registration."""
        self._run([hearing(broker, state)], (broker,))

    def step(self, command: str, broker: int, **members: object) -> None:
        """A step of one broker that answers nothing."""
        self._run([{"command": command, "broker": broker, **members}], (broker,))

    def append(self, leader: int) -> int:
        """Append one record; its offset."""
        return _as_number(self._run([{"command": "append", "broker": leader}], (leader,)))

    def change_isr(self, leader: int, follower: int, *, expand: bool) -> Proposal | None:
        """Let the leader look at a follower; the AlterPartition that it sends, if it does."""
        command = {"command": "change_isr", "broker": leader, "follower": follower}
        proposed: Proposal | None = _as_proposal(
            self._run([{**command, "expand": expand}], (leader,))
        )
        return proposed

    def complete(self, leader: int, error: str, partition_epoch: int) -> None:
        """The controller's answer arrives at the leader."""
        self.step("complete", leader, error=error, partition_epoch=partition_epoch)

    def round_trip(self, leader: int, follower: int, steps: Iterable[str]) -> None:
        """Steps of one round trip, `handle` the leader's, all others the follower's."""
        commands: list[dict[str, object]] = [
            {"command": step, "leader": leader, "follower": follower}
            if step == "handle"
            else {"command": step, "broker": follower}
            for step in steps
        ]
        self._run(commands, (leader, follower))

    def read_fetch(self, leader: int, follower: int) -> bool:
        """The leader reads for a fetch; False if it has answered it at once, and counts nothing."""
        command = {"command": "read", "leader": leader, "follower": follower}
        return _as_truth(self._run([command], (leader, follower)))

    def count_fetch(self, leader: int, follower: int) -> None:
        """The leader counts and answers a fetch that it has read."""
        self._run([{"command": "count", "leader": leader, "follower": follower}], self._ids)

    def do_work(self, leader: int, follower: int, *, lost: bool) -> tuple[tuple[str, ...], bool]:
        """One turn of the fetcher's own loop: what it asked, and whether it waited."""
        command = {"command": "do_work", "broker": follower, "lost": lost}
        turn = _as_turn(self._run([command], (leader, follower)))
        return turn.asked, turn.waited

    def backs_off(self, broker: int) -> bool:
        """Whether the partition waits out an error in the broker's fetcher."""
        return _as_truth(self._run([{"command": "backs_off", "broker": broker}], ()))

    def intentions(
        self, brokers: Sequence[int], changes: Sequence[IsrChange]
    ) -> tuple[list[list[str]], list[Proposal | None]]:
        """What brokers would do by themselves, asked in one line; nothing changes.

        Of each broker what its fetcher would do next, by the specification's names; of each change
        of the ISR what its leader would send, if anything.
        """
        commands: list[dict[str, object]] = [
            {"command": "next_steps", "broker": broker} for broker in brokers
        ]
        for leader, follower, expand in changes:
            command = {"command": "rehearse", "broker": leader, "follower": follower}
            commands.append({**command, "expand": expand})
        answers = self._channel.call(commands) if commands else []
        return (
            [_as_steps(answer) for answer in answers[: len(brokers)]],
            [_as_proposal(answer) for answer in answers[len(brokers) :]],
        )

    def view(self, broker: int, item: AlterPartitionItem | None) -> BrokerView:
        """The broker as the specification's variables see it."""
        text = self._texts[broker]
        known = self._decoded.get(text)
        if known is None:
            if len(self._decoded) >= _REMEMBERED:
                self._decoded.clear()
            known = self._decoded[text] = self._view(_as_view(text))
        if item is None:
            return known
        return known._replace(alter_partition=alter_partition_view(item))

    def _view(self, read: _BridgeView) -> BrokerView:
        partition_epoch = read.partition_epoch if self._partition_epochs else 0
        fields = {name: getattr(read, name) for name in _BridgeView.__struct_fields__}
        fields["message"] = MessageView() if read.message is None else MessageView(*read.message)
        fields["isr"], fields["pending_isr"] = frozenset(read.isr), frozenset(read.pending_isr)
        fields["partition_epoch"] = partition_epoch
        return BrokerView(**fields, alter_partition=alter_partition_view(None))

    def _run(self, commands: list[dict[str, object]], touched: tuple[int, ...]) -> msgspec.Raw:
        """What the first command was answered; the touched brokers are viewed in the same line."""
        look: list[dict[str, object]] = [{"command": "view", "brokers": touched}] if touched else []
        answers = self._channel.call([*commands, *look])
        if touched:
            self._texts.update(zip(touched, _as_texts(answers[-1]), strict=True))
        return answers[0]


def hearing(broker: int, state: PartitionRegistration) -> dict[str, object]:
    """The command that tells a broker of the partition's registration."""
    return {
        "command": "hear",
        "broker": broker,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": sorted(state.isr),
        "partition_epoch": state.partition_epoch,
    }
