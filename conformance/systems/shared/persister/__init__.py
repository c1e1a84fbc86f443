"""What surrounds a share coordinator in a model: its group, the leaders, and what is under way."""

from conformance.systems.shared.persister.steps import (
    STATE_IDS,
    STATES,
    VARIABLES,
    PersisterSteps,
    ReadAnswer,
    ShareView,
    StoreOfShares,
    WriteRequest,
)

__all__ = [
    "STATES",
    "STATE_IDS",
    "VARIABLES",
    "PersisterSteps",
    "ReadAnswer",
    "ShareView",
    "StoreOfShares",
    "WriteRequest",
]
