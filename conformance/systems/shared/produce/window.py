"""Kafka's window of batches, which no setting changes, beside a model's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from conformance.tla import Value

SPECIFICATION: Final = "IdempotentProduce"
"""The root module that says what the actions are."""
SIGN: Final = "Window"
"""A constant that its models have, and others do not."""
WINDOW: Final = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN."""


def other_window(constants: Mapping[str, Value]) -> str:
    """Why a model's window is not Kafka's; empty if it is, or if neither is ever full."""
    window, batches = constants["Window"], constants["MaxBatches"]
    assert isinstance(window, int), "a number of batches"
    assert isinstance(batches, int), "a number of batches"
    if window == WINDOW or batches <= min(window, WINDOW):
        return ""
    return f"Kafka keeps {WINDOW} batches of a producer, and this model {window} of {batches}"
