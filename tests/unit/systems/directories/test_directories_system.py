"""The adapter of moves between log directories, and what it needs of impl."""

from __future__ import annotations

import pytest

from conformance.systems.directories import DirectoriesSystem, create
from conformance.systems.protocol import (
    ActionRefused,
    Interruptible,
    Offers,
    Snapshots,
    SystemUnderTest,
)
from conformance.tla import Action, Fn, Value

FETCH = "SendFetch, HandleFetch, ProcessFetchResponse"
QUESTION = "SendEpochRequest, HandleEpochRequest, ProcessEpochResponse"
MOVE = f"Alter d2, TruncateToHighWatermark, {FETCH}"
FOLLOWED = "BecomeFollower, AppendAsFollower 0, AppendAsFollower 0"
"""In epoch 1; two records of an older epoch, not committed."""


def actions(path: str) -> list[Action]:
    """`Alter d2, Restart leader TRUE` as actions; `Alter` is AlterReplicaLogDirs."""

    def value(word: str) -> Value:
        if word.isdigit():
            return int(word)
        return {"TRUE": True, "FALSE": False}.get(word, word)

    words = [step.split() for step in path.replace("Alter", "AlterReplicaLogDirs").split(",")]
    return [Action(name, tuple(map(value, args))) for name, *args in words]


def after(path: str) -> DirectoriesSystem:
    """A system that has taken these steps."""
    system = create({})
    system.reset({})
    for action in actions(path) if path else []:
        system.apply(action)
    return system


def shown(path: str, *variables: str) -> tuple[Value, ...]:
    """The variables after these steps."""
    observation = after(path).observe()
    return tuple(observation[name] for name in variables)


def test_it_offers_what_the_harness_can_use() -> None:
    system = create({})
    for capability in (SystemUnderTest, Offers, Interruptible, Snapshots):
        assert isinstance(system, capability)


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        pytest.param("", {"directory": "d1", "moving": False, "fetchState": "None"}, id="begin"),
        pytest.param(
            "Alter d2",
            {"moving": True, "fetchState": "Truncating", "fetchEpoch": 0},
            id="start",
        ),
        pytest.param(
            f"AppendAsLeader, {MOVE}",
            {
                "moving": True,
                "log": Fn({"current": (0, 0), "future": (0,)}),
                "highWatermark": Fn({"current": 2, "future": 1}),
                "fetchOffset": 1,
            },
            id="one-batch-a-fetch",
        ),
        pytest.param(
            MOVE, {"moving": False, "directory": "d2", "fetchState": "None"}, id="swapped"
        ),
        pytest.param(
            f"AppendAsLeader, {MOVE}, Alter d1",
            {"moving": False, "directory": "d1", "fetchState": "None"},
            id="given-up",
        ),
        pytest.param(
            "Alter d2, BecomeLeader", {"unadded": 0, "fetchEpoch": 0}, id="to-be-registered"
        ),
        pytest.param(
            f"Alter d2, BecomeLeader, TruncateToHighWatermark, {FETCH}",
            {"fetchState": "Failed", "unadded": 0},
            id="fenced",
        ),
        pytest.param(
            f"Alter d2, BecomeLeader, TruncateToHighWatermark, {FETCH}, AddFetcher",
            {"fetchState": "Truncating", "fetchEpoch": 1, "unadded": -1},
            id="taken-up-again",
        ),
        pytest.param(
            f"{FOLLOWED}, BecomeFollower, {MOVE}, TruncateCurrent 1",
            {"unmarked": 1, "fetchState": "Fetching", "moving": True},
            id="to-be-marked",
        ),
        pytest.param(
            f"AppendAsLeader, {MOVE}, Restart follower TRUE",
            {
                "role": "follower",
                "moving": True,
                "unadded": 1,
                "highWatermark": Fn({"current": 2, "future": 1}),
            },
            id="restarted",
        ),
        pytest.param(
            f"AppendAsLeader, {MOVE}, Restart follower FALSE",
            {"unadded": 0, "highWatermark": Fn({"current": 0, "future": 0})},
            id="restarted-without-checkpoints",
        ),
        pytest.param(
            f"AppendAsLeader, {MOVE}, FailDirectory d2",
            {
                "role": "leader",
                "moving": True,
                "fetchState": "None",
                "failed": frozenset({"d2"}),
                "log": Fn({"current": (0, 0), "future": (0,)}),
            },
            id="the-future-logs-directory-fails",
        ),
        pytest.param(
            f"AppendAsLeader, {MOVE}, FailDirectory d1",
            {"role": "offline", "leaderEpoch": -1, "moving": True, "fetchState": "None"},
            id="the-current-logs-directory-fails",
        ),
    ],
)
def test_the_objects_are_shown_as_the_specs_values(path: str, variables: dict[str, Value]) -> None:
    assert shown(path, *variables) == tuple(variables.values())


def test_an_answer_from_before_the_mark_does_not_count() -> None:
    """Kafka 3.8 and 4.4 take it: the future log stays longer than the current one."""
    asked = f"{FOLLOWED}, {MOVE}, BecomeFollower, AddFetcher, SendEpochRequest, HandleEpochRequest"
    path = f"{asked}, TruncateCurrent 1, MarkForTruncation"
    (channel,) = shown(path, "channel")
    assert isinstance(channel, Fn)
    assert channel["overtaken"] is True

    again = f"{path}, ProcessEpochResponse"
    assert shown(again, "fetchState") == ("Truncating",)
    assert shown(f"{again}, {QUESTION}", "fetchState", "fetchOffset") == ("Fetching", 1)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("NoSuchAction", id="unknown"),
        pytest.param("AddFetcher", id="nothing-to-register"),
        pytest.param("MarkForTruncation", id="nothing-to-mark"),
        pytest.param("SendFetch", id="no-thread"),
        pytest.param("Alter d2, SendFetch", id="not-yet-fetching"),
        pytest.param("Alter d2, SendEpochRequest", id="no-epoch"),
        pytest.param("Alter d2, HandleFetch", id="nothing-asked"),
        pytest.param(f"{MOVE}, ProcessFetchResponse", id="nothing-answered"),
        pytest.param("AppendAsFollower 0", id="a-leader-follows-nobody"),
    ],
)
def test_what_the_broker_would_not_do_is_refused(path: str) -> None:
    with pytest.raises(ActionRefused):
        after(path)


def test_it_goes_back_to_where_it_was() -> None:
    system = after("AppendAsLeader, Alter d2")
    kept, before = system.snapshot(), system.observe()
    for action in actions(f"TruncateToHighWatermark, {FETCH}, Restart leader TRUE"):
        system.apply(action)

    system.restore(kept)

    assert dict(system.observe()) == dict(before)
