"""What a name says of a broker, before anybody connects to it."""

from __future__ import annotations

import pytest

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.replay.saved import load
from conformance.stages.context import Context, expected_of, one_model
from conformance.systems.wire import of_address

NAMED = of_address("localhost:9092?deviations=kafka-4.4.0")


def test_a_broker_of_which_nothing_is_said_has_no_deviations() -> None:
    assert deviating("wire:localhost:9092") is None
    assert expected_of(Context(), "wire:localhost:9092", "GroupMembership") == ()


def test_a_named_systems_table_serves_at_the_port() -> None:
    of_groups = {one.id for one in NAMED.deviations() if one.concerns("GroupMembership")}
    of_classes = expected_of(Context(), "kafka-4.4.0", "GroupMembership")
    assert of_groups == {one.id for one in of_classes}
    # Those of replication no port can meet.
    assert all(one.specification != "Replication" for one in NAMED.deviations())
    older = expected_of(Context(), "wire:localhost:9092?deviations=kafka-3.8.1", "GroupMembership")
    assert older == ()


@pytest.mark.parametrize("one", NAMED.deviations(), ids=lambda one: one.id)
def test_each_deviation_has_its_path(one: Deviation) -> None:
    path = load(NAMED.file(one.path))
    assert one.concerns(one_model(path.model).spec)
    assert one.id not in path.deviations
    assert {*path.deviations} <= {other.id for other in NAMED.deviations()}


def test_a_system_without_a_table_is_a_mistake() -> None:
    with pytest.raises(UserError, match="group has no table of deviations"):
        of_address("localhost:9092?deviations=group")
