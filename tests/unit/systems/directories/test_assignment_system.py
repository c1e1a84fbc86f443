"""The adapter of the assignment of directories, and what it needs of impl."""

from __future__ import annotations

import pytest

from conformance.systems.directories import AssignmentSystem, create
from conformance.systems.protocol import ActionRefused, Interruptible, Offers, Snapshots
from conformance.tla import Action, Fn, Value

OF_ASSIGNMENTS = {
    f"{step}Assignment": f"{step}Assignment"
    for step in ("Send", "Write", "Answer", "Fail", "Learn")
}
FETCH = "SendFetch, HandleFetch, ProcessFetchResponse"
ASKS = f"Alter d2, TruncateToHighWatermark, {FETCH}"
AGREES = "SendAssignment, WriteAssignment, AnswerAssignment"
NOTHING = Fn({"directory": "none", "promotes": False})


def request(directory: str, *, promotes: bool) -> Fn:
    return Fn({"directory": directory, "promotes": promotes})


def actions(path: str) -> list[Action]:
    """`Alter d2, SendAssignment` as actions; `Alter` is AlterReplicaLogDirsInKRaft."""
    words = [step.split() for step in path.replace("Alter", "AlterReplicaLogDirs").split(",")]
    return [
        Action(OF_ASSIGNMENTS.get(name, f"{name}InKRaft"), tuple(map(_value, args)))
        for name, *args in words
    ]


def _value(word: str) -> Value:
    return {"TRUE": True, "FALSE": False}.get(word, word)


def after(path: str) -> AssignmentSystem:
    """A system that has taken these steps."""
    system = create({"AssignmentFailures": True})
    assert isinstance(system, AssignmentSystem)
    system.reset({})
    for action in actions(path):
        system.apply(action)
    return system


def test_it_offers_what_the_harness_can_use() -> None:
    system = create({"AssignmentFailures": True})
    for capability in (Offers, Interruptible, Snapshots):
        assert isinstance(system, capability)


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        pytest.param(
            ASKS,
            {"promotion": "Queued", "queued": request("d2", promotes=True), "directory": "d1"},
            id="asks",
        ),
        pytest.param(
            f"{ASKS}, {AGREES}",
            {"promotion": "Accepted", "assigned": "d2", "unlearned": True, "sent": NOTHING},
            id="agreed",
        ),
        pytest.param(
            f"{ASKS}, {AGREES}, {FETCH}",
            {"promotion": "None", "directory": "d2", "moving": False},
            id="swapped",
        ),
        pytest.param(
            f"{ASKS}, {AGREES}, Alter d1",
            {"promotion": "None", "queued": request("d1", promotes=False), "moving": False},
            id="given-up",
        ),
        pytest.param(
            f"{ASKS}, {AGREES}, LearnAssignment",
            {"promotion": "None", "queued": request("d1", promotes=False), "unlearned": False},
            id="learned-before-the-swap",
        ),
        pytest.param(
            f"{ASKS}, {AGREES}, {FETCH}, LearnAssignment",
            {"queued": NOTHING, "directory": "d2"},
            id="learned-after-the-swap",
        ),
        pytest.param(
            f"{ASKS}, SendAssignment, WriteAssignment, FailAssignment",
            {"assigned": "d2", "written": False, "queued": request("d2", promotes=True)},
            id="the-answer-is-lost",
        ),
        pytest.param(
            f"{ASKS}, SendAssignment, BecomeLeader, AddFetcher, WriteAssignment, AnswerAssignment",
            {"promotion": "None", "queued": request("d1", promotes=False)},
            id="registered-again",
        ),
        pytest.param(
            f"{ASKS}, SendAssignment, WriteAssignment, Restart leader TRUE",
            {"directory": "d2", "moving": False, "queued": NOTHING, "unlearned": False},
            id="promoted-at-a-start",
        ),
        pytest.param(
            f"{ASKS}, SendAssignment, WriteAssignment, AppendAsLeader, Restart leader TRUE",
            {"directory": "d1", "moving": True, "queued": request("d1", promotes=False)},
            id="not-promoted-at-a-start",
        ),
    ],
)
def test_the_objects_are_shown_as_the_specs_values(path: str, variables: dict[str, Value]) -> None:
    seen = after(path).observe()
    assert {name: seen[name] for name in variables} == variables


def test_an_answer_to_a_move_that_was_given_up_does_not_count() -> None:
    """In Kafka the next move is promoted by it."""
    path = f"{ASKS}, SendAssignment, Alter d1, Alter d2, WriteAssignment, AnswerAssignment"
    assert after(path).observe()["promotion"] == "None"


@pytest.mark.parametrize(
    "path",
    [
        "WriteAssignment",
        "LearnAssignment",
        f"{ASKS}, AnswerAssignment",
        f"{ASKS}, SendAssignment, AnswerAssignment",
        f"{ASKS}, SendAssignment, WriteAssignment, WriteAssignment",
    ],
)
def test_what_the_controller_would_not_do_is_refused(path: str) -> None:
    with pytest.raises(ActionRefused):
        after(path)


def test_a_request_that_is_ready_is_offered_until_it_is_in_flight() -> None:
    send = Action("SendAssignment", ())
    assert send in after(ASKS).offers()
    assert send not in after(f"{ASKS}, SendAssignment").offers()
