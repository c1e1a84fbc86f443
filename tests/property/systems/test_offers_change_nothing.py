"""To ask a system what it would do changes nothing: not what it shows, nor what it holds.

The harness asks in some states and not in others. If asking left anything behind, a path would
depend on where somebody asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Protocol, cast

import pytest

from conformance.registry import BUILT_IN
from conformance.replay.engine import close
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.suites.walks import random_walks
from conformance.systems.protocol import CannotSnapshot, Offers, Snapshots, SystemUnderTest
from conformance.systems.rewinding import Snapshot
from conformance.tla import Action, Value

pytestmark = pytest.mark.tlc

WALKS, LENGTH, SEED = 20, 25, 20
MODELS = (
    "acknowledgement/consumer-2b",
    "acknowledgement/crash-isr-2b",
    "consumer/expiries-2m",
    "controller/restarts-1b",
    "controller/elections-2b",
    "delayed/both-keys",
    "delayed/two-deadlines",
    "directories/cancels",
    "directories/restarts",
    "fetchers/ended-threads",
    "fetchers/quota",
    "group/protocols-2m",
    "group/static-restart-2m",
    "replication/bench/kip320-fine-2b",
    "replication/bench/truncate-on-fetch-fine-2b",
    "storage/recovery",
    "storage/retention",
    "transaction/v1-instances-1-transaction",
    "transaction/v2-instances-1-transaction",
)
OFFERS_NOTHING = {
    "compaction",
    "data",
    "offsets",
    "persister",
    "positions",
    "produce",
    "reassignment",
    "runtime",
    "sessions",
    "share",
}
"""It takes no step by itself: clients and the log do all."""


class Offering(SystemUnderTest, Offers, Protocol):
    """A system that can be asked."""


Walk = tuple[Mapping[str, Value], list[Action]]


def walks(bench: Workbench) -> Iterator[Walk]:
    """The initial state of each random walk, and its actions."""
    graph = bench.graph
    for test in random_walks(graph, WALKS, LENGTH, SEED).tests:
        initial = dict(zip(graph.variables, graph.states[test.initial], strict=True))
        yield initial, [graph.actions[code] for code in graph.action[test.edges].tolist()]


@contextmanager
def system_of(bench: Workbench) -> Iterator[Offering]:
    system = cast("Offering", bench.make_system())
    try:
        yield system
    finally:
        close(system)


@pytest.fixture(params=MODELS)
def bench(request: pytest.FixtureRequest) -> Workbench:
    return workbench(Context(), one_model(request.param))


def held(system: object) -> list[tuple[object, object]] | None:
    """Every object of the system with what it holds.

    None of a system, or in a state, that cannot be gone back to.
    """
    if not isinstance(system, Snapshots):
        return None
    try:
        taken = system.snapshot()
    except CannotSnapshot:
        return None
    assert isinstance(taken, Snapshot)
    return [(one, content) for _, one, content in taken.entries]


def differing(before: list[tuple[object, object]], after: list[tuple[object, object]]) -> list[str]:
    """What another object, or an object with another content, has taken the place of."""
    pairs = zip_longest(before, after, fillvalue=(None, None))
    return [f"{old} -> {new}" for old, new in pairs if old[0] is not new[0] or old[1] != new[1]]


def test_asking_twice_gives_one_answer_and_leaves_all_as_it_was(bench: Workbench) -> None:
    offered = compared = 0
    with system_of(bench) as system:
        for initial, actions in walks(bench):
            system.reset(initial)
            for action in (None, *actions):
                if action is not None:
                    system.apply(action)
                shown, holds = system.observe(), held(system)
                offers = system.offers()
                assert system.observe() == shown
                assert system.offers() == offers
                after = held(system)
                assert (holds is None) is (after is None)
                assert differing(holds or [], after or []) == []
                offered += len(offers)
                compared += holds is not None
    assert offered > WALKS
    assert (compared >= WALKS) is isinstance(system, Snapshots)


def test_who_was_never_asked_goes_the_same_way(bench: Workbench) -> None:
    with system_of(bench) as asked, system_of(bench) as unasked:
        for initial, actions in walks(bench):
            asked.reset(initial)
            unasked.reset(initial)
            for action in actions:
                asked.offers()
                asked.apply(action)
                unasked.apply(action)
                assert asked.observe() == unasked.observe()
            assert asked.offers() == unasked.offers()


def test_every_system_of_ours_is_walked_or_offers_nothing() -> None:
    benches = [workbench(Context(), one_model(name), with_graph=False) for name in MODELS]
    silent = workbench(Context(), one_model("offsets/failures"), with_graph=False)

    assert {bench.model.system for bench in benches} == {*BUILT_IN} - OFFERS_NOTHING
    assert not isinstance(silent.make_system(), Offers)
