"""What of a system's observations is not held against it: declared in a table, or met on the way.

A broker that describes an unknown group as Empty, where Kafka says Dead, departs at the first state
of every suite. Nothing behind that would be seen. So a difference can be set aside: a value that
stands for another one in a variable, or a variable altogether. Steps are compared in all else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.deviations.declared import declared
from conformance.deviations.table import Deviation
from conformance.systems.capabilities import Capabilities
from conformance.tla import Value, agree, format_value, parse_value

_READINGS = 3
"""So many readings of one variable at most: then it is not compared at all."""


@dataclass(frozen=True, slots=True)
class Reading:
    """In a variable the system shows one value where the specification has another."""

    variable: str
    expected: Value
    shown: Value

    def __str__(self) -> str:
        return (
            f"{self.variable} is {format_value(self.shown)} where the specification has "
            f"{format_value(self.expected)}"
        )


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Differences that are set aside."""

    readings: frozenset[Reading] = frozenset()
    hidden: frozenset[str] = frozenset()
    """Variables that are not compared."""
    _pairs: Mapping[str, tuple[Reading, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Readings by variable: a driver asks for those of one."""
        pairs: dict[str, tuple[Reading, ...]] = {}
        for reading in self.readings:
            pairs[reading.variable] = (*pairs.get(reading.variable, ()), reading)
        object.__setattr__(self, "_pairs", pairs)

    def accepts(self, variable: str, expected: Value, shown: Value) -> bool:
        """Whether this difference is set aside."""
        return any(
            agree(pair.expected, expected) and agree(pair.shown, shown)
            for pair in self._pairs.get(variable, ())
        )

    def with_readings(self, more: Iterable[Reading]) -> Tolerance:
        """These differences too; a variable with many of them is hidden."""
        readings = self.readings | frozenset(more)
        counts = Counter(reading.variable for reading in readings)
        hidden = self.hidden | {name for name, count in counts.items() if count > _READINGS}
        left = frozenset(reading for reading in readings if reading.variable not in hidden)
        return Tolerance(left, hidden)

    def lines(self) -> list[str]:
        """Each as a sentence's part, in a fixed order."""
        return [
            *sorted(map(str, self.readings)),
            *(f"{name} is not compared" for name in sorted(self.hidden)),
        ]


def tolerance_of(system: object) -> Tolerance:
    """What of this system is set aside: as it declares itself, or as the run declares."""
    tolerant = Capabilities(system).tolerant
    if tolerant is not None:
        return tolerant.tolerance
    table = declared()
    return Tolerance() if table is None else set_aside(table.deviations())


def set_aside(deviations: Iterable[Deviation]) -> Tolerance:
    """What a table sets aside. DataError for a value that cannot be read."""
    readings = [
        Reading(name, parse_value(expected), parse_value(shown))
        for deviation in deviations
        for name, values in deviation.shown.items()
        for shown, expected in values.items()
    ]
    hidden = frozenset(name for deviation in deviations for name in deviation.hidden)
    return Tolerance(frozenset(readings), hidden)
