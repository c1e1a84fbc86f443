"""A recorded cluster, judged: its traces are written, each with its mapping, and judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import UserError
from conformance.files import written_aside
from conformance.judge.mapping import load_mapping
from conformance.recordings.folder import RecordedTrace, manifest, series
from conformance.recordings.group import group_traces
from conformance.recordings.replication import (
    partitions_in,
    replication_traces,
    unfit_settings,
)
from conformance.stages.context import Context, one_model, with_constants
from conformance.stages.judging import JudgementTally, JudgeRequest, judge_files

PROTOCOLS = ("replication", "group")


@dataclass(frozen=True, slots=True)
class WrittenTrace:
    """A trace of a recording as files."""

    protocol: str
    trace: RecordedTrace
    events: Path
    mapping: Path

    @property
    def command(self) -> str:
        """What judges it again."""
        return f"kconform judge {self.events} --model {self.trace.model} --mapping {self.mapping}"


def recordings(folder: Path) -> list[Path]:
    """The recordings in a folder that `cluster record` wrote: itself, or each run of the series.

    Raises DataError for a series that cannot be read.
    """
    return [folder / name for name in series(folder)] or [folder]


def spoiled(recording: Path) -> str:
    """Why it is none that could be judged, or nothing. Raises DataError if it is no recording."""
    return str(manifest(recording).get("spoiled", ""))


def left_out(recording: Path) -> str:
    """Why partitions that were seen are not judged, or nothing. DataError if it is no recording."""
    return unfit_settings(recording) if partitions_in(recording) else ""


def write_traces(recording: Path, folder: Path) -> list[WrittenTrace]:
    """The traces of each partition and group that the agent saw, but for what `left_out` tells.

    Raises UserError if there are none, DataError if the folder is no recording.
    """
    written = [
        _write(protocol, trace, folder)
        for protocol, traces in (
            ("replication", _replication(recording)),
            ("group", group_traces(recording)),
        )
        for trace in traces
    ]
    if not written:
        if why := left_out(recording):
            raise UserError(why)
        raise UserError(
            f"The agent saw no partition and no group in {recording}: there is nothing to judge. "
            "Record with `agent = true`, and with a topic or a consumer of a group."
        )
    return written


def _replication(recording: Path) -> Iterator[RecordedTrace]:
    judged = partitions_in(recording) and not unfit_settings(recording)
    return replication_traces(recording) if judged else iter(())


def _write(protocol: str, trace: RecordedTrace, folder: Path) -> WrittenTrace:
    events = folder / f"{protocol}-{trace.name}.ndjson"
    mapping = folder / f"{protocol}-{trace.name}.mapping.toml"
    for path, text in ((events, trace.ndjson), (mapping, trace.mapping)):
        with written_aside(path) as aside:
            aside.write_text(text, encoding="utf-8")
    return WrittenTrace(protocol, trace, events, mapping)


def announce(context: Context, written: Iterable[WrittenTrace]) -> None:
    """Let the models of these traces be parsed together: most of a short trace's time is SANY's."""
    context.check.parser.announce(
        with_constants(one_model(trace.trace.model), trace.trace.constants) for trace in written
    )


def judge_written(context: Context, trace: WrittenTrace) -> JudgementTally:
    """Judge one trace by its own mapping, as `kconform judge` does."""
    mapping = load_mapping(trace.mapping)
    request = JudgeRequest((trace.events,), one_model(trace.trace.model), mapping, trace.mapping)
    return judge_files(context, request)
