"""Who leads the partition: elections, what brokers are told of them, and what followers fetch."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.protocol import ActionRefused
from conformance.systems.runtime.observation import RuntimeBroker

_NO_BROKER = "none"


class PlayedElections:
    """The controller's part for one partition of the topic, and its replication."""

    def __init__(self, brokers: Mapping[str, RuntimeBroker]) -> None:
        self._brokers = brokers
        self.leader = _NO_BROKER
        self.epoch = 0
        self.is_deleted = False

    def replicate(self, follower: str) -> None:
        """A follower fetches all that the leader has."""
        self._brokers[follower].replica.fetch_from(self._brokers[self.leader].replica)

    def elect(self, name: str) -> None:
        """The broker leads from now on; it and who led before have an event to run."""
        former, self.leader = self.leader, name
        self.epoch += 1
        for other, broker in self._brokers.items():
            if other != name:
                broker.replica.follow()
        if former not in {name, _NO_BROKER}:
            self._resign(former, self.epoch)
        elected = self._brokers[name]
        elected.replica.lead(self.epoch)
        elected.runtime.schedule_load_operation(self.epoch)
        elected.roles.append((True, self.epoch))

    def _resign(self, name: str, epoch: int | None) -> None:
        broker = self._brokers[name]
        broker.runtime.schedule_unload_operation(epoch)
        broker.roles.append((False, epoch or 0))

    def delete_topic(self) -> None:
        """All replicas are gone, and the leader resigns without an epoch."""
        self.is_deleted = True
        for broker in self._brokers.values():
            broker.replica.delete()
        self._resign(self.leader, None)

    def run_role(self, name: str) -> None:
        """Run the oldest event of an election. ActionRefused if there is none."""
        broker = self._brokers[name]
        if not broker.roles:
            raise ActionRefused(f"{name} has no election to handle")
        load, _ = broker.roles.pop(0)
        broker.events.run("Load" if load else "Unload")

    def complete_load(self, name: str, epoch: int) -> None:
        """The loader has read the log for this epoch."""
        broker = self._brokers[name]
        broker.loads.end(epoch)
        broker.events.run("CompleteLoad")
