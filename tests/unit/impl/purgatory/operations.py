"""Operations whose event the test decides, and purgatories in each of the three worlds."""

from __future__ import annotations

from impl.clock import Clock, MockClock
from impl.concurrency import Concurrency, NoConcurrency, RealConcurrency
from impl.purgatory.delayed_operation import DelayedOperation
from impl.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from impl.purgatory.system_timer import SystemTimer
from impl.scheduler import ImmediateScheduler


class MockOperation(DelayedOperation):
    """Completes once `completable` is set; remembers what happened to it."""

    def __init__(
        self, delay_ms: int = 100_000, concurrency: Concurrency | None = None, name: str = "op"
    ) -> None:
        super().__init__(delay_ms, concurrency or NoConcurrency(), name=name)
        self.name = name
        self.completable = False
        self.happened: list[str] = []

    def try_complete(self) -> bool:
        return self.completable and self.force_complete()

    def on_complete(self) -> None:
        self.happened.append("completed")

    def on_expiration(self) -> None:
        self.happened.append("expired")


def make_purgatory(
    clock: Clock | None = None,
    concurrency: Concurrency | None = None,
    *,
    purge_interval: int = 1000,
    reaper_enabled: bool = False,
) -> DelayedOperationPurgatory[MockOperation]:
    """A purgatory over a system timer; with real threads its executor has one of its own."""
    world = concurrency or NoConcurrency()
    executor = None if isinstance(world, RealConcurrency) else ImmediateScheduler()
    timer = SystemTimer("test", clock or MockClock(), world, executor=executor)
    return DelayedOperationPurgatory(
        "test", timer, world, purge_interval=purge_interval, reaper_enabled=reaper_enabled
    )
