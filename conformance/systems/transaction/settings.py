"""What of a model's constants concerns the adapter of Transactions.tla."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.errors import UserError
from conformance.systems.transaction.epochs import NEVER
from conformance.tla import Value


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """What of a model's constants concerns partitions."""

    verifies: bool
    version: int
    strict_markers: bool
    changes_leaders: bool


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Names in their order, and which parts of the protocol the model has."""

    coordinators: tuple[str, ...]
    clients: tuple[str, ...]
    partitions: tuple[str, ...]
    offsets_partitions: tuple[str, ...]
    late: tuple[str, ...]
    """Types of requests of which copies come late, and twice."""
    max_epoch: int
    last_epoch: int
    """After which its producer id is used up; NEVER if that is far away."""
    epochs_of_id: int
    """How many numbers a producer id has that may expire; NEVER if it does not."""
    max_expiries: int
    times_out: bool
    replicates_loads: bool
    of_partitions: PartitionSettings

    @classmethod
    def of(cls, constants: Mapping[str, Value]) -> TransactionSettings:
        """UserError for a constant of another kind."""
        return cls(
            _names(constants, "Coordinators"),
            _names(constants, "Clients"),
            _names(constants, "Partitions"),
            _names(constants, "OffsetsPartitions"),
            _names(constants, "Late"),
            _number(constants, "MaxEpoch"),
            _number(constants, "LastEpoch") if "LastEpoch" in constants else NEVER,
            _number(constants, "EpochsOfId") if "EpochsOfId" in constants else NEVER,
            _number(constants, "MaxExpiries") if "MaxExpiries" in constants else 0,
            constants["TimeOuts"] is True,
            constants["LoadIsReplicated"] is True,
            PartitionSettings(
                verifies=constants["Verification"] is True,
                version=2 if constants["Version2"] is True else 0,
                strict_markers=constants["StrictMarkers"] is True,
                changes_leaders=constants["MaxLeaderChanges"] != 0,
            ),
        )

    @property
    def version(self) -> int:
        """Of transactions: 2, or 0 for both that came before."""
        return self.of_partitions.version

    def has_epoch_left(self, epoch: int) -> bool:
        """Whether the model lets the epoch be raised."""
        if self.epochs_of_id == NEVER:
            return epoch < self.max_epoch
        return epoch < 0 or epoch % self.epochs_of_id < self.epochs_of_id - 1

    @property
    def max_copies(self) -> int:
        """How often a marker arrives."""
        return 2 if "Marker" in self.late else 1


def _number(constants: Mapping[str, Value], name: str) -> int:
    number = constants[name]
    if not isinstance(number, int):
        raise UserError(f"{name} must be a number.")
    return number


def _names(constants: Mapping[str, Value], name: str) -> tuple[str, ...]:
    names = constants[name]
    if not isinstance(names, frozenset):
        raise UserError(f"{name} must be a set.")
    return tuple(sorted(map(str, names)))
