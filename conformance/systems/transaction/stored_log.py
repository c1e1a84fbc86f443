"""The system under test: a partition's log on its disk, whose process stops or dies.

Driven by TransactionalLogRestarts.tla. What is left on the disk is loaded by the next process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.systems.protocol import Observation
from conformance.systems.transaction.log_system import UNVERIFIED, TransactionalLogSystem
from conformance.systems.transaction.replica import truncate_replica
from conformance.systems.transaction.stored_replica import StoredReplica
from conformance.tla import Action, Value, make_function
from impl.log import Log
from impl.producer_state.producer_state_entry import ProducerStateEntry

_WRITES = frozenset({"Produce", "EndTransaction", "Roll", "Truncate"})
_DATA = "data"
_NO_OFFSET = -1


class StoredLogSystem(TransactionalLogSystem):
    """A replica's log: segments, snapshots of its producers, abort indexes."""

    variables = (*TransactionalLogSystem.variables, "segments", "snapshots")

    def __init__(self, constants: Mapping[str, Value]) -> None:
        super().__init__(constants)
        self._ends = range(int(str(constants["MaxRecords"])) + 1)
        self._actions |= {
            "Produce": self._append_data,
            "EndTransaction": self._append_marker,
            "Replicate": self._advance,
            "Roll": _done(lambda: self._log.roll()),
            "Truncate": lambda end: truncate_replica(self._log, end),
            "Stop": self._restarting(lambda replica, hw: replica.stop(hw)),
            "Kill": self._restarting(lambda replica, hw: replica.kill(hw)),
            "KillAmidAppend": self._restarting(
                lambda replica, name, kind, hw: replica.kill_amid_append(
                    lambda: self._append(name, kind), hw
                )
            ),
            "KillAmidTruncation": self._restarting(
                lambda replica, target, end, hw: replica.kill_amid_truncation(target, end, hw)
            ),
        }

    def _restarting(self, ends: Callable[..., Log]) -> Callable[..., None]:
        """A step in which a process ends and the next one loads the log."""

        def step(*args: object) -> None:
            self._log = ends(self._replica, *args)

        return step

    def _append(self, name: str, kind: str) -> None:
        if kind == _DATA:
            self._append_data(name)
        else:
            self._append_marker(name, kind)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def _empty_log(self) -> Log:
        self._replica = StoredReplica(UNVERIFIED, self._threads)
        return self._replica.log

    def observe(self) -> Observation:
        """The observed variables as the objects and the files have them now."""
        state = self._log.producer_state_manager
        files: dict[Value, Value] = {o: self._open_in(state.snapshot(o)) for o in state.snapshots}
        return Observation(
            {
                **super().observe(),
                "segments": self._replica.bases,
                "snapshots": make_function(files),
            }
        )

    def _open_in(self, entries: Sequence[ProducerStateEntry]) -> Value:
        """By producer, where its open transaction begins."""
        first = {entry.producer_id: entry.current_txn_first_offset for entry in entries}
        offsets = {name: first.get(number) for name, number in self._ids.items()}
        return make_function({name: _NO_OFFSET if o is None else o for name, o in offsets.items()})

    # ---- Interruptible, DiesMidway ---------------------------------------------------------

    def concurrent(self, running: Action, between: Action) -> bool:
        """The process dies while it writes; what else meets is driven along TransactionalLog."""
        return running.name in _WRITES and between.name == "Kill"

    def midway(self, running: Action, between: Action) -> Sequence[Action]:
        """What a process leaves that dies before it has written anything, or some of it."""
        if running.name == "Produce":
            return between, Action("KillAmidAppend", (*running.args, _DATA, *between.args))
        if running.name == "EndTransaction":
            return between, Action("KillAmidAppend", (*running.args, *between.args))
        if running.name == "Truncate":
            cuts = ((*running.args, end, *between.args) for end in self._ends)
            return between, *(Action("KillAmidTruncation", args) for args in cuts)
        return (between,)


def _done(step: Callable[[], object]) -> Callable[[], None]:
    """A step whose answer is nobody's."""

    def run() -> None:
        step()

    return run
