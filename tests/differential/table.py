"""The table of differential results: TLC's figures over ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HEADER = ("", "generated", "states", "transitions", "violated (length)", "agree")


@dataclass(frozen=True, slots=True)
class Figures:
    """What one engine found; a number is None where its search ended before it was known."""

    generated: int | None
    states: int | None
    transitions: int | None
    violations: Mapping[str, int]
    """Formula, or "deadlock", to the number of states of the shortest counterexample."""


class Table:
    """Writes lines: the first column is as wide as the longest name."""

    def __init__(self, first: str, names: list[str]) -> None:
        self._width = max(map(len, [first, *names]), default=0)
        self._first = first

    def header(self) -> str:
        """The names of the columns."""
        return self._line(self._first, *HEADER)

    def rows(self, name: str, tlc: Figures, ours: Figures, differing: list[str]) -> list[str]:
        """Two lines, and a line for each difference."""
        return [
            self._figures(name, "TLC", tlc, ""),
            self._figures("", "ours", ours, "no" if differing else "yes"),
            *(f"    {difference}" for difference in differing),
        ]

    def _figures(self, name: str, engine: str, found: Figures, agree: str) -> str:
        counts = (found.generated, found.states, found.transitions)
        violated = ", ".join(f"{formula} ({n})" for formula, n in sorted(found.violations.items()))
        shown = ["-" if count is None else str(count) for count in counts]
        return self._line(name, engine, *shown, violated or "-", agree)

    def _line(self, name: str, *rest: str) -> str:
        columns = "{:<5} {:>10} {:>8} {:>12}  {:<34} {}".format(*rest)
        return f"{name:<{self._width}} {columns}".rstrip()
