"""Many recordings judged by several processes of this machine.

A process is forked once the judge has judged for a while: it begins with all that is compiled and
with all candidates and events that are known by then. A judgement depends on nothing but its
recording, so the verdicts are those of one process. Where there is no fork, one process judges
everything.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from conformance.errors import UserError
from conformance.judge.judge import Judge
from conformance.judge.reading import Located, RecordingReader
from conformance.judge.verdict import Judgement

__all__ = ["judge_here"]

ALONE = 1.0
"""So many seconds of the processor one process judges before others help it: by then all is
compiled, and most of what recordings share was met."""

_TURN = 0.2
"""About so many seconds a process judges before it tells."""
_FIRST_TURN = 200
"""Events."""

Judged = tuple[Located, Judgement]


def judge_here(
    judge: Judge, recordings: Iterable[Located], *, processes: int = 1, brief: bool = False
) -> Iterator[Judged]:
    """Every recording with its judgement, in their order, made on this machine.

    `brief`: a judgement that passes may come without its explanation. UserError if a file cannot
    be read, or if a process is ended from outside. Closing the iterator ends the processes.
    """
    waiting = iter(recordings)
    several = processes > 1 and sys.platform == "linux"
    end = time.process_time() + ALONE
    reader = RecordingReader()
    with reader, judge.many():
        for located in waiting:
            yield located, judge.judge(reader.read(located), brief=brief)
            if several and time.process_time() > end:
                break
        else:
            return
    following = next(waiting, None)
    if following is not None:
        with _Helpers(judge, reader, processes, brief=brief) as helpers:
            yield from helpers.judged(chain([following], waiting))


@dataclass(slots=True)
class _Helper:
    """A process, and what it was given last."""

    process: BaseProcess
    connection: Connection
    number: int = 0
    turn: Sequence[Located] = ()
    began: float = 0.0


class _Helpers(ExitStack):
    """Forked processes. Leaving the context ends them at once."""

    def __init__(
        self, judge: Judge, reader: RecordingReader, processes: int, *, brief: bool
    ) -> None:
        super().__init__()
        # What is there stays: no process's collector needs to look at it, or to touch its memory.
        gc.collect()
        gc.freeze()
        self.callback(gc.unfreeze)
        forking = multiprocessing.get_context("fork")
        self._helpers: list[_Helper] = []
        for _ in range(processes):
            ours, theirs = forking.Pipe()
            mine = [*(helper.connection for helper in self._helpers), ours]
            process = forking.Process(
                target=_serve,
                args=(judge, reader, theirs, mine, brief),
                name="kconform judge",
                daemon=True,
            )
            process.start()
            theirs.close()
            self._helpers.append(_Helper(process, ours))
            self.callback(_end, process, ours)

    def judged(self, recordings: Iterator[Located]) -> Iterator[Judged]:
        """Each recording with its judgement, in their order."""
        turns = _Turns(recordings)
        found: dict[int, list[Judged]] = {}
        told = 0
        busy = [helper for helper in self._helpers if _give(helper, turns)]
        while busy:
            for connection in wait([helper.connection for helper in busy]):
                helper = next(one for one in busy if one.connection is connection)
                turns.took(helper.turn, time.monotonic() - helper.began)
                found[helper.number] = list(zip(helper.turn, _answer(helper), strict=True))
                if not _give(helper, turns):
                    busy.remove(helper)
            while told in found:
                yield from found.pop(told)
                told += 1


class _Turns:
    """Recordings in portions that take about equally long, as far as the last ones say."""

    def __init__(self, recordings: Iterator[Located]) -> None:
        self._recordings = recordings
        self._events = _FIRST_TURN
        self.given = 0

    def following(self) -> Sequence[Located]:
        """The next portion, none if there is no more."""
        turn: list[Located] = []
        events = 0
        for located in self._recordings:
            turn.append(located)
            events += max(located.lines, 1)
            if events >= self._events:
                break
        return turn

    def took(self, turn: Sequence[Located], seconds: float) -> None:
        """Learn from how long a portion took."""
        events = sum(located.lines for located in turn)
        fitting = int(events * _TURN / max(seconds, 1e-3))
        self._events = max(1, min(fitting, 4 * self._events))


def _give(helper: _Helper, turns: _Turns) -> bool:
    """Whether there was a portion to give."""
    turn = turns.following()
    if turn:
        helper.number, helper.turn, helper.began = turns.given, turn, time.monotonic()
        turns.given += 1
        helper.connection.send(turn)
    return bool(turn)


def _answer(helper: _Helper) -> list[Judgement]:
    try:
        answer = helper.connection.recv()
    except (EOFError, ConnectionResetError):
        raise _ended(helper) from None
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, list)
    return answer


def _ended(helper: _Helper) -> UserError:
    helper.process.join()
    code = helper.process.exitcode or 0
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    first, last = helper.turn[0], helper.turn[-1]
    return UserError(
        f"A process that judged the traces {first.name} to {last.name} was ended {how}: most "
        "likely memory ran out. Set `jobs = 1` to judge in one process, or lower `candidates` and "
        "`states` under [limits] of the mapping."
    )


def _end(process: BaseProcess, connection: Connection) -> None:
    connection.close()
    process.kill()  # it holds nothing but memory
    process.join()


# --- in a helper ----------------------------------------------------------------------------------


def _serve(
    judge: Judge,
    reader: RecordingReader,
    connection: Connection,
    of_the_parent: Sequence[Connection],
    brief: bool,
) -> None:
    """Judge what is asked until nobody asks any more."""
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    judge.tell = _tell_nobody
    for inherited in of_the_parent:  # else the parent's end would go unseen
        inherited.close()
    with reader, judge.many():
        while True:
            try:
                turn = connection.recv()
            except EOFError:
                return
            connection.send(_judged(judge, reader, turn, brief=brief))


def _tell_nobody(_events: int) -> None:
    """The parent's terminal is the parent's."""


def _judged(
    judge: Judge, reader: RecordingReader, turn: Sequence[Located], *, brief: bool
) -> list[Judgement] | Exception:
    try:
        return [judge.judge(reader.read(located), brief=brief) for located in turn]
    except Exception as error:  # noqa: BLE001 - the parent raises it
        error.add_note(traceback.format_exc())
        return error
