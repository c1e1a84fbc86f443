"""Foreign names and numbers become the specification's; constants are made of what was seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.judge.order import Guarantee
from conformance.judge.translate import derived_constants, translated
from conformance.tla import ActionPattern
from tests.unit.judge.locks import mapping, recording


def test_texts_are_renamed_everywhere_and_numbered_as_they_come(tmp_path: Path) -> None:
    declared = mapping(tmp_path, "[[names]]\nmatch = 'consumer-(\\d)-\\w+'\nto = 'm\\1-{n}'\n")
    seen = translated(
        recording(
            {
                "process": "consumer-1-abc",
                "action": {"name": "Join", "args": ["consumer-2-x", None]},
                "state": {"members": {"#set": ["consumer-1-def", "other"]}},
            },
            {"state": {'of["consumer-1-abc"]': "consumer-2-x"}},
        ),
        declared,
    )
    first, second = seen.events
    assert first.actions == (ActionPattern("Join", ("m2-1", None)),)
    assert first.after[0].value == frozenset(["m1-1", "other"])
    assert first.process == "m1-2"
    assert str(second.after[0].place) == 'of["m1-2"]'
    assert second.after[0].value == "m2-1"


def test_numbers_are_rebased_and_values_translated_where_the_mapping_says(tmp_path: Path) -> None:
    declared = mapping(
        tmp_path,
        'hidden = ["ghost"]\n'
        '[[values]]\nat = ["epoch[_]", "Elect.1"]\nsubtract = "first"\n'
        '[[values]]\nat = ["channel[_].error"]\nvalues = { "25" = \'"UNKNOWN"\' }\n',
    )
    seen = translated(
        recording(
            {"state": {"epoch": {"b1": 7, "b2": 9}, "offset": 9, "ghost": 1}},
            {"action": {"name": "Elect", "args": [8, 8]}, "state": {'epoch["b2"]': 10}},
            {"state": {"channel": {"b1": {"error": 25, "epoch": 25}}}},
        ),
        declared,
    )
    first, second, third = seen.events
    assert [str(part.place) for part in first.after] == ["epoch", "offset"]
    assert dict(first.after[0].value.items()) == {"b1": 0, "b2": 2}  # type: ignore[union-attr]  # a function
    assert first.after[1].value == 9
    assert second.actions == (ActionPattern("Elect", (1, 8)),)
    assert second.after[0].value == 3
    channel = third.after[0].value["b1"]  # type: ignore[index, call-overload]  # a function
    assert dict(channel.items()) == {"error": "UNKNOWN", "epoch": 25}


def test_constants_are_made_of_what_the_recordings_name(tmp_path: Path) -> None:
    declared = mapping(
        tmp_path,
        "[constants]\nFixed = '{1}'\n"
        'Brokers = { collect = ["process", "Elect.2"], include = [\'"b9"\'] }\n'
        'Epochs = { collect = ["epoch[_]", "Elect.1"], as = "interval", beyond = 1 }\n',
    )
    seen = recording(
        {"process": "b1", "action": {"name": "Elect", "args": [3, "b2"]}},
        {"process": "b1", "state": {"epoch": {"b1": 2, "b2": -1}, "other": 77}},
    )
    assert derived_constants([seen], declared) == {
        "Fixed": "{1}",
        "Brokers": '{"b1", "b2", "b9"}',
        "Epochs": "-1..4",
    }
    with pytest.raises(UserError, match="constant Epochs"):
        derived_constants([], declared)


def test_a_whole_mapping_is_read(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "mapping.md").read_text(encoding="utf-8")
    example = text.partition("```toml\n")[2].partition("```")[0]
    declared = mapping(tmp_path, example.replace("schema = 1\n", ""))
    assert declared.guarantee is Guarantee.PROCESS
    assert declared.silent == (
        ActionPattern("SendFetch"),
        ActionPattern("Crash", ("b1", None, None)),
    )
    assert (declared.limits.silent, declared.limits.candidates) == (3, 20_000)
    assert declared.declared


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('order = "random"', "docs/mapping.md"),
        ("[silent]\nsteps = -1", "docs/mapping.md"),
        ("[silent]\nsteps = 2\neach = 0", "docs/mapping.md"),
        ('[silent]\nactions = ["Ask"]', "give `silent.steps`"),
        ("[coverage]\nactions = 80", "docs/mapping.md"),
        ('[silent]\nactions = ["Fetch("]', "silent.actions"),
        ("colour = 1", "colour"),
        ("order = ", "not a valid mapping"),
    ],
)
def test_a_wrong_mapping_is_told_with_its_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        mapping(tmp_path, text)
