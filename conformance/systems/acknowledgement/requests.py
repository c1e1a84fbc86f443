"""One broker's waiting requests, whose looks and time-outs come when an action says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from greenlet import getcurrent, greenlet

from conformance.systems.protocol import ActionRefused
from impl.clock import Clock
from impl.concurrency import Concurrency
from impl.delayed.delayed_fetch import FetchCallback, FetchWait
from impl.delayed.delayed_produce import ProduceCallback
from impl.delayed.waiting_requests import WaitingRequests
from impl.log_types import FetchIsolation
from impl.metrics import MetricsRegistry
from impl.network import FetchRequest, FetchResponse
from impl.partition import FetchParams
from impl.purgatory.timer_task import TimerTask
from impl.records import MemoryRecords
from impl.replica_manager import ReplicaManager
from impl.types import UNKNOWN_OFFSET, ZERO_UUID, FetchPartitionRequest, TopicPartition

TIMEOUT_MS = 30_000
MAX_WAIT_MS = 500
"""Of a consumer's fetch, as of a follower's."""

NOBODY = "None"
HANDLER = "Handler"
STATE_CHANGE = "StateChange"

_CONSUMER = -1
_ONE_BATCH = 1
_FEW_SHARDS = 1
"""The lists' number is a matter of speed; a broker is made for every test."""


class DeferredActions:
    """What is to be looked at, until somebody is let look.

    In a broker the thread that queued an action does it once it holds no lock; for the spec that
    is a step of its own. `by` says whose thread that is.
    """

    def __init__(self) -> None:
        self._actions: deque[Callable[[], object]] = deque()
        self.by = NOBODY

    def add(self, action: Callable[[], object], /) -> None:
        """A request handler will do it."""
        self.add_by(HANDLER, action)

    def add_by(self, who: str, action: Callable[[], object]) -> None:
        """A look by the thread of a state change comes for all that wait, so it stays."""
        self._actions.append(action)
        self.by = self.by if self.by == STATE_CHANGE else who

    def try_complete_actions(self) -> None:
        """The moment at which a handler would look; here it is held back."""

    def forget(self) -> None:
        """Nobody is about to look."""
        self._actions.clear()
        self.by = NOBODY

    def let_look(self) -> None:
        """Do what is queued now."""
        if not self._actions:
            raise ActionRefused("nobody is about to look at what waits here")
        self.by = NOBODY
        for _ in range(len(self._actions)):
            self._actions.popleft()()


class _Entry:
    def __init__(self, timer: ManualTimer, task: TimerTask) -> None:
        self._timer = timer
        self._task = task

    def remove(self) -> None:
        self._timer.waiting.pop(self._task, None)


class ManualTimer:
    """A timer in which each task expires when it is told to: the spec knows no time."""

    def __init__(self) -> None:
        self.waiting: dict[TimerTask, None] = {}
        self._added: dict[greenlet, TimerTask] = {}

    def add(self, task: TimerTask, /) -> None:
        """See `Timer.add`."""
        self.waiting[task] = None
        self._added[getcurrent()] = task
        task.set_timer_task_entry(_Entry(self, task))

    def advance_clock(self, _timeout_ms: int, /) -> bool:
        """See `Timer.advance_clock`: nothing is due by itself."""
        return False

    @property
    def size(self) -> int:
        """See `Timer.size`."""
        return len(self.waiting)

    def shutdown(self) -> None:
        """See `Timer.shutdown`."""
        self.waiting.clear()

    def added(self, request: Callable[[], None]) -> TimerTask | None:
        """Make the request; what this thread adds to the timer by it."""
        self._added.pop(getcurrent(), None)
        request()
        return self._added.pop(getcurrent(), None)


class BrokerRequests:
    """`impl.delayed.WaitingRequests` of one broker's process, stepped by actions."""

    def __init__(self, broker_id: int, clock: Clock, concurrency: Concurrency) -> None:
        self.actions = DeferredActions()
        self._changes_state: greenlet | None = None
        self.parked: dict[int, TimerTask | None] = {}
        self._timers: dict[str, ManualTimer] = {}
        self._waiting = WaitingRequests(
            clock,
            concurrency,
            MetricsRegistry(clock),
            broker_id=broker_id,
            timers=self._timer,
            actions=self.actions,
            shards=_FEW_SHARDS,
        )

    def _timer(self, name: str) -> ManualTimer:
        return self._timers.setdefault(name, ManualTimer())

    @contextmanager
    def changing_state(self) -> Iterator[None]:
        """What this thread tells of meanwhile it tells as that of a LeaderAndIsr request."""
        self._changes_state = getcurrent()
        try:
            yield
        finally:
            self._changes_state = None

    # ---- RequestsAtLeader ------------------------------------------------------------------

    def wake(self, topic_partition: TopicPartition, /) -> None:
        """Look later, but before the broker handles another LeaderAndIsr if this is one."""
        self.actions.add_by(
            STATE_CHANGE if self._changes_state is getcurrent() else HANDLER,
            lambda: self._waiting.try_complete_delayed_requests(topic_partition),
        )

    def fetch(
        self,
        replicas: ReplicaManager,
        request: FetchRequest,
        respond: Callable[[FetchResponse], None],
        /,
    ) -> None:
        """A follower's fetch; each follower has one."""
        self.parked[request.replica_id] = self._timers["Fetch"].added(
            lambda: self._waiting.handle_fetch(replicas, request, respond)
        )

    # ---- clients ---------------------------------------------------------------------------

    def produce(
        self,
        replicas: ReplicaManager,
        topic_partition: TopicPartition,
        records: MemoryRecords,
        required_acks: int,
        callback: ProduceCallback,
    ) -> TimerTask | None:
        """Send records; the waiting operation, or None if it was answered at once."""
        entries = {topic_partition: records}
        return self._timers["Produce"].added(
            lambda: self._waiting.append_records(
                replicas, TIMEOUT_MS, required_acks, entries, callback
            )
        )

    def fetch_as_consumer(
        self,
        replicas: ReplicaManager,
        topic_partition: TopicPartition,
        offset: int,
        callback: FetchCallback,
    ) -> TimerTask | None:
        """Read below the high watermark; the waiting operation, or None if answered at once."""
        params = FetchParams(_CONSUMER, isolation=FetchIsolation.HIGH_WATERMARK)
        request = FetchPartitionRequest(ZERO_UUID, offset, UNKNOWN_OFFSET, _ONE_BATCH, None)
        wait = FetchWait(MAX_WAIT_MS, min_bytes=1, max_bytes=_ONE_BATCH)
        return self._timers["Fetch"].added(
            lambda: self._waiting.fetch_messages(
                replicas, params, wait, {topic_partition: request}, callback
            )
        )

    def expire(self, task: TimerTask | None) -> None:
        """Let the time of one waiting request pass; refused if no timer holds it."""
        for timer in self._timers.values():
            if task is not None and timer.waiting.pop(task, self) is None:
                task.run()
                return
        raise ActionRefused("the request that is to expire is in no timer")
