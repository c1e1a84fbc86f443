"""Ids that nobody uses are forgotten: the scan, its call-back, a load over a tombstone."""

from __future__ import annotations

import pytest

from impl.errors import Errors, IllegalStateException
from impl.transaction.transaction_metadata import TransactionMetadata
from impl.transaction.transaction_state import TransactionState
from tests.unit.impl.transaction.test_transaction_coordinator import ID, TIMEOUT_MS, World

WEEK_MS = 7 * 24 * 3_600_000


def idle(ms: int = WEEK_MS) -> World:
    """An id that has an epoch, and was not used for that time; appends wait from now on."""
    world = World()
    world.init()
    world.clock.sleep(ms)
    world.topic.status = None
    return world


def known(world: World) -> TransactionMetadata | None:
    return world.manager.cached_metadata(ID)


def ask(world: World) -> None:
    """An instance asks for an epoch; the answer comes later."""
    world.coordinator.handle_init_producer_id(ID, TIMEOUT_MS, lambda *_answer: None)


def acknowledge(world: World, error: Errors = Errors.NONE) -> None:
    world.topic.kept.pop(0)(error)


def test_an_id_stays_until_its_tombstone_is_replicated() -> None:
    world = idle()

    world.manager.remove_expired_transactional_ids()

    metadata = known(world)
    assert metadata is not None
    assert metadata.pending_state is TransactionState.DEAD
    acknowledge(world)
    assert known(world) is None
    assert metadata.pending_state is TransactionState.DEAD, "who has looked it up cannot go on"


def test_an_id_that_was_used_stays() -> None:
    world = idle(WEEK_MS - 1)

    world.manager.remove_expired_transactional_ids()

    assert not world.topic.kept
    assert world.metadata.pending_state is None


def test_an_id_of_which_something_is_pending_stays() -> None:
    world = idle()
    ask(world)

    world.manager.remove_expired_transactional_ids()

    assert len(world.topic.kept) == 1
    assert world.metadata.pending_state is TransactionState.EMPTY


def test_an_id_stays_if_its_tombstone_is_not_appended() -> None:
    world = idle()
    world.manager.remove_expired_transactional_ids()

    acknowledge(world, Errors.REQUEST_TIMED_OUT)

    assert world.metadata.pending_state is None


def test_a_call_back_of_an_earlier_term_changes_nothing() -> None:
    world = idle()
    world.manager.remove_expired_transactional_ids()
    world.coordinator.on_election(0, 2)
    ask(world)

    acknowledge(world)

    assert world.metadata.pending_state is TransactionState.EMPTY


def test_a_load_over_a_tombstone_forgets_the_id_and_its_producer() -> None:
    world = idle()
    before = world.producer
    world.manager.remove_expired_transactional_ids()
    world.coordinator.on_election(0, 2)
    assert known(world) is None

    world.topic.status = Errors.NONE
    world.init()

    assert world.producer.producer_id != before.producer_id
    assert world.producer.epoch == 0


def test_what_is_dead_is_never_entered() -> None:
    metadata = idle().metadata
    transit = metadata.prepare_dead()

    with pytest.raises(IllegalStateException):
        metadata.complete_transition_to(transit)
