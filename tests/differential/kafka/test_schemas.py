"""Our codec against Kafka's generated classes: the same bytes, the same JSON, for every schema."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.kafka.codec import Struct, WireField
from conformance.kafka.java import compile_java
from conformance.kafka.schemas import MessageSchema, Schemas
from tests.kafka_needed import VERSIONS, jars_or_skip

HERE = Path(__file__).parent
PACKAGES = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-metadata": "org.apache.kafka.common.metadata",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
}
WITH_DATA = ("request", "response", "header")


@dataclass
class Referee:
    """A JVM with Kafka's classes that reads what we wrote and writes it once more."""

    schemas: Schemas
    process: subprocess.Popen[str]

    def answer(self, message: MessageSchema, version: int, data: bytes) -> tuple[bytes, Any]:
        name = message.name + ("Data" if message.kind in WITH_DATA else "")
        assert self.process.stdin
        assert self.process.stdout
        print(
            f"{PACKAGES[message.artifact]}.{name} {version} {data.hex()}", file=self.process.stdin
        )
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert not line.startswith("error"), line
        written, _, text = line.partition(" ")
        return bytes.fromhex(written), json.loads(text)

    @property
    def known(self) -> list[tuple[MessageSchema, int]]:
        return [
            (message, version)
            for _, message in sorted(self.schemas.messages.items())
            if message.artifact in PACKAGES
            for version in range(message.versions.low, message.versions.high + 1)
        ]


@pytest.fixture(scope="module", params=VERSIONS)
def referee(request: pytest.FixtureRequest) -> Iterator[Referee]:
    jars = jars_or_skip(request.param)
    classes = compile_java([HERE / "Referee.java"], jars.classpath)
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}", "Referee"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Referee(Schemas.of(jars.classpath), process)
        process.kill()


def as_json(layout: Struct, value: dict[str, Any]) -> dict[str, Any]:
    """What Kafka's JSON converter writes: bytes in base 64, tagged defaults left out."""
    return {
        entry.name: field_as_json(entry, value[entry.name])
        for entry in layout.fields
        if entry.tag is None or value[entry.name] != entry.default
    }


def field_as_json(entry: WireField, value: Any) -> Any:
    if value is None:
        return None
    if entry.array:
        return [element_as_json(entry, element) for element in value]
    return element_as_json(entry, value)


def element_as_json(entry: WireField, value: Any) -> Any:
    if entry.struct is not None:
        return as_json(entry.struct, value)
    if entry.type == "records":
        return ""  # the converter does not print them
    return base64.b64encode(value).decode() if entry.type == "bytes" else value


NUMBERS = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    "uuid": st.binary(min_size=16, max_size=16).map(
        lambda data: base64.urlsafe_b64encode(data)[:22].decode()
    ),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
}


def values(layout: Struct) -> st.SearchStrategy[dict[str, Any]]:
    """Any value of the layout."""
    return st.fixed_dictionaries({entry.name: field_values(entry) for entry in layout.fields})


def field_values(entry: WireField) -> st.SearchStrategy[Any]:
    one = values(entry.struct) if entry.struct is not None else NUMBERS[entry.type]
    if entry.array:
        one = st.lists(one, max_size=3, unique_by=repr)
    return st.none() | one if entry.nullable else one


def test_defaults_of_every_message_and_version_are_kafkas_bytes(referee: Referee) -> None:
    assert len(referee.known) > 600
    for message, version in referee.known:
        layout = message.layout(version)
        ours = message.encode(version, {})
        assert message.decode(version, ours) == layout.defaults()
        theirs, text = referee.answer(message, version, ours)
        assert theirs == ours, (message.name, version)
        assert text == as_json(layout, layout.defaults()), (message.name, version)


# Kafka keeps some arrays as sets by key: equal keys would be one element there.
def test_any_value_is_kafkas_bytes_and_json(referee: Referee) -> None:
    known = [(message.name, version) for message, version in referee.known]

    @settings(
        max_examples=100,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        name, version = data.draw(st.sampled_from(known))
        message = referee.schemas.message(name)
        layout = message.layout(version)
        value = data.draw(values(layout))
        ours = message.encode(version, value)
        assert message.decode(version, ours) == value
        theirs, text = referee.answer(message, version, ours)
        assert theirs == ours
        assert text == as_json(layout, value)

    check()
