"""The states of a transaction, and the moves between them (TransactionState)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class TransactionState(IntEnum):
    """The numbers are those of the log's records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """Only ever pending: the id is about to be forgotten."""
    PREPARE_EPOCH_FENCE = 7
    """Only ever pending: the transaction is about to be aborted by the coordinator."""

    @property
    def state_name(self) -> str:
        """As DescribeTransactions writes it: CompleteCommit."""
        return "".join(map(str.capitalize, self.name.split("_")))

    @property
    def is_expiration_allowed(self) -> bool:
        """Whether an id that is here may be forgotten."""
        return self in _OVER


PREPARES = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
COMPLETES = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
_OVER = COMPLETES | {TransactionState.EMPTY}

VALID_PREVIOUS_STATES: Mapping[TransactionState, frozenset[TransactionState]] = MappingProxyType(
    {
        TransactionState.EMPTY: _OVER,
        TransactionState.ONGOING: _OVER | {TransactionState.ONGOING},
        TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
        TransactionState.PREPARE_ABORT: _OVER | {TransactionState.ONGOING},
        TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
        TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
        TransactionState.DEAD: _OVER,
        TransactionState.PREPARE_EPOCH_FENCE: frozenset({TransactionState.ONGOING}),
    }
)
"""By the state that is to come. What is over is aborted in version 2 only."""
