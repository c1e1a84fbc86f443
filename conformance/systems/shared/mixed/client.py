"""The consumers of MixedGroup.tla: what each knows, and what it makes of an answer."""

from __future__ import annotations

from typing import NamedTuple

from conformance.systems.shared.mixed.settings import Partitions
from conformance.tla import Fn, Value

NO_ERROR = "NONE"
_NOTHING: Partitions = frozenset()


class MixedClient(NamedTuple):
    """A consumer; `does`: what it does next, by the specification's words."""

    does: str = "out"
    epoch: int = 0
    """The member epoch, or the generation."""
    owned: Partitions = _NOTHING
    error: str = NO_ERROR

    @property
    def value(self) -> Value:
        """As the specification has it."""
        owned: frozenset[Value] = frozenset(self.owned)
        return Fn({"does": self.does, "epoch": self.epoch, "owned": owned, "error": self.error})

    def refused(self, error: str) -> MixedClient:
        """What an error makes of it."""
        if error == "REBALANCE_IN_PROGRESS":
            return self._replace(does="rejoin", epoch=0 if self.does == "sync" else self.epoch)
        if error == "ILLEGAL_GENERATION":
            return MixedClient("rejoin")
        if error == "UNKNOWN_MEMBER_ID":
            return MixedClient()
        return MixedClient("failed", error=error)

    def given(self, epoch: int, assignment: Partitions | None) -> MixedClient:
        """A heartbeat of KIP-848 is answered: it has what the answer says; None: what it had."""
        return MixedClient("on", epoch, self.owned if assignment is None else assignment)

    def joined(self, generation: int) -> MixedClient:
        """JoinGroup is answered."""
        return self._replace(does="sync", epoch=generation)

    def synchronized(self, assignment: Partitions) -> MixedClient:
        """SyncGroup is answered. Who had to give something up joins once more (KIP-429)."""
        does = "on" if self.owned <= assignment else "rejoin"
        return self._replace(does=does, owned=assignment)
