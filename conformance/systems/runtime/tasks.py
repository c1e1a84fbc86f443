"""The system under test with timers and an executor: spec/CoordinatorTasks.tla."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.protocol import Observation
from conformance.systems.runtime.later import LaterWrites, ShardTimers
from conformance.systems.runtime.store import KEYS, WIDTH, StoredSessions
from conformance.systems.runtime.system import ShardMaker
from conformance.systems.runtime.timers import TimersSystem
from conformance.tla import Value, make_function
from impl.coordinator.coordinator_shard import ShardBuilder
from impl.coordinator.coordinator_timer import TimeoutTask
from impl.coordinator.session_shard import Expiry, SessionShard


class TasksSystem(TimersSystem):
    """Brokers of a store, whose tasks wait for an action as its timers do."""

    variables = (*TimersSystem.variables, "executor")

    def __init__(self, constants: Mapping[str, Value]) -> None:
        super().__init__(constants, {key: key for key in KEYS}, deletion="Delete")
        self._has_sessions = constants["Sessions"] is True
        self._actions |= {
            "RunTask": lambda b: self._later[b].run_tasks(),
            "CompleteTask": self._complete_task,
            "CompleteLateTask": lambda b: self._later[b].complete_task(is_late=True),
        }

    @staticmethod
    def _shard_maker(_constants: Mapping[str, Value], max_batch: int) -> ShardMaker:
        return lambda _clock: StoredSessions(max_batch)

    def _builder(self, later: LaterWrites) -> ShardBuilder:
        return lambda registry: SessionShard(
            registry, later.timer, later.tasks, has_sessions=self._has_sessions, padding=WIDTH
        )

    def _set_for(self, _timers: ShardTimers, task: TimeoutTask) -> int:
        """The value that the timer deletes."""
        assert isinstance(task.operation, Expiry), "the shard's timers are of one kind"
        return int(task.operation.value)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        executors = make_function({name: of.executor() for name, of in self._later.items()})
        return Observation({**super().observe(), "executor": executors})

    def _complete_task(self, name: str, result: str) -> None:
        self._begin_write(name, result)
        self._later[name].complete_task(is_late=False)
