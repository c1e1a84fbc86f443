"""What a shard does later: its timer and its executor, of which an action lets each step happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from conformance.systems.protocol import ActionRefused
from conformance.systems.runtime.observation import WriteNumber
from conformance.systems.runtime.partition import PendingTimeouts, QueuedEvents
from conformance.systems.runtime.store import TASK_KEY
from conformance.tla import Fn, Value, make_function
from impl.clock import Clock
from impl.coordinator.coordinator_executor import CoordinatorExecutorImpl
from impl.coordinator.coordinator_runtime import Completion, CoordinatorRuntime, WriteOperation
from impl.coordinator.coordinator_shard import CoordinatorResult, CoordinatorShard
from impl.coordinator.coordinator_timer import (
    EventBasedCoordinatorTimer,
    TimeoutOperation,
    TimeoutTask,
)
from impl.coordinator.session_shard import Echo

_NO_TIMER = Fn({"kind": "NONE", "of": 0})
_NO_TASK = Fn({"kind": "NONE", "input": 0})


class ShardTimers(PendingTimeouts):
    """Write time-outs, and the timers of a shard."""

    def __init__(self, written: Callable[[], int]) -> None:
        super().__init__()
        self.waiting: list[TimeoutTask] = []
        self._written = written
        self._set_after: dict[TimeoutOperation, int] = {}

    def set_after(self, task: TimeoutTask) -> int:
        """How many writes there were when the timer was set; a retry is as old as its timer."""
        return self._set_after[task.operation]

    def add(self, delay_ms: int, task: Callable[[], None]) -> None:
        """See `CoordinatorTimer.add`."""
        if isinstance(task, TimeoutTask):
            self.waiting.append(task)
            self._set_after.setdefault(task.operation, self._written())
        else:
            super().add(delay_ms, task)


@dataclass(slots=True, eq=False)
class LaterEvent:
    """A queued event, whose it is, and the number of its write once its operation has run."""

    name: str
    source: TimeoutTask | Echo
    number: int = 0


class LaterWrites:
    """A broker's timer and executor, and the events that they have queued."""

    def __init__(
        self,
        events: QueuedEvents,
        timers: ShardTimers,
        clock: Clock,
        answer: Callable[[int, Exception | None], None],
        of: Callable[[TimeoutTask], int],
    ) -> None:
        """`of`: what a timer was set for."""
        self._events = events
        self._timers = timers
        self._clock = clock
        self._answer = answer
        self._of = of
        self._runtime: CoordinatorRuntime | None = None
        self.timer = EventBasedCoordinatorTimer(timers, self._schedule_write)
        self.tasks = CoordinatorExecutorImpl(self, self._schedule_write)
        self._pool: deque[tuple[Echo, Callable[[], None]]] = deque()
        self._queued: list[LaterEvent] = []
        self._ran: list[LaterEvent] = []
        self._source: TimeoutTask | Echo | None = None
        self._serial = 0

    def connect(self, runtime: CoordinatorRuntime) -> None:
        """The runtime that gets the writes."""
        self._runtime = runtime

    def submit(self, task: Callable[[], None]) -> None:
        """See `ExecutorService.submit`: the task waits for its action."""
        self._pool.append((self._scheduled(), task))

    def _scheduled(self) -> Echo:
        task = self.tasks.scheduled[TASK_KEY]
        assert isinstance(task, Echo), "the shard's tasks are of one kind"
        return task

    def _schedule_write(self, name: str, operation: WriteOperation, done: Completion) -> None:
        """Queue an event that can be named, and whose write gets the number of its time."""
        assert self._runtime is not None, "it is connected"
        assert self._source is not None, "a step has run a timer or a task"
        self._serial += 1
        event = LaterEvent(f"{name} {self._serial}", self._source)
        self._queued.append(event)

        def run(shard: CoordinatorShard) -> CoordinatorResult:
            result = operation(shard)
            event.number = self._clock.milliseconds()
            self._ran.append(event)
            return replace(result, response=WriteNumber(event.number))

        def end(error: Exception | None, response: object) -> None:
            if event.number:
                self._answer(event.number, error)
            done(error, response)

        self._runtime.schedule_write_operation(event.name, run, end)

    # ---- steps -------------------------------------------------------------------------------

    def fire(self, key: str) -> None:
        """The time of the key's timer is over. Raises ActionRefused if none waits."""
        task = self.timer.running.get(key)
        if task is None or task not in self._timers.waiting:
            raise ActionRefused(f"no timer {key} waits")
        self._timers.waiting.remove(task)
        self._source = task
        task()

    def run_tasks(self) -> None:
        """The pool runs what was submitted. Raises ActionRefused if that is nothing."""
        if not self._pool:
            raise ActionRefused("no task was submitted")
        while self._pool:
            self._source, task = self._pool.popleft()
            task()

    def run_timeout(self, key: str, *, is_late: bool) -> None:
        """Run the event of the key's timer, or the oldest of a former timer."""
        self._run(
            lambda event: (
                isinstance(event.source, TimeoutTask)
                and event.source.key == key
                and self._is_late(event) is is_late
            )
        )

    def complete_task(self, *, is_late: bool) -> None:
        """Run the event with the result of the task, or the oldest of a former task."""
        self._run(lambda event: isinstance(event.source, Echo) and self._is_late(event) is is_late)

    def _run(self, is_meant: Callable[[LaterEvent], bool]) -> None:
        event = next(filter(is_meant, self._queued), None)
        if event is None:
            raise ActionRefused("no such event is queued")
        self._queued.remove(event)
        self._events.run(event.name)

    # ---- what is seen ------------------------------------------------------------------------

    def _is_late(self, event: LaterEvent) -> bool:
        if isinstance(event.source, TimeoutTask):
            return self.timer.running.get(event.source.key) is not event.source
        return self.tasks.scheduled.get(TASK_KEY) is not event.source

    def timers(self, keys: Mapping[str, str], waiting: Collection[int]) -> Value:
        """Timers by name, late events, and the writes of timers among those that wait.

        `keys`: the key of each timer, by its name in the model.
        """
        running = self.timer.running
        names = {key: name for name, key in keys.items()}
        late = [event.source for event in self._queued if self._is_late(event)]
        of_timers = [names.get(task.key) for task in late if isinstance(task, TimeoutTask)]
        return Fn(
            {
                "running": make_function(
                    {name: self._timer_of(running.get(key)) for name, key in keys.items()}
                ),
                "late": make_function({name: of_timers.count(name) for name in keys}),
                "expiries": frozenset(
                    Fn(
                        {
                            "write": event.number,
                            "key": names[event.source.key],
                            "of": self._of(event.source),
                        }
                    )
                    for event in self._ran
                    if isinstance(event.source, TimeoutTask) and event.number in waiting
                ),
            }
        )

    def _timer_of(self, task: TimeoutTask | None) -> Value:
        if task is None:
            return _NO_TIMER
        return Fn({"kind": "FIRED" if self._is_queued(task) else "WAITS", "of": self._of(task)})

    def _is_queued(self, source: TimeoutTask | Echo) -> bool:
        return any(event.source is source for event in self._queued)

    def executor(self) -> Value:
        """The task, and late events."""
        late = [event for event in self._queued if self._is_late(event)]
        return Fn(
            {
                "task": self._task(),
                "late": sum(isinstance(event.source, Echo) for event in late),
            }
        )

    def _task(self) -> Value:
        if TASK_KEY not in self.tasks.scheduled:
            return _NO_TASK
        task = self._scheduled()
        kind = "DONE" if self._is_queued(task) else "SUBMITTED"
        return Fn({"kind": kind, "input": int(task.value)})
