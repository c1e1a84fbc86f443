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
