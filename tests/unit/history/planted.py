"""Lies in numbers: copies of a small history, each apart from the others, and shuffled together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tests.unit.history.histories import Operation


def apart(operation: Operation, number: object) -> Operation:
    """The operation by a process of its own, on partitions of its own."""

    def renamed(items: list[Any]) -> list[Any]:
        return [
            {**item, "key": f"{item['key']}-{number}"}
            if isinstance(item, dict)
            else f"{item}-{number}"
            for item in items
        ]

    lists = {name: renamed(value) for name, value in operation.items() if isinstance(value, list)}
    return {**operation, **lists, "process": f"{operation['process']}-{number}"}


def shuffled(histories: Sequence[Sequence[Operation]], rng: random.Random) -> Iterator[Operation]:
    """All operations, each history's in their order."""
    turns = [number for number, history in enumerate(histories) for _ in history]
    rng.shuffle(turns)
    rest = [iter(history) for history in histories]
    for number in turns:
        yield apart(next(rest[number]), number)
