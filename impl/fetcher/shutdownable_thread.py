"""A thread that repeats one step until it is told to stop (ShutdownableThread)."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod

from ..concurrency import Concurrency
from ..errors import IllegalStateException

_log = logging.getLogger(__name__)


class ShutdownableThread(ABC):
    """Calls `do_work` until shutdown; an exception that escapes it ends the thread."""

    def __init__(self, name: str, concurrency: Concurrency) -> None:
        self.name = name
        self._shutdown_initiated = concurrency.event(f"{name} shutdown initiated")
        self._shutdown_complete = concurrency.event(f"{name} shutdown complete")
        self._thread = concurrency.thread(name, self.run)
        self._started = False

    @abstractmethod
    def do_work(self) -> None:
        """One step, from taking up work to its end."""

    def start(self) -> None:
        """Start the thread of control."""
        self._started = True
        self._thread.start()

    def run(self) -> None:
        """The thread's body."""
        try:
            while self.is_running:
                self.do_work()
        except Exception as error:  # noqa: BLE001 - ends the thread only: DeadThreadCount shows it
            if self.is_running:
                _log.error("[%s]: Error due to", self.name, exc_info=error)
        finally:
            self._shutdown_complete.set()

    @property
    def is_running(self) -> bool:
        """Whether nobody has asked the thread to stop."""
        return not self._shutdown_initiated.is_set()

    @property
    def is_shutdown_complete(self) -> bool:
        """Whether the body has ended."""
        return self._shutdown_complete.is_set()

    @property
    def is_thread_failed(self) -> bool:
        """Whether the body ended although nobody asked it to."""
        return self.is_shutdown_complete and self.is_running

    def initiate_shutdown(self) -> bool:
        """Ask the thread to stop after its current step; True for the first caller."""
        first = self.is_running
        self._shutdown_initiated.set()
        return first

    def await_shutdown(self) -> None:
        """Wait for the current step. Raises IllegalStateException if nobody initiated shutdown."""
        if self.is_running:
            raise IllegalStateException("initiate_shutdown() was not called before this")
        if self._started:
            self._shutdown_complete.wait()

    def shutdown(self) -> None:
        """Stop and wait; may be called again."""
        self.initiate_shutdown()
        self.await_shutdown()
