"""The table of Kafka's deviations, and what a run makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.deviations.declared import declare
from conformance.deviations.table import (
    Deviation,
    DeviationSeverity,
    concerning,
    load_deviations,
    overriding,
)
from conformance.errors import DataError, UserError
from conformance.kafka.jars import RELEASES
from conformance.modelcheck.manifest import Model
from conformance.replay.saved import load
from conformance.stages import context as stages
from conformance.stages.context import Context, check_overridden, one_model
from conformance.stages.overridden import with_deviations
from conformance.systems.kafka import KafkaFactory

FACTORY = KafkaFactory("3.8.1")
TABLE = FACTORY.deviations()
CHOICES = FACTORY.choices()


def deviation(**members: object) -> Deviation:
    """A deviation of a made-up broker."""
    given: dict[str, object] = {
        "id": "X",
        "report": "no report known",
        "title": "x",
        "severity": DeviationSeverity.HARMLESS,
        "description": "x",
        "definitions": {"Kafka_PositionsKept(b, e)": "{leader[b] = b}"},
        "overrides": {"PositionsKept": "Kafka_PositionsKept"},
        "seen": ("3.8.1", "3.9.0", "4.0.0"),
        "gone": ("3.9.1", "4.1.0"),
        "path": "x.itf.json",
        "consequence": "y.itf.json",
        "violated": "StrongIsr",
    }
    return Deviation(**{**given, **members})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "stands", "nearest"),
    [
        ("3.7.0", None, True),
        ("3.8.1", True, True),
        ("3.8.2", None, True),
        ("3.9.0", True, True),
        ("3.9.1", False, False),
        ("3.9.2", False, False),
        ("3.9.3", False, False),
        ("3.9.4", None, False),
        ("4.0.0", True, True),
        ("4.0.1", None, True),
        ("4.0.2", False, False),
        ("4.1.0", False, False),
        ("4.1.0-SNAPSHOT", None, False),
        ("4.5.0-SNAPSHOT", None, False),
        ("", True, True),
    ],
)
def test_a_table_says_of_a_line_from_which_patch_on_and_nothing_of_other_releases(
    version: str, stands: bool | None, nearest: bool
) -> None:
    known = deviation(seen=("3.8.1", "3.9.0", "4.0.0"), gone=("3.9.1", "3.9.3", "4.0.2", "4.1.0"))
    assert known.stands_in(version) is stands
    assert known.nearest_to(version) is nearest


@pytest.mark.parametrize("version", ["3.8.1", "3.9.1", "4.5.0-SNAPSHOT"])
def test_what_a_build_claims_to_have_mended_is_not_expected_of_it(version: str) -> None:
    assert deviation(mended=True).stands_in(version) is False


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.id)
def test_a_choice_is_the_specifications_own_and_its_path_diverges_where_it_is_not_made(
    choice: Deviation,
) -> None:
    path = load(FACTORY.file(choice.path))

    assert not choice.definitions
    assert path.key
    assert path.deviations == ()


def test_an_overridden_model_checks_the_other_formulas_and_expects_nothing() -> None:
    model = one_model("replication/bench/truncate-on-fetch-fine-2b")

    overridden = with_deviations(model, [deviation(breaks=("StrongIsr", "IsrAdmission"))])

    assert overridden.overrides == {"PositionsKept": "Kafka_PositionsKept"}
    assert {*model.check.invariants} - {*overridden.check.invariants} == {"StrongIsr"}
    assert {*model.check.properties} - {*overridden.check.properties} == {"IsrAdmission"}
    assert overridden.expect is None
    assert model.overrides == {}


def test_what_a_later_deviation_defines_again_comes_after_what_it_defines_for_it() -> None:
    model = one_model("replication/bench/truncate-on-fetch-fine-2b")
    first = deviation(definitions={"Kafka_PositionsKept(b, e)": "{TRUE}"})
    again = {
        "Kafka_LedBefore(b)": "leader[b] = b",
        "Kafka_PositionsKept(b, e)": "{Kafka_LedBefore(b)}",
    }

    overridden = with_deviations(model, [first, deviation(definitions=again)])

    assert [*overridden.definitions] == [*again]


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (Context(), ["replication/bench/truncate-on-fetch-fine-2b as kafka-4.4.0"]),
        (Context(strict=True), []),
    ],
)
def test_a_gate_checks_the_models_that_deviations_override(
    context: Context, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Model] = []
    monkeypatch.setattr(stages, "check_models", lambda models, *_: checked.extend(models))
    models = [one_model("replication/bench/truncate-on-fetch-fine-2b")]

    check_overridden(context, models, "kafka-4.4.0")

    assert [model.name for model in checked] == expected
    assert all(model.overrides and model.likely_states == 1_056 for model in checked)


def test_a_model_without_deviations_stays_as_it_is() -> None:
    model = one_model("replication/bench/truncate-on-fetch-fine-2b")

    assert with_deviations(model, []) is model


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.id)
def test_each_deviation_has_its_path_and_no_version_twice(one: Deviation) -> None:
    path = load(FACTORY.file(one.path))

    assert one_model(path.model).spec in (one.specification, one.module)
    assert one.id not in path.deviations
    assert {*path.deviations} <= {other.id for other in TABLE}
    assert not {*one.seen} & {*one.gone}
    assert {*one.seen, *one.gone} <= {*RELEASES}


READ_ONLY = frozenset(
    {
        "KAFKA-19476",
        "KAFKA-19972",
        "KAFKA-19630",
        "start-passes-writes",
        "available-below-start",
    }
)
"""What these cost was read in Kafka's source and reports; nobody has followed it on the classes."""


@pytest.mark.parametrize(
    "one",
    [one for one in TABLE if one.severity is not DeviationSeverity.HARMLESS],
    ids=lambda one: one.id,
)
def test_what_is_not_harmless_has_a_consequence(one: Deviation) -> None:
    if one.id in READ_ONLY:
        assert not one.consequence, "it was followed: take it out of the list"
        return
    path = load(FACTORY.file(one.path))
    consequence = load(FACTORY.file(one.consequence))

    assert consequence.actions[: len(path.actions)] == path.actions
    assert consequence.deviations == (*path.deviations, one.id)
    assert one.violated in one.breaks


@pytest.mark.parametrize(
    ("departs_from", "specification", "concerns"),
    [
        ("Replication", "Replication", True),
        ("Replication", "GroupMembership", False),
        ("", "Store", True),
    ],
)
def test_a_deviation_concerns_the_specification_that_it_names(
    departs_from: str, specification: str, concerns: bool
) -> None:
    assert deviation(specification=departs_from).concerns(specification) is concerns


def test_what_is_about_a_module_on_top_of_the_specification_leaves_other_models_alone() -> None:
    below = deviation(id="below", specification="Replication")
    above = deviation(id="above", specification="Replication", module="InterruptedFetches")
    other = deviation(id="other", specification="GroupMembership")
    known = (below, above, other)

    assert overriding(known, "Replication") == (below,)
    assert overriding(known, "InterruptedFetches") == (below, above)
    assert overriding(known, "GroupMembership") == (other,)
    assert concerning(known, ["Replication"]) == (below, above)
    assert concerning(known, ["InterruptedFetches"]) == (below, above)
    assert concerning(known, ["GroupMembership", "Replication"]) == known


@pytest.mark.parametrize(
    "text",
    [
        *("", "[[deviation]]\nid = 'X'\n", "[[deviation]]\nid = \n", "deviation = 3\n"),
        "mended = ['X']\n[[choice]]\nid = 'X'\ntitle = 'x'\nseverity = 'harmless'\n",
    ],
    ids=["empty", "incomplete", "no toml", "no table", "a choice that overrides nothing"],
)
def test_a_table_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    table = tmp_path / "deviations.toml"
    table.write_text(text, encoding="utf-8")

    with pytest.raises(DataError, match=r"deviations\.toml is not a table of deviations"):
        load_deviations(table)


def test_a_build_declares_no_choice(tmp_path: Path) -> None:
    own = tmp_path / "ours.toml"
    own.write_text(
        "mended = ['re-elected-leader']\n[[choice]]\nid = 'X'\ntitle = 'x'\nseverity = 'harmless'\n"
        "path = 'x.itf.json'\noverrides = { PositionsKept = 'PositionsFree' }\n",
        encoding="utf-8",
    )

    with pytest.raises(UserError, match=r"ours\.toml has a \[\[choice\]\]"):
        declare(str(own), "kafka-4.4.0")


def test_the_model_of_recorded_groups_of_4_0_says_what_the_table_says() -> None:
    """What the rewritten coordinator is known to do otherwise, word for word."""
    model = one_model("group/recorded-rewrite-2m")
    known = [
        one
        for one in TABLE
        if one.specification == "GroupMembership" and "4.4.0" in one.seen and one.overrides
    ]
    assert len(known) == 4
    for one in known:
        assert one.definitions.items() <= dict(model.definitions).items()
        assert one.overrides.items() <= dict(model.overrides).items()
