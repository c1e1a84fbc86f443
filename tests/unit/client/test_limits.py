"""An example that takes too long to follow ends without a verdict on the client."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from conformance.client.example import ClientKind, Ending, ExamplePlan, _Example, _JoinedExample
from conformance.client.subject import JoiningClient
from conformance.judge.budget import LimitReached
from conformance.judge.events import Event


class Late:
    """Follows no event in time."""

    def see(self, event: Event) -> bool:
        raise LimitReached("300 seconds of the processor were not enough")


def no_kind(subject: JoiningClient) -> ClientKind:
    """Nobody joins here."""
    raise AssertionError(subject)


def test_an_event_that_is_not_explained_in_time_is_no_departure(tmp_path: Path) -> None:
    example = _Example(ExamplePlan("x", 1), 1, no_kind, False, tmp_path)
    example._joined = cast("_JoinedExample", SimpleNamespace(following=Late()))
    event = cast("Event", SimpleNamespace(source="a connection is closed"))

    seen = (example._see(event), example._see(event))

    example._callbacks.close()
    assert seen == (False, False)
    assert (example.ending, example.detail) == (
        Ending.LIMITED,
        "300 seconds of the processor were not enough",
    )
