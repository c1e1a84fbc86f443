"""A schema as Kafka writes one, and bytes counted by hand from the protocol guide."""

from __future__ import annotations

import pytest

from conformance.errors import DataError
from conformance.kafka.schemas import DecodeError, Versions, parse_schema

PLACE = parse_schema(
    """
// A comment // in a comment
{
  "apiKey": 7, "type": "request", "name": "PlaceRequest", // what it is
  "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [
    { "name": "Url", "type": "string", "versions": "0+", "about": "http://not-a-comment" },
    { "name": "Epoch", "type": "int32", "versions": "1+", "default": "-1" },
    { "name": "Owner", "type": "string", "versions": "1+", "nullableVersions": "1+",
      "default": "null" },
    { "name": "Nodes", "type": "[]Node", "versions": "0+", "nullableVersions": "2+", "fields": [
      { "name": "Id", "type": "int16", "versions": "0+" },
      { "name": "Ports", "type": "[]int32", "versions": "0+" }
    ]},
    { "name": "Lag", "type": "int64", "versions": "2+", "taggedVersions": "2+", "tag": 3,
      "default": "5" }
  ]
}
"""
)


@pytest.mark.parametrize(
    ("version", "value", "data"),
    [
        (0, {"url": "a", "nodes": []}, "0001 61 00000000"),
        (
            0,
            {"url": "", "nodes": [{"id": 258, "ports": [1, -1]}]},
            "0000 00000001 0102 00000002 00000001 ffffffff",
        ),
        (
            1,
            {"url": "é", "epoch": -1, "owner": None, "nodes": []},
            "0002 c3a9 ffffffff ffff 00000000",
        ),
        (
            2,
            {"url": "a", "epoch": 1, "owner": "b", "nodes": None, "lag": 5},
            "02 61 00000001 02 62 00 00",
        ),
        (
            2,
            {"url": "a", "epoch": 1, "owner": None, "nodes": [{"id": 1, "ports": []}], "lag": 6},
            "02 61 00000001 00 02 0001 01 00 01 03 08 0000000000000006",
        ),
    ],
)
def test_values_and_bytes(version: int, value: dict[str, object], data: str) -> None:
    wire = bytes.fromhex(data.replace(" ", ""))
    assert PLACE.encode(version, value) == wire
    assert PLACE.decode(version, wire) == value


def test_a_field_left_out_has_its_default() -> None:
    assert PLACE.decode(2, PLACE.encode(2, {})) == {
        "url": "",
        "epoch": -1,
        "owner": None,
        "nodes": [],
        "lag": 5,
    }


def test_unknown_tagged_fields_are_kept() -> None:
    wire = bytes.fromhex("01 00000000 00 01 02 03 08 0000000000000007 09 02 abcd".replace(" ", ""))
    value = PLACE.decode(2, wire)
    assert value["lag"] == 7
    assert value["_tagged"] == {9: b"\xab\xcd"}
    assert PLACE.encode(2, value) == wire


@pytest.mark.parametrize(
    ("version", "data", "words"),
    [
        (0, "0001", "cannot be read|cut off"),
        (0, "0001 61 00000000 00", "ends at byte 7 of 8"),
        (0, "ffff 00000000", "null where the schema allows none"),
        (0, "0000 7fffffff", "cannot be read"),
        (0, "0001 ff 00000000", "cannot be read"),
        (2, "ffffffffff01", "cannot be read"),
    ],
)
def test_bytes_that_are_something_else(version: int, data: str, words: str) -> None:
    with pytest.raises(DecodeError, match=words):
        PLACE.decode(version, bytes.fromhex(data.replace(" ", "")))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"urll": "a"}, "no field urll"),
        ({"url": None}, "null where the schema allows none"),
        ({"url": "a", "nodes": [{"id": 70000}]}, "cannot be written"),
        ({"url": 3}, "cannot be written"),
    ],
)
def test_values_that_do_not_fit(value: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        PLACE.encode(0, value)


def test_a_version_that_it_does_not_have() -> None:
    with pytest.raises(DataError, match="no version 3: it has 0 to 2"):
        PLACE.decode(3, b"")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", 3, 2), ("0-4", 4, 5), ("7", 7, 8), ("none", -1, 0), (None, -1, 0)],
)
def test_version_ranges(text: str | None, inside: int, outside: int) -> None:
    versions = Versions.parse(text)
    assert (inside in versions) == (inside >= 0)
    assert outside not in versions
