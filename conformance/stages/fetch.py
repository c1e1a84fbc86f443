"""Stage `fetch`: what a system needs that is not on this machine yet; silent where it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from conformance.config import Settings
from conformance.events import Emit, Progress, StageFinished, StageStarted, Work
from conformance.registry import factory_path, load_factory
from conformance.systems.capabilities import FactoryCapabilities
from conformance.verdict import Verdict

STAGE = "fetch"


def fetch(settings: Settings, emit: Emit, system: str) -> None:
    """Let the system's factory fetch and compile what it has to, and tell of it.

    UserError or EnvironmentProblem if it cannot.
    """
    made_by = load_factory(factory_path(system, settings.systems))
    preparing = FactoryCapabilities(made_by).preparing
    if preparing is None:
        return
    telling = _LazyStage(emit, system)
    preparing.make_ready(telling.line)
    telling.finish()


@contextmanager
def fetched_meanwhile(settings: Settings, emit: Emit, system: str) -> Iterator[None]:
    """Fetch beside what the body does; an error is raised at the body's end."""
    with ThreadPoolExecutor(1, thread_name_prefix=STAGE) as aside:
        fetching = aside.submit(fetch, settings, emit, system)
        yield
        fetching.result()


class _LazyStage:
    """A stage that begins with the first line that there is to tell."""

    def __init__(self, emit: Emit, system: str) -> None:
        self._emit, self._system = emit, system
        self._lines = 0
        self._started = time.monotonic()

    def line(self, line: str) -> None:
        if not self._lines:
            self._emit(StageStarted(STAGE, self._system))
        self._lines += 1
        self._emit(Progress(STAGE, self._lines, None, line))

    def finish(self) -> None:
        if self._lines:
            now = time.monotonic()
            self._emit(
                StageFinished(
                    STAGE,
                    self._system,
                    Verdict.PASS,
                    now - self._started,
                    "in the cache now",
                    checks=False,
                    work=(Work("download", self._started, now),),  # beside the checks
                )
            )
