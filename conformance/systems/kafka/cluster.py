"""Kafka's brokers in a JVM, the controller here, and what is in flight between the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from conformance.systems.external import AdapterChannel
from conformance.systems.kafka.brokers import BridgedBrokers
from conformance.systems.shared.replication.controller import (
    AlterPartitionItem,
    Controller,
    DecidedIsr,
    PartitionRegistration,
)
from conformance.systems.shared.replication.model import PartitionModel
from conformance.systems.shared.replication.views import BrokerView
from conformance.tla import Value


class BridgedCluster:
    """`items`: a leader's AlterPartition in flight; `uncounted`: followers whose fetch was read
    and not counted."""

    def __init__(
        self, channel: AdapterChannel, model: PartitionModel, metadata_version: str | None
    ) -> None:
        self._model = model
        self._metadata_version = metadata_version
        # Kafka ignores a registration whose partition epoch has not grown: they always count here,
        # and are hidden where the specification has no numbers for them.
        self.controller = Controller(model, counts_partition_epochs=True)
        self.brokers = BridgedBrokers(channel, len(model.names), partition_epochs=model.two_step)
        self.items: dict[int, AlterPartitionItem] = {}
        self.uncounted: set[int] = set()

    def reset(self, initial: Mapping[str, Value]) -> None:
        """New brokers with empty logs, in the first leader epoch; only `Init` can be set up."""
        first = self.controller.reset(initial)
        self.items, self.uncounted = {}, set()
        self.brokers.reset(dict.fromkeys(self._model.brokers, first), self._metadata_version)

    @property
    def registration(self) -> PartitionRegistration:
        """As the specification has it."""
        registration = self.controller.registration
        return registration if self._model.two_step else replace(registration, partition_epoch=0)

    def view(self, broker: int) -> BrokerView:
        """The broker as the specification's variables see it."""
        return self.brokers.view(broker, self.items.get(broker))

    def change_isr(self, leader: int, follower: int, *, expand: bool) -> None:
        """Let the leader look at a follower; what it sends is answered at once, or in flight."""
        proposed = self.brokers.change_isr(leader, follower, expand=expand)
        if proposed is None:
            return
        item = AlterPartitionItem(proposed, partial(self._complete, leader))
        if self._model.two_step:
            self.items[leader] = item
        else:
            self.controller.handle(leader, item)
            item.complete()

    def handle_alter_partition(self, leader: int) -> None:
        """The controller decides on what is in flight."""
        self.controller.handle(leader, self.items.get(leader))

    def _complete(self, leader: int, decision: DecidedIsr) -> None:
        self.brokers.complete(leader, decision.error, decision.partition_epoch)

    def crash(self, broker: int, log_end: int, high_watermark: int) -> None:
        """The process and the machine die: of the log only what lies below `log_end` survives."""
        self.controller.online.discard(broker)
        self.items.pop(broker, None)
        self.brokers.step("crash", broker, log_end=log_end, high_watermark=high_watermark)

    def restart(self, broker: int) -> None:
        """A new process on the same disk."""
        self.controller.restart(broker)
        self.brokers.step("restart", broker)
