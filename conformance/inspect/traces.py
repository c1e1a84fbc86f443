"""A partition's history as a trace that `kconform judge` and `kconform import` read.

One event for each window of the moment of the copies. Offsets and epochs are those of the
abstraction; the mapping beside the trace says what they stand for. `kconform judge
--invariants-only` asks of it the same formulas as the inspection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from conformance.files import written_aside
from conformance.inspect.abstraction import Window, windows
from conformance.inspect.judgement import Judged
from conformance.tla import format_value, to_itf

_SHOWN = (
    "registration", "online", "leaderEpoch", "leader", "log", "logStartOffset", "highWatermark",
    "epochCache", "fetchState", "fetchOffset", "exposed",
)  # fmt: skip
MODEL = "replication/kip320-coarse-3b"
"""Names the specification; every constant of the trace is in its mapping."""


def write(partitions: Iterable[Judged], folder: Path) -> None:
    """`TOPIC-PARTITION.ndjson` and its mapping, for each partition with a history."""
    for judged in partitions:
        if judged.subject.elections is None or not judged.states:
            continue
        windowed = list(windows(judged.moment))
        events = "".join(f"{json.dumps(one)}\n" for one in _events(judged, windowed))
        stem = folder / judged.subject.name
        for suffix, text in ((".ndjson", events), (".mapping.toml", _mapping(judged, windowed))):
            with written_aside(stem.with_name(stem.name + suffix)) as path:
                path.write_text(text, encoding="utf-8")


def _events(judged: Judged, windowed: list[Window]) -> Iterator[dict[str, Any]]:
    """An event shows whole variables; what files cannot show is left out."""
    for number, window in enumerate(windowed):
        state = {name: to_itf(window.values[name]) for name in _SHOWN}
        name = judged.subject.name if len(windowed) == 1 else f"{judged.subject.name} {number}"
        yield {
            "trace": name,
            "state": state,
            "source": f"offsets {window.cuts[0]} to {window.cuts[-1]}",
        }


def _mapping(judged: Judged, windowed: list[Window]) -> str:
    """Constants that bound nothing, and in comments what the abstract offsets stand for."""
    names = frozenset(judged.moment.replicas)
    offsets = max(len(window.cuts) for window in windowed)
    epochs = max(len(window.epochs) for window in windowed)
    lines = ["schema = 1"]
    for window in windowed:
        lines.append(f"# offsets: {_table(window.cuts)}")
        lines.append(f"# leader epochs: {_table(window.epochs)}")
    lines += [
        "[constants]",
        f"Brokers = '{format_value(names)}'",
        f"Offsets = '0..{offsets}'",
        f"Epochs = '0..{max(epochs, 1)}'",
        "TwoStepIsr = 'TRUE'",
        "PartitionEpochs = '0..1000000'",
        f"InitialLeader = '{format_value(min(names))}'",
        "UncleanElection = 'TRUE'",
        "Crashes = 'TRUE'",
        "LogStartMoves = 'TRUE'",
    ]
    return "\n".join(lines) + "\n"


def _table(real: tuple[int, ...]) -> str:
    return ", ".join(f"{abstract} is {offset}" for abstract, offset in enumerate(real))
