"""The table of docs/transactions.md: in which releases each promise was seen to hold or to fail.

`python -m tests.unit.modelcheck.promises_seen` writes it, from docs/releases and Kafka's table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.deviations.table import Deviation, load_deviations
from conformance.kafka.jars import RELEASES
from conformance.modelcheck.manifest import Model, find_models
from conformance.report.releases import ReleaseRecord, load
from tests.unit.marked_table import MarkedTable

ROOT = Path(__file__).parents[3]
TABLE = MarkedTable(ROOT / "docs" / "transactions.md", "seen")
_RELEASES = ROOT / "docs" / "releases"
_DEVIATIONS = ROOT / "conformance" / "systems" / "kafka" / "deviations.toml"
_PROMISES = re.compile(r"^## To whoever (?:reads|produces)\b.*?(?=^## )", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"`([A-Z]\w+)`")
_HEAD = "| formula | held, version 1 | held, version 2 | failed |\n|---|---|---|---|"
_AGREES = ("agrees", "deviates")
_NOT_RUN = "no suite"


def table() -> str:
    """A row for each formula that the page promises, in its order."""
    records = [load(file) for file in sorted(_RELEASES.glob("kafka-*.json"))]
    deviations = load_deviations(_DEVIATIONS)
    return "\n".join(
        (_HEAD, *(_row(name, records, deviations) for name in _formulas(TABLE.text())))
    )


def _formulas(page: str) -> Sequence[str]:
    """Those of the third column; the others name models, or what is not promised."""
    rows = [
        line.split("|")
        for section in _PROMISES.findall(page)
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith("| promise")
    ]
    return list(dict.fromkeys(name for row in rows for name in _FORMULA.findall(row[2])))


def _row(name: str, records: Sequence[ReleaseRecord], deviations: Sequence[Deviation]) -> str:
    breaking = {one.id for one in deviations if name in one.breaks}
    models = [
        model
        for model in find_models(["transaction", "producer"])
        if name in (*model.check.invariants, *model.check.properties)
    ]
    cells = [
        _held([model for model in models if _speaks(model, version)], among, breaking)
        for version, among in (("FALSE", records), ("TRUE", list(filter(_has_version_2, records))))
    ]
    failed = "; ".join(_failed(name, one) for one in deviations if one.id in breaking)
    return f"| `{name}` | {' | '.join(cells)} | {failed} |"


def _speaks(model: Model, version_2: str) -> bool:
    """A log is the same in both versions, and counts for both."""
    return model.constants.get("Version2", version_2) == version_2


def _has_version_2(record: ReleaseRecord) -> bool:
    """KIP-890: from 4.0 on."""
    return _version(record) >= "4"


def _held(models: Sequence[Model], records: Sequence[ReleaseRecord], breaking: set[str]) -> str:
    held = [
        _version(record)
        for record in records
        if any(_agrees(record, model.name, breaking) for model in models)
    ]
    return ", ".join(_runs(held)) or _NOT_RUN


def _agrees(record: ReleaseRecord, model: str, breaking: set[str]) -> bool:
    suite = record.suites.get(model)
    return suite is not None and suite.answer in _AGREES and not breaking & {*suite.deviations}


def _failed(name: str, deviation: Deviation) -> str:
    words = f"{', '.join(_runs(deviation.seen))} ({deviation.id})"
    return f"**{words}**" if name == deviation.violated else words


def _version(record: ReleaseRecord) -> str:
    return record.system.partition("-")[2]


def _runs(versions: Sequence[str]) -> Iterator[str]:
    """Neighbours among the releases that are known, as `from to`."""
    known = [number for number, release in enumerate(RELEASES) if release in versions]
    while known:
        first, last = known[0], known[0]
        while known and known[0] in (first, last + 1):
            last = known.pop(0)
        between = " to " if last > first + 1 else ", "
        yield RELEASES[first] + (between + RELEASES[last] if last > first else "")


if __name__ == "__main__":
    TABLE.write(table())
