"""What a system needs is fetched once, with a line for each part; else in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.config import Settings
from conformance.errors import EnvironmentProblem
from conformance.events import Event, Progress, StageFinished, StageStarted, ignore
from conformance.stages import fetch as stage
from conformance.stages.fetch import fetch, fetched_meanwhile


class Factory:
    """Needs so many parts; or cannot be had."""

    def __init__(self, parts: tuple[str, ...], error: str = "") -> None:
        self.parts, self.error = parts, error

    def make_ready(self, tell: Callable[[str], None]) -> None:
        for part in self.parts:
            tell(part)
        if self.error:
            raise EnvironmentProblem(self.error)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], list[Event]]:
    """Fetches for this factory, and gives what was told of it."""

    def run(factory: object) -> list[Event]:
        events: list[Event] = []
        monkeypatch.setattr(stage, "load_factory", lambda _: factory)
        fetch(Settings(), events.append, "kafka-3.8.1")
        return events

    return run


@pytest.mark.parametrize("factory", [Factory(()), object()], ids=["all is there", "needs nothing"])
def test_nothing_is_told_where_nothing_is_fetched(
    factory: object, told: Callable[[object], list[Event]]
) -> None:
    assert told(factory) == []


def test_each_part_is_told_and_then_the_end(told: Callable[[object], list[Event]]) -> None:
    begun, first, second, ended = told(Factory(("1 of 2 jars fetched", "2 of 2 jars fetched")))

    assert begun == StageStarted("fetch", "kafka-3.8.1")
    assert first == Progress("fetch", 1, None, "1 of 2 jars fetched")
    assert second == Progress("fetch", 2, None, "2 of 2 jars fetched")
    assert isinstance(ended, StageFinished)
    assert (ended.stage, ended.verdict) == ("fetch", "pass")


def test_what_cannot_be_fetched_is_an_error_after_what_was_done_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = []
    monkeypatch.setattr(stage, "load_factory", lambda _: Factory((), "no network"))
    with (
        pytest.raises(EnvironmentProblem, match="no network"),
        fetched_meanwhile(Settings(), ignore, "kafka-3.8.1"),
    ):
        done.append("checked")
    assert done == ["checked"]
