"""Which actions are those of two threads of one broker."""

from __future__ import annotations

import pytest
from greenlet import greenlet

from conformance.systems.replication.broker import Admission
from conformance.systems.shared.replication.threads import concurrent, in_parts
from conformance.tla import Action


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
        ("ExpandIsr b1 b2", "HandleFetch b1 b2", True),
        ("SubmitExpandIsr b1 b2", "BecomeFollower b1 2", True),
        ("ElectLeader 2 b1", "BecomeLeader b1 2", False),
        ("BecomeLeader b1 2", "Crash b1 0 0", False),
        ("FetchRoundTrip b1 b2", "AppendAsLeader b1 0", False),
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


def test_who_may_join_the_isr_is_seen_by_the_thread_that_lets_it() -> None:
    """A fetch that another thread handles amid an expansion proposes nobody."""
    admission = Admission(lambda _broker: 7)
    seen = []

    def look() -> None:
        seen.append((admission.is_broker_fenced(2), admission.get_alive_broker_epoch(2)))

    with admission.admitted(2):
        look()
        greenlet(look).switch()
    look()
    assert seen == [(False, 7), (True, None), (True, None)]
