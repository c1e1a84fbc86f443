"""Two threads of a broker, one stopped at its locks for the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.systems.protocol import ActionRefused
from conformance.systems.replication.threads import (
    InterruptibleThreads,
    concurrent,
    in_parts,
)
from conformance.tla.values import Action
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
    ("point", "seen", "reached"),
    [
        (1, ["2a", "2b", "1a", "1b"], True),
        (2, ["1a", "2a", "2b", "1b"], True),
        (3, ["1a", "1b", "2a", "2b"], False),
    ],
)
def test_one_stands_still_between_its_sections_for_the_other(
    point: int, seen: list[str], reached: bool
) -> None:
    desk = Desk()
    assert desk.threads.interrupt(desk.sections("1"), point, desk.sections("2")) is reached
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


def action(text: str) -> Action:
    name, *args = text.split()
    return Action(name, tuple(args))


@pytest.mark.parametrize(
    ("running", "between", "expected"),
    [
        ("ProcessFetchResponse b1", "BecomeLeader b1 2", True),
        ("BecomeLeader b1 2", "ProcessFetchResponse b1", True),
        ("HandleFetch b1 b2", "AppendAsLeader b1 0", True),
        ("HandleFetch b1 b2", "HandleFetch b1 b3", True),
        # Of two brokers.
        ("ProcessFetchResponse b1", "BecomeLeader b2 2", False),
        ("HandleFetch b2 b1", "ProcessFetchResponse b1", False),
        # A broker has one fetcher thread for its one partition.
        ("SendFetch b1", "ProcessEpochResponse b1", False),
        ("AppendAsLeader b1 0", "AppendAsLeader b1 1", False),
        # Nobody's thread, or several brokers' at once.
        ("ElectLeader 2 b1", "BecomeLeader b1 2", False),
        ("BecomeLeader b1 2", "Crash b1 0 0", False),
        ("FetchRoundTrip b1 b2", "AppendAsLeader b1 0", False),
        ("ExpandIsr b1 b2", "HandleFetch b1 b2", False),
    ],
)
def test_which_actions_are_those_of_two_threads(running: str, between: str, expected: bool) -> None:
    assert concurrent(action(running), action(between), restarts=False) is expected


@pytest.mark.parametrize("between", ["HandleFetch b1 b2", "HandleEpochRequest b1 b2"])
def test_where_brokers_restart_no_question_interrupts_an_election(between: str) -> None:
    election, question = action("BecomeFollower b1 2"), action(between)
    assert concurrent(election, question, restarts=False)
    assert not concurrent(election, question, restarts=True)
    assert concurrent(question, election, restarts=True)


@pytest.mark.parametrize(
    ("running", "between", "expected"),
    [
        ("HandleFetch b1 b2", "BecomeFollower b1 2", True),
        ("ShrinkIsr b1 b2", "HandleFetch b1 b2", True),
        ("HandleFetch b1 b2", "AppendAsLeader b1 0", False),
        ("ProcessFetchResponse b1", "BecomeFollower b1 2", False),
    ],
)
def test_a_fetch_is_handled_in_parts(running: str, between: str, expected: bool) -> None:
    assert in_parts(action(running), action(between)) is expected
