"""What a system's name stands for, in every process alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance import registry
from conformance.errors import UserError
from conformance.registry import Scheme, factory_path, load_factory


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("replication", "conformance.systems.replication:create"),
        ("store:create", "store:create"),
        ("mine", "exec:./mine --fast"),
        ("exec:java -jar broker.jar --port 9092", "exec:java -jar broker.jar --port 9092"),
        ("tcp:127.0.0.1:9999", "tcp:127.0.0.1:9999"),
        ("kafka", "kafka"),
        ("kafka-3.8.1", "kafka-3.8.1"),
    ],
)
def test_a_name_stands_for_what_finds_the_factory_anywhere(name: str, stands_for: str) -> None:
    configured = {"mine": "exec:./mine --fast"}
    assert factory_path(name, configured) == stands_for
    assert factory_path(stands_for) == stands_for


@pytest.mark.parametrize("name", ["kafak", "kafka3.8.1", "exec", "tcp", ""])
def test_an_unknown_name_is_told_with_all_that_could_be_given(name: str) -> None:
    with pytest.raises(UserError) as told:
        factory_path(name, {"mine": "m:f"})
    assert "group, mine, offsets, persister, positions, produce, reassignment" in str(told.value)
    assert "`exec:COMMAND`, `kafka-VERSION`, `tcp:HOST:PORT`" in str(told.value)


def test_a_schemes_maker_gets_the_rest_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brew.py").write_text(
        "def of(rest):\n    return lambda constants: (rest, constants)"
    )
    schemes = {"beer": Scheme("brew:of", "beer-KIND", "-"), "at": Scheme("brew:of", "at:PLACE")}
    monkeypatch.setattr(registry, "SCHEMES", schemes)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "brew", raising=False)
    made = [load_factory(name)({}) for name in ("beer-ale", "beer", "at:a:b")]
    assert made == [("ale", {}), ("", {}), ("a:b", {})]


@pytest.mark.parametrize("address", ["127.0.0.1:9092", "localhost:9092", "broker.example:9092"])
def test_an_address_without_a_scheme_is_told_which_one(address: str) -> None:
    with pytest.raises(UserError, match=f"`wire:{address}` for a broker"):
        load_factory(address)
