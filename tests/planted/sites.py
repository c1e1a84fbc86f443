"""Copies of real directories in which faults are planted."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from conformance.kafka.batches import header_at

_LOG = f"{0:020}.log"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a segment (magic 2)."""

    position: int
    size: int
    base: int
    last: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault that was planted. `offset` is None where it has none; `brokers` all that it is on."""

    kind: str
    brokers: tuple[str, ...]
    offset: int | None
    what: str


@dataclass(frozen=True, slots=True)
class Site:
    """Copies to plant in: `root/BROKER/data`, each with the same topic in one partition."""

    root: Path
    topic: str
    brokers: tuple[str, ...]
    draw: random.Random

    def data(self, broker: str) -> Path:
        """A broker's log directory."""
        return self.root / broker / "data"

    def log(self, broker: str, topic: str | None = None) -> Path:
        """A broker's first segment of partition 0."""
        return self.data(broker) / f"{topic or self.topic}-0" / _LOG

    def batches(self, broker: str, topic: str | None = None) -> list[Batch]:
        """The batches of that segment."""
        data, position, found = self.log(broker, topic).read_bytes(), 0, list[Batch]()
        while header := header_at(data, position):
            if header.length <= 0:
                break
            base = header.base_offset
            last = base + header.last_offset_delta
            found.append(Batch(position, header.size, base, last, header.leader_epoch))
            position += header.size
        return found

    def some_batch(self, broker: str, *, margin: int = 1) -> Batch:
        """A batch that is not among the first or last."""
        return self.draw.choice(self.batches(broker)[margin:-margin])

    def high_watermark(self, broker: str) -> int:
        """As the checkpoint says."""
        rows = (self.data(broker) / REPLICATION).read_text("utf-8").splitlines()[2:]
        return next(int(row.split()[2]) for row in rows if row.split()[:2] == [self.topic, "0"])


REPLICATION = "replication-offset-checkpoint"


def overwrite(path: Path, position: int, data: bytes) -> None:
    """Other bytes in the middle of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def read_cache(
    site: Site, broker: str, topic: str | None = None
) -> tuple[Path, list[tuple[int, int]]]:
    """The leader-epoch-checkpoint of a partition: its path, and epochs with their offsets."""
    path = site.log(broker, topic).parent / "leader-epoch-checkpoint"
    rows = path.read_text("utf-8").splitlines()[2:]
    return path, [(int(a), int(b)) for a, b in (row.split() for row in rows)]


def write_cache(path: Path, entries: list[tuple[int, int]]) -> None:
    """Write such a file."""
    rows = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    path.write_text(f"0\n{len(entries)}\n{rows}", "utf-8")


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault, and the kinds of findings that tell it."""

    plant: Callable[[Site, str], Planted]
    told_by: frozenset[str]
    needs: Callable[[Site], bool] = lambda _site: True
    """Whether the copies hold what it is planted in."""
    invariant: str = ""
    """The row of `invariants.INVARIANTS` that it breaks; '' for what is wrong within one file."""
    proved: bool = True
    """Whether the finding is proved; else it makes the verdict inconclusive."""
    at: Callable[[Site, str], str] = lambda _site, broker: broker
    """The broker that it is planted at instead, if not every one will do."""
