"""What a name says of a broker, before anybody connects to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviation
from conformance.errors import UserError
from conformance.kafka.jars import RELEASES
from conformance.modelcheck.prepare import prepare
from conformance.registry import load_factory
from conformance.replay.saved import load
from conformance.stages.context import Context, constants_of, expected_of, one_model
from conformance.systems.wire import of_address
from conformance.systems.wire.started import BrokerFactory
from conformance.tla import find_tools

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
    mixed = {one.id for one in NAMED.deviations() if one.specification == "MixedGroup"}
    assert len(mixed) == 9
    assert "target-given-at-downgrade" in mixed
    older = expected_of(Context(), "wire:localhost:9092?deviations=kafka-3.8.1", "GroupMembership")
    assert older == ()


@pytest.mark.parametrize("one", NAMED.deviations(), ids=lambda one: one.id)
def test_each_deviation_has_its_path(one: Deviation) -> None:
    path = load(NAMED.file(one.path))
    assert one.concerns(one_model(path.model).spec)
    assert one.id not in path.deviations
    assert {*path.deviations} <= {other.id for other in NAMED.deviations()}


@pytest.mark.parametrize("one", NAMED.deviations(), ids=lambda one: one.id)
def test_each_deviation_names_releases_that_there_are_and_none_twice(one: Deviation) -> None:
    assert {*one.seen, *one.gone} <= {*RELEASES}
    assert not {*one.seen} & {*one.gone}


def test_every_release_with_the_port_for_it_is_named_by_the_table_of_kip_848() -> None:
    table = [one for one in NAMED.deviations() if one.specification == "ConsumerGroup"]
    assert len(table) == 15
    for one in table:
        first = "4.3" if one.id == "interval-outlasts-members" else "4"  # KAFKA-20291
        for release in RELEASES:
            assert (one.stands_in(release) is None) is (release < first), (one.id, release)


def test_a_broker_that_is_started_here_is_the_release_whose_table_it_has() -> None:
    broker = load_factory("broker-4.4.0")
    assert isinstance(broker, BrokerFactory)
    assert broker.deviations() == NAMED.deviations()
    assert broker.version_of("") == "4.4.0"
    # What only its settings say needs no broker.
    assert broker.cannot_take("Replication", {}).startswith("a port shows GroupMembership")


def test_a_name_of_a_broker_is_a_release_or_a_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KCONFORM_KAFKA_LIB", raising=False)
    with pytest.raises(UserError, match="'newest' is no version of Kafka"):
        load_factory("broker-newest")
    with pytest.raises(UserError, match="--kafka-lib or KCONFORM_KAFKA_LIB"):
        load_factory("broker")
    with pytest.raises(UserError, match="holds no Kafka"):
        load_factory(f"broker-{tmp_path}")


@pytest.mark.parametrize(
    ("model", "settings", "together"),
    [
        ("group/dynamic-2m", "", True),
        ("group/fail-over-2m", "", True),  # nothing moves the coordinator: no such step is driven
        ("group/fail-over-2m", "fail-over=move", False),
        ("group/store-failure-2m", "", True),
        ("group/store-failure-2m", "store-failures=1", False),
        ("consumer/dynamic-2m", "", True),
        ("mixed/moves-2m", "assignor=range", True),
        ("transaction/port-v2", "", True),
        ("data/leaders", "fail-over=move", False),
        ("sessions/changes", "", True),
        ("sessions/cache", "fetch-slots=16", False),
    ],
)
def test_another_process_drives_the_broker_too_unless_all_clients_feel_a_models_steps(
    model: str, settings: str, together: bool
) -> None:
    text = f"localhost:9092?{settings}"
    constants = constants_of(prepare(one_model(model), find_tools()))
    assert of_address(text).shared_name(constants) == (f"wire:{text}" if together else "")


def test_a_claim_needs_a_table_besides_its_own_file(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('mended = ["join-always-accepted"]\n', encoding="utf-8")
    with pytest.raises(UserError, match="no other table is named"):
        of_address(f"localhost:9092?deviations={file}")


def test_a_system_without_a_table_is_a_mistake() -> None:
    with pytest.raises(UserError, match="group has no table of deviations"):
        of_address("localhost:9092?deviations=group")
