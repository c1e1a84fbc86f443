"""Fetcher threads run their own loop: ours, ours with a fault, and Kafka's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.config import Settings
from conformance.errors import UserError
from conformance.events import Event, Finding
from conformance.replay.saved import ReplayOutcome, load
from conformance.replay.turns import TurnsResult
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay_saved
from conformance.stages.turns import turns
from conformance.systems.external import CHANNELS
from conformance.verdict import Verdict
from impl.fetcher.abstract_fetcher_thread import AbstractFetcherThread
from impl.types import TopicPartition
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc

TRUNCATES_ON_FETCH = "replication/bench/truncate-on-fetch-log-start-fine-2b"
ASKS_FOR_EPOCHS = "replication/bench/kip320-fine-2b"


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """With the state graphs of the user's cache; the JVMs end with the module."""
    yield Context(seed=5)
    CHANNELS.close()


def taken(context: Context, model: str, system: str | None = None, walks: int = 60) -> TurnsResult:
    bench = workbench(context, one_model(model), system)
    return turns(context, bench, walks=walks, length=25)


def test_turns_come_out_as_the_steps_in_the_order_of_the_loop(context: Context) -> None:
    result = taken(context, TRUNCATES_ON_FETCH)

    assert result.verdict is Verdict.PASS
    assert {*result.turns} == {
        "FetchRequest",
        "FetchRequest, backs off",
        "FetchRequest, LatestRequest, EarliestRequest",
        "waits, backs off",
    }


def test_a_follower_that_asks_for_epochs_fetches_in_the_same_turn(context: Context) -> None:
    result = taken(context, ASKS_FOR_EPOCHS)

    assert result.verdict is Verdict.PASS
    assert {"EpochRequest, FetchRequest", "EpochRequest, waits, backs off"} <= {*result.turns}


def without_back_off(
    _thread: AbstractFetcherThread, _partitions: Iterable[TopicPartition], _delay_ms: int
) -> None:
    """An error is forgotten."""


def fetches_first(thread: AbstractFetcherThread) -> None:
    thread.maybe_fetch()
    thread.maybe_truncate()


def truncates_only(thread: AbstractFetcherThread) -> None:
    thread.maybe_truncate()


@pytest.mark.parametrize(
    ("owner", "method", "fault"),
    [
        (AbstractFetcherThread, "delay_partitions", without_back_off),
        (AbstractFetcherThread, "do_work", fetches_first),
        (AbstractFetcherThread, "do_work", truncates_only),
    ],
)
def test_a_loop_with_a_fault_diverges_at_a_turn(
    context: Context, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, fault: object
) -> None:
    monkeypatch.setattr(owner, method, fault)

    result = taken(context, TRUNCATES_ON_FETCH)

    assert result.verdict is Verdict.FAIL
    assert result.divergence is not None
    assert result.divergence.action is not None
    assert result.divergence.action.name in ("DoWork", "DoWorkInVain")


def test_a_diverging_walk_is_kept_and_replays_until_the_fault_is_mended(
    context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events: list[Event] = []
    settings = Settings(output=str(tmp_path))
    kept = replace(context, settings=settings, emit=events.append)
    monkeypatch.setattr(AbstractFetcherThread, "do_work", fetches_first)
    taken(kept, TRUNCATES_ON_FETCH)
    [found] = [event for event in events if isinstance(event, Finding)]
    saved = load(Path(found.artifact))
    bench = workbench(context, one_model(TRUNCATES_ON_FETCH), with_graph=False)

    before, divergence = replay_saved(context, bench, saved)
    monkeypatch.undo()
    after, _ = replay_saved(context, bench, saved)

    assert found.reproduce == f"kconform replay {found.artifact}"
    assert (before, after) == (ReplayOutcome.AS_BEFORE, ReplayOutcome.FIXED)
    assert divergence is not None
    assert divergence.step == len(saved.actions)


def test_a_model_whose_round_trips_are_one_step_is_refused(context: Context) -> None:
    with pytest.raises(UserError, match="Name a model of fine granularity"):
        taken(context, "replication/truncate-on-fetch-two-step-isr-coarse-2b")


@pytest.mark.parametrize("version", VERSIONS)
def test_kafkas_own_loop_takes_the_same_turns(context: Context, version: str) -> None:
    jars_or_skip(version)

    result = taken(context, TRUNCATES_ON_FETCH, f"kafka-{version}", walks=12)

    assert result.verdict is Verdict.PASS
    assert {"FetchRequest", "FetchRequest, backs off", "waits, backs off"} <= {*result.turns}
