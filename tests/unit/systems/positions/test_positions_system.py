"""The adapter of a consumer's commits."""

from __future__ import annotations

import pytest

from conformance.systems.positions import CommitsSystem, create
from conformance.systems.protocol import ActionRefused, Interruptible, Snapshots, SystemUnderTest
from conformance.tla import Action, Fn, Value

KNOWN = "Poll, AnswerLookup TRUE"
JOINED = f"Subscribe, {KNOWN}, Poll, AnswerJoin, Poll, Begin, Consume"


def after(path: str, *, auto_commit: bool = True) -> CommitsSystem:
    """A system that has taken these steps."""

    def value(word: str) -> Value:
        return {"TRUE": True, "FALSE": False}.get(word) or (int(word) if word.isdigit() else word)

    system = create({"AutoCommit": auto_commit})
    system.reset({})
    for step in path.split(", "):
        name, *args = step.split()
        system.apply(Action(name, tuple(map(value, args))))
    return system


def test_it_offers_what_the_harness_can_use() -> None:
    for capability in (SystemUnderTest, Interruptible, Snapshots):
        assert isinstance(create({"AutoCommit": True}), capability)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param(f"Subscribe, {KNOWN}", {"coordinator": "known", "lookup": "done"}, id="known"),
        pytest.param(
            JOINED, {"state": "STABLE", "generation": 1, "position": 1, "owned": True}, id="joined"
        ),
        pytest.param(
            f"{JOINED}, HearRebalance, Poll",
            {"pendingRevocation": True, "preJoin": "sent", "owned": True},
            id="commits-before-it-joins",
        ),
        pytest.param(
            f"{JOINED}, HearRebalance, Poll, AnswerCommit NONE, Poll",
            {"callback": "revoked", "position": -1, "joining": "sent"},
            id="revoked",
        ),
        pytest.param(f"{JOINED}, HearEnd, Poll", {"callback": "lost"}, id="lost"),
        pytest.param(
            f"{JOINED}, Close",
            {"mode": "group", "call": Fn({"type": "close", "waits": "answer", "offset": 1})},
            id="closes",
        ),
        pytest.param(
            f"{JOINED}, Close, AnswerCommit NONE",
            {"mode": "closed", "callback": "revoked", "result": "NONE"},
            id="closed",
        ),
        pytest.param(
            "Assign, Begin, CallCommitSync, AnswerLookup TRUE, Wakeup",
            {"result": "WAKEUP", "wakeup": False},
            id="woken",
        ),
    ],
)
def test_steps_show_in_the_variables(path: str, shown: dict[str, Value]) -> None:
    observation = after(path).observe()
    assert {name: observation[name] for name in shown} == shown


@pytest.mark.parametrize("step", ["AnswerCommit NONE", "AnswerJoin", "OverrunPollInterval"])
def test_what_nobody_asked_for_is_refused(step: str) -> None:
    with pytest.raises(ActionRefused):
        after(f"Subscribe, {step}")
