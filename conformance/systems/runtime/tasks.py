"""The system under test with timers and an executor: spec/CoordinatorTasks.tla."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.protocol import Observation
from conformance.systems.runtime.later import LaterWrites, ShardTimers
from conformance.systems.runtime.observation import RuntimeBroker, tenure_of
from conformance.systems.runtime.partition import PendingLoads, QueuedEvents, Replica
from conformance.systems.runtime.store import KEYS, StoredSessions
from conformance.systems.runtime.system import RuntimeSystem, ShardMaker
from conformance.tla import Value, make_function
from impl.coordinator.coordinator_runtime import CoordinatorRuntime

_STEPS_OF_RUNTIME: Mapping[str, str] = {
    "Operate": "Write",
    "Flush": "FlushBatch",
    "OperationTimeOut": "TimeOut",
    "RaiseWatermark": "AdvanceWatermark",
    "Fetch": "Replicate",
    "TakeWatermark": "ApplyWatermark",
    "BecomeLeader": "Elect",
    "Delete": "DeleteTopic",
    "HandleRole": "RunRole",
    "EndLoad": "CompleteLoad",
}
"""By action, the action of CoordinatorRuntime.tla that it takes."""


class TasksSystem(RuntimeSystem):
    """Brokers whose timers, tasks and their events wait for an action, too."""

    variables = (*RuntimeSystem.variables, "timers", "executor")

    def __init__(self, constants: Mapping[str, Value]) -> None:
        super().__init__(constants)
        self._has_sessions = constants["Sessions"] is True
        self._later: dict[str, LaterWrites] = {}
        for name, step in _STEPS_OF_RUNTIME.items():
            self._actions[name] = self._actions.pop(step)
        self._actions |= {
            "Fire": lambda b, key: self._later[b].fire(key),
            "RunTimeout": self._run_timeout,
            "RunLateTimeout": lambda b, key: self._later[b].run_timeout(key, is_late=True),
            "RunTask": lambda b: self._later[b].run_tasks(),
            "CompleteTask": self._complete_task,
            "CompleteLateTask": lambda b: self._later[b].complete_task(is_late=True),
        }

    @staticmethod
    def _shard_maker(_constants: Mapping[str, Value], max_batch: int) -> ShardMaker:
        return lambda _clock: StoredSessions(max_batch)

    def _broker(self, name: str) -> RuntimeBroker:
        replica = Replica(self._shard.max_message_bytes)
        events, timers = QueuedEvents(), ShardTimers()
        loads = PendingLoads(replica, lambda: tenure_of(broker))
        later = self._later[name] = LaterWrites(
            events, timers, self._clock, self._answer, has_sessions=self._has_sessions
        )
        runtime = CoordinatorRuntime(later.shard, replica, loads, events, timers, self._clock)
        later.connect(runtime)
        broker = RuntimeBroker(replica, events, loads, timers, runtime, self._shard)
        return broker

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        later = self._later.items()
        waiting = {n for n, answer in enumerate(self._answers, 1) if answer == "none"}
        return Observation(
            {
                **super().observe(),
                "timers": make_function({name: of.timers(KEYS, waiting) for name, of in later}),
                "executor": make_function({name: of.executor() for name, of in later}),
            }
        )

    # ---- writes ------------------------------------------------------------------------------

    def _run_timeout(self, name: str, key: str, result: str) -> None:
        self._begin_write(name, result)
        self._later[name].run_timeout(key, is_late=False)

    def _complete_task(self, name: str, result: str) -> None:
        self._begin_write(name, result)
        self._later[name].complete_task(is_late=False)

    def _begin_write(self, name: str, result: str) -> None:
        """The event that runs next writes; its number is its time."""
        broker = self._of(name)
        self._clock.sleep(1)
        self._answers.append("none")
        broker.replica.expect(result)
        broker.timer.current = self._clock.milliseconds()
