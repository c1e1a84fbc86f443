"""A store whose values are sessions: each has a timer that deletes it, and a task may look at one.

The smallest shard that needs a timer and an executor, as those of groups do.
"""

from __future__ import annotations

from dataclasses import dataclass

from .coordinator_executor import CoordinatorExecutor
from .coordinator_shard import CoordinatorRecord, CoordinatorResult
from .coordinator_timer import KeyedTimer
from .store_shard import StoreShard
from .timeline import SnapshotRegistry

SESSION_TIMEOUT_MS = 45_000
"""group.consumer.session.timeout.ms"""


@dataclass(frozen=True, slots=True)
class Expiry:
    """Deletes what the key has when its timer runs out; `value` is what the timer was set for."""

    shard: SessionShard
    key: bytes
    value: bytes

    def __call__(self) -> CoordinatorResult:
        """The timer's operation."""
        return self.shard.expire(self.key)


@dataclass(frozen=True, slots=True)
class Echo:
    """A task: it gives its input back."""

    value: bytes

    def __call__(self) -> bytes:
        """Run by a thread that sees nothing of the shard."""
        return self.value


class SessionShard(StoreShard):
    """`has_sessions`: values have timers. Keys of tombstones are padded by `padding` bytes: where
    that is a value's length, a batch is full with so many records, whatever they are."""

    def __init__(
        self,
        registry: SnapshotRegistry,
        timer: KeyedTimer,
        executor: CoordinatorExecutor,
        *,
        has_sessions: bool,
        padding: int = 0,
    ) -> None:
        super().__init__(registry)
        self._timer = timer
        self._executor = executor
        self._has_sessions = has_sessions
        self._padding = b" " * padding

    def put(self, values: dict[bytes, bytes | None]) -> CoordinatorResult:
        """See `StoreShard.put`. A value starts its key's timer, None stops timer and task."""
        for key, value in values.items():
            if value is None:
                self._timer.cancel(key.decode())
                self._executor.cancel(key.decode())
            else:
                self._start(key, value)
        return self._records(values)

    def _records(self, values: dict[bytes, bytes | None]) -> CoordinatorResult:
        keys = {key: self._padding + key if value is None else key for key, value in values.items()}
        return super().put({keys[key]: value for key, value in values.items()})

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, record: CoordinatorRecord
    ) -> None:
        """See `CoordinatorShard.replay`."""
        own = CoordinatorRecord(record.key.strip(), record.value)
        super().replay(offset, producer_id, producer_epoch, own)

    def _start(self, key: bytes, value: bytes) -> None:
        if self._has_sessions:
            self._timer.schedule(key.decode(), SESSION_TIMEOUT_MS, Expiry(self, key, value))

    def expire(self, key: bytes) -> CoordinatorResult:
        """Delete the value, if there is one still."""
        return self._records({key: None}) if key in self.entries() else CoordinatorResult()

    def offload(self, key: bytes, target: bytes) -> CoordinatorResult:
        """Give the key's value to a task whose result becomes the target's value."""
        value = self.entries().get(key)
        if value is not None:
            self._executor.schedule(
                key.decode(), Echo(value), lambda result, _error: self.put({target: result})
            )
        return CoordinatorResult()

    def on_loaded(self) -> None:
        """See `CoordinatorShard.on_loaded`: each value gets its whole time."""
        for key, value in self.entries().items():
            self._start(key, value)

    def on_unloaded(self) -> None:
        """See `CoordinatorShard.on_unloaded`."""
        self._timer.cancel_all()
        self._executor.cancel_all()
