"""Two threads, one stopped at its locks for the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from greenlet import getcurrent, greenlet

from conformance.systems.protocol import ActionRefused
from conformance.systems.threads import InterruptibleThreads, StartedThreads, ThreadNeverStarted
from impl.deterministic_scheduler import DeadlockError
from impl.errors import NotLeaderOrFollowerException


class Desk:
    """Two locks and a record of who did what."""

    def __init__(self) -> None:
        self.threads = InterruptibleThreads()
        self.a, self.b = self.threads.lock("a"), self.threads.lock("b")
        self.seen: list[str] = []

    def sections(self, name: str) -> Callable[[], None]:
        """One thing under each lock, one after the other."""

        def run() -> None:
            for lock, letter in ((self.a, "a"), (self.b, "b")):
                with lock:
                    self.seen.append(name + letter)

        return run

    def nested(self, name: str, *, swapped: bool = False) -> Callable[[], None]:
        """One lock inside the other."""

        def run() -> None:
            outer, inner = (self.b, self.a) if swapped else (self.a, self.b)
            with outer:
                self.seen.append(f"{name} outer")
                with inner:
                    self.seen.append(f"{name} inner")

        return run


@pytest.mark.parametrize(
    ("point", "seen", "stood_at"),
    [
        (1, ["2a", "2b", "1a", "1b"], "lock a"),
        (2, ["1a", "2a", "2b", "1b"], "lock b"),
        (3, ["1a", "1b", "2a", "2b"], ""),
    ],
)
def test_one_stands_still_between_its_sections_for_the_other(
    point: int, seen: list[str], stood_at: str
) -> None:
    desk = Desk()
    assert desk.threads.interrupt(desk.sections("1"), point, desk.sections("2")) == stood_at
    assert desk.seen == seen


def test_who_waits_for_a_lock_lets_its_owner_go_on() -> None:
    desk = Desk()
    assert desk.threads.interrupt(desk.nested("1"), 2, desk.sections("2"))
    assert desk.seen == ["1 outer", "1 inner", "2a", "2b"]


def test_a_deadlock_is_told() -> None:
    desk = Desk()
    with pytest.raises(DeadlockError):
        desk.threads.interrupt(desk.nested("1"), 2, desk.nested("2", swapped=True))


def test_one_pair_after_the_other_is_interrupted() -> None:
    desk = Desk()
    for _ in range(2):
        assert desk.threads.interrupt(desk.sections("1"), 1, desk.sections("2"))
    assert len(desk.seen) == 8


@pytest.mark.parametrize("refusal", [ActionRefused("late"), NotLeaderOrFollowerException("late")])
def test_who_comes_too_late_is_refused(refusal: Exception) -> None:
    desk = Desk()

    def refused() -> None:
        raise refusal

    assert desk.threads.interrupt(desk.sections("1"), 1, refused)
    assert desk.seen == ["1a", "1b"]


def test_any_other_exception_is_the_broker_s() -> None:
    desk = Desk()

    def broken() -> None:
        raise AttributeError("state")

    with pytest.raises(AttributeError, match="state"):
        desk.threads.interrupt(desk.sections("1"), 1, broken)


def test_a_step_is_stopped_in_a_greenlet_that_it_runs_and_goes_on_there() -> None:
    """An application's thread may be a greenlet of its own, which a step lets go on."""
    desk = Desk()
    application = greenlet(desk.sections("1"))

    def go_on() -> None:
        application.parent = getcurrent()
        application.switch()
        desk.seen.append("1 waits")

    assert desk.threads.interrupt(go_on, 2, desk.sections("2")) == "lock b"
    assert desk.seen == ["1a", "2a", "2b", "1b", "1 waits"]


def test_a_thread_that_was_made_has_to_be_started() -> None:
    threads = StartedThreads()
    first = threads.thread("first", lambda: None)
    first.start()
    threads.demand_started()
    threads.thread("second", lambda: None)
    with pytest.raises(ThreadNeverStarted, match="second"):
        threads.demand_started()
