"""Judges many recordings in several processes of this machine.

A process is forked once the judge has judged for a while: it begins with all that is compiled and
with all candidates and events that are known by then. A judgement depends on nothing but its
recording, so the verdicts are those of one process. Where there is no fork, one process judges
everything.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from conformance.errors import UserError
from conformance.judge.judge import Judge
from conformance.judge.reading import RecordingLocation, RecordingReader
from conformance.judge.verdict import Judgement
from conformance.workers import ForkedProcesses, WorkerEnded

__all__ = ["judge_here"]

ALONE = 1.0
"""Processor seconds that one process judges before others start. By then all is
compiled, and most of what recordings share was met."""

_TURN = 0.2
"""Seconds after which a process reports its judgements, approximately."""
_FIRST_TURN = 200
"""Events."""

Judged = tuple[RecordingLocation, Judgement]


def judge_here(
    judge: Judge,
    recordings: Iterable[RecordingLocation],
    *,
    processes: int = 1,
    brief: bool = False,
) -> Iterator[Judged]:
    """Every recording with its judgement, in their order, made on this machine.

    `brief`: a judgement that passes may come without its explanation. UserError if a file cannot
    be read, or if a process is ended from outside. Closing the iterator ends the processes.
    """
    waiting = iter(recordings)
    end = time.process_time() + ALONE
    reader = RecordingReader()
    with reader, judge.many():
        for located in waiting:
            yield located, judge.judge(reader.read(located), brief=brief)
            if processes > 1 and time.process_time() > end:
                break
        else:
            return
    following = next(waiting, None)
    if following is None:
        return
    turns = _Turns(chain([following], waiting))
    helper = _Helper(judge, reader, brief)
    try:
        for judgements, seconds in ForkedProcesses(processes).map(helper, turns):
            yield from zip(turns.took(seconds), judgements, strict=True)
    except WorkerEnded as error:
        raise _ended(error) from None


class _Turns(Iterator[Sequence[RecordingLocation]]):
    """Recordings in portions that take about equally long, as far as the last ones say."""

    def __init__(self, recordings: Iterator[RecordingLocation]) -> None:
        self._recordings = recordings
        self._events = _FIRST_TURN
        self._given: deque[Sequence[RecordingLocation]] = deque()

    def __next__(self) -> Sequence[RecordingLocation]:
        turn: list[RecordingLocation] = []
        events = 0
        for located in self._recordings:
            turn.append(located)
            events += max(located.lines, 1)
            if events >= self._events:
                break
        if not turn:
            raise StopIteration
        self._given.append(turn)
        return turn

    def took(self, seconds: float) -> Sequence[RecordingLocation]:
        """The first portion that is still out, and how long it took: learn from that."""
        turn = self._given.popleft()
        events = sum(located.lines for located in turn)
        fitting = int(events * _TURN / max(seconds, 1e-3))
        self._events = max(1, min(fitting, 4 * self._events))
        return turn


@dataclass(frozen=True, slots=True)
class _Helper:
    """Judges portions in a forked process, which keeps the file open between them."""

    judge: Judge
    reader: RecordingReader
    brief: bool

    def __call__(self, turn: Sequence[RecordingLocation]) -> tuple[list[Judgement], float]:
        """The judgements, and the seconds that they took."""
        begun = time.monotonic()
        self.judge.tell = _tell_nobody
        with self.judge.many():
            result = [self.judge.judge(self.reader.read(item), brief=self.brief) for item in turn]
        return result, time.monotonic() - begun


def _tell_nobody(_events: int) -> None:
    """The parent's terminal is the parent's."""


def _ended(error: WorkerEnded) -> UserError:
    turn = error.item
    assert isinstance(turn, list)
    return UserError(
        f"A process that judged the traces {turn[0].name} to {turn[-1].name} was ended "
        f"{error.how}: most likely memory ran out. Set `jobs = 1` to judge in one process, or "
        "lower `candidates` and `states` under [limits] of the mapping."
    )
