"""What surrounds a share coordinator in a model: its group, the leaders, and what is under way."""

from conformance.systems.shared.persister.steps import (
    VARIABLES,
    PersisterSteps,
    ShareView,
    StoreOfShares,
    WriteRequest,
)

__all__ = ["VARIABLES", "PersisterSteps", "ShareView", "StoreOfShares", "WriteRequest"]
