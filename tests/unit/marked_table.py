"""A table that a command writes into a page, between two comments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MarkedTable:
    """Where it stands."""

    page: Path
    name: str

    @property
    def _begin(self) -> str:
        return f"<!-- {self.name}: begin -->\n"

    @property
    def _end(self) -> str:
        return f"\n<!-- {self.name}: end -->"

    def text(self) -> str:
        """The whole page."""
        return self.page.read_text(encoding="utf-8")

    def shown(self) -> str:
        """The table that the page shows."""
        return self.text().partition(self._begin)[2].partition(self._end)[0]

    def write(self, table: str) -> None:
        """Put this one in its place."""
        before, _, rest = self.text().partition(self._begin)
        after = rest.partition(self._end)[2]
        whole = f"{before}{self._begin}{table}{self._end}{after}"
        self.page.write_text(whole, encoding="utf-8")
