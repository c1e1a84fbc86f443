"""A runtime whose shard has timers: what specifications with spec/CoordinatorTimers.tla share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from conformance.systems.protocol import Observation
from conformance.systems.runtime.later import LaterWrites, ShardTimers
from conformance.systems.runtime.observation import RuntimeBroker, tenure_of
from conformance.systems.runtime.partition import PendingLoads, QueuedEvents, Replica
from conformance.systems.runtime.system import RuntimeSystem
from conformance.systems.shared.shard import STEPS_WITH_TIMERS
from conformance.tla import Value, make_function
from impl.coordinator.coordinator_runtime import CoordinatorRuntime
from impl.coordinator.coordinator_shard import ShardBuilder
from impl.coordinator.coordinator_timer import TimeoutTask


class TimersSystem(RuntimeSystem):
    """Brokers whose timers and their events wait for an action, too.

    `keys`: the key of each timer, by its name in the model. `deletion`: the action that takes
    DeleteTopic.
    """

    variables = (*RuntimeSystem.variables, "timers")

    def __init__(
        self, constants: Mapping[str, Value], keys: Mapping[str, str], deletion: str
    ) -> None:
        super().__init__(constants)
        self._keys = keys
        self._later: dict[str, LaterWrites] = {}
        for name, step in {**STEPS_WITH_TIMERS, deletion: "DeleteTopic"}.items():
            self._actions[name] = self._actions.pop(step)
        self._actions |= {
            "Fire": lambda b, key: self._later[b].fire(keys[key]),
            "RunTimeout": self._run_timeout,
            "RunLateTimeout": lambda b, key: self._later[b].run_timeout(keys[key], is_late=True),
        }

    @abstractmethod
    def _builder(self, later: LaterWrites) -> ShardBuilder:
        """Makes shards that have a broker's timers."""

    @abstractmethod
    def _set_for(self, timers: ShardTimers, task: TimeoutTask) -> int:
        """What a timer was set for (`of`)."""

    def _broker(self, name: str) -> RuntimeBroker:
        replica = Replica(self._shard.max_message_bytes)
        events, timers = QueuedEvents(), ShardTimers(lambda: len(self._answers))
        loads = PendingLoads(replica, lambda: tenure_of(broker))
        later = self._later[name] = LaterWrites(
            events, timers, self._clock, self._answer, lambda task: self._set_for(timers, task)
        )
        runtime = CoordinatorRuntime(
            self._builder(later), replica, loads, events, timers, self._clock
        )
        later.connect(runtime)
        broker = RuntimeBroker(replica, events, loads, timers, runtime, self._shard)
        return broker

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        later = self._later.items()
        waiting = {n for n, answer in enumerate(self._answers, 1) if answer == "none"}
        timers = make_function({name: of.timers(self._keys, waiting) for name, of in later})
        return Observation({**super().observe(), "timers": timers})

    def _run_timeout(self, name: str, key: str, result: str) -> None:
        self._begin_write(name, result)
        self._later[name].run_timeout(self._keys[key], is_late=False)

    def _begin_write(self, name: str, result: str) -> None:
        """The event that runs next writes; its number is its time."""
        broker = self._of(name)
        self._clock.sleep(1)
        self._answers.append("none")
        broker.replica.expect(result)
        broker.timer.current = self._clock.milliseconds()
