"""A load along every log that pruning may leave of a unit's records.

The share coordinator deletes a prefix of its partition (DeleteRecords). It keeps the newest
snapshot of each key that is not deleted, and all that stands behind it. So a load may begin at any
record up to the first of these.

Source: ShareCoordinatorOffsetsManager.lastRedundantOffset,
ShareCoordinatorService.performRecordPruning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from conformance.load.compactions import AS_IT_IS, SAMPLE, LoadSearch, Replay, Variant, straight


@dataclass(frozen=True, slots=True)
class PruningShape:
    """How much of a unit's records may be gone."""

    count: int
    limit: int
    """As many of the first records may be deleted."""

    def kept(self, variant: Variant) -> list[int]:
        """The records of a variant."""
        return list(range(variant.start, self.count))

    def explore(self, initial: int, replay: Replay, failed: Callable[[int], bool]) -> LoadSearch:
        """Follow a load from each beginning; `failed` says which states are the end of a load."""
        result = LoadSearch(straight(self.count, initial, replay))
        for start in range(1, self.limit + 1):
            result.variants += 1
            state = initial
            for number in range(start, self.count):
                state = replay(state, number)
                if failed(state):
                    result.failures.setdefault((number, state), _from(start))
                    break
            else:
                result.final.setdefault(state, _from(start))
        return result

    def sample(self, random: Random) -> Iterator[Variant]:
        """Some beginnings."""
        for start in sorted(random.sample(range(1, self.limit + 1), min(SAMPLE, self.limit))):
            yield _from(start)


def _from(start: int) -> Variant:
    return AS_IT_IS._replace(kind="pruned", start=start)
