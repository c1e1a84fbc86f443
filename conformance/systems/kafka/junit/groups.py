"""What tests of both kinds of groups share: a shard of the group coordinator, and its members."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.shared.group.words import sorted_numbers, text
from conformance.tla import Value

TEMPLATE = "group.java.txt"
CALLS: Mapping[str, frozenset[str]] = {
    "expire(": frozenset({"expires"}),
    "failOver(": frozenset({"failsOver"}),
    "commit(": frozenset({"commits"}),
}
"""By what tests of both kinds call, the parts of the template that they need."""


def map_of(pairs: Mapping[str, str]) -> str:
    """A map of Java from names to expressions."""
    return f"Map.of({', '.join(f'{text(name)}, {value}' for name, value in pairs.items())})"


def set_of(numbers: Value) -> str:
    """A set of Java of partitions."""
    return f"Set.of({', '.join(map(str, sorted_numbers(numbers)))})"


def epoch_from(first: int | None, epoch: Value) -> str:
    """An epoch as a test has it: counted from the first one of the group, if there is one.

    Releases begin with 1 or with 2, which is a finding of its own and changes no other.
    """
    if first is None or not (isinstance(epoch, int) and epoch > 0):
        return str(epoch)
    later = epoch - first
    return f"firstEpoch + {later}" if later else "firstEpoch"
