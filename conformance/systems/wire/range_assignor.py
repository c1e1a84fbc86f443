"""What Kafka's range assignor gives the members of a group of KIP-848."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def is_range(parts: Sequence[Collection[int]]) -> bool:
    """Whether it may give these partitions of one topic to its readers, in the order of their ids:
    each gets a range, nobody a larger one than those before him. A partition may be missing."""
    given = [number for part in parts for number in sorted(part)]
    sizes = [len(part) for part in parts]
    return given == sorted(given) and sizes == sorted(sizes, reverse=True)
