"""Decodes and encodes Kafka's messages and records from the JSON schemas in a version's own jars.

For each message and version a reader and a writer are compiled to Python. A value is a dict whose
keys are the schema's field names in lower camel case, as Kafka's own JSON form has them: an array
is a list, a uuid Kafka's 22 letters, bytes and records are `bytes`. A tagged field that was not
sent has its default; tagged fields that the schema does not know are kept under `_tagged`.

Source: clients/src/main/resources/common/message/README.md of Apache Kafka (the schema language),
KIP-482 (flexible versions), the protocol guide (primitive types).
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.errors import DataError
from conformance.kafka.codec import (
    Reader,
    Struct,
    Writer,
    append_unsigned_varint,
    compile_reader,
    compile_writer,
    read_unsigned_varint,
)

Body = dict[str, Any]
"""A decoded struct: the one place where the type of what is inside depends on the schema."""

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
_FOLDERS = ("common/message/", "common/metadata/", "message/")
_API_VERSIONS = 18
_STORAGE = "kafka-storage"


class DecodeError(DataError):
    """Bytes that are not what the schema says."""


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; empty if `low > high`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """`3+`, `0-4`, `7` or `none`."""
        if text is None or text == "none":
            return cls(0, -1)
        low, dash, high = text.rstrip("+").partition("-")
        if text.endswith("+"):
            return cls(int(low), 32767)
        return cls(int(low), int(high if dash else low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high


@dataclass(slots=True)
class MessageSchema:
    """One schema: a request, a response, a header or a record."""

    name: str
    kind: str
    """As the schema's `type`: request, response, header, metadata, data, coordinator-key, ..."""
    api_key: int | None
    versions: Versions
    flexible: Versions
    definition: Mapping[str, Any] = field(repr=False)
    artifact: str = ""
    """The jar that it came from: kafka-clients, kafka-metadata, ..."""
    _readers: dict[int, Reader] = field(default_factory=dict, repr=False)
    _writers: dict[int, Writer] = field(default_factory=dict, repr=False)

    def reader(self, version: int) -> Reader:
        """Reads from bytes at a position: the value and the position behind it."""
        if version not in self._readers:
            self._readers[version] = compile_reader(self.layout(version))
        return self._readers[version]

    def writer(self, version: int) -> Writer:
        """Appends a value to a bytearray; DataError if it does not fit the schema."""
        if version not in self._writers:
            self._writers[version] = compile_writer(self.layout(version))
        return self._writers[version]

    def layout(self, version: int) -> Struct:
        """The fields that this version has on the wire."""
        if version not in self.versions:
            raise DataError(
                f"{self.name} has no version {version}: it has {self.versions.low} to "
                f"{self.versions.high}."
            )
        return Struct.of(self.definition, version, flexible=version in self.flexible)

    def decode(self, version: int, data: bytes) -> Body:
        """The value that `data` is, all of it. Raises DecodeError."""
        value, end = self.decode_at(version, data, 0)
        if end != len(data):
            raise DecodeError(
                f"{self.name} version {version} ends at byte {end} of {len(data)}: "
                "the bytes are of another message or version."
            )
        return value

    def decode_at(self, version: int, data: bytes, position: int) -> tuple[Body, int]:
        """The value at `position` and the position behind it. Raises DecodeError."""
        read = self.reader(version)
        try:
            value, end = read(data, position)
        except (IndexError, struct.error, ValueError) as error:
            raise DecodeError(f"{self.name} version {version} cannot be read: {error}") from error
        if end > len(data):
            raise DecodeError(f"{self.name} version {version} is cut off at byte {len(data)}.")
        return value, end

    def encode(self, version: int, value: Mapping[str, Any]) -> bytes:
        """The bytes of `value`; fields that are left out have their defaults. Raises DataError."""
        write = self.writer(version)
        out = bytearray()
        try:
            write(out, value)
        except (struct.error, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{self.name} version {version} cannot be written: {error}") from error
        return bytes(out)


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it came, the length in front of it taken off."""

    api: str
    """Its name without `ReceivedRequest`: `Fetch`."""
    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Body


@dataclass(frozen=True, slots=True)
class RecordValue:
    """A record's value of `__cluster_metadata` or of a coordinator's topic."""

    name: str
    version: int
    body: Body


@dataclass(frozen=True, slots=True)
class Schemas:
    """All messages of one version of Kafka."""

    messages: Mapping[str, MessageSchema]
    requests: Mapping[int, MessageSchema]
    responses: Mapping[int, MessageSchema]
    metadata: Mapping[int, MessageSchema]
    """Records of `__cluster_metadata` by their key."""
    group_keys: Mapping[int, MessageSchema]
    """Keys of `__consumer_offsets` by the number in front of them."""

    @classmethod
    def of(cls, jars: Iterable[Path]) -> Schemas:
        """The schemas in the jars. Raises DataError if there are none."""
        schemas = [message for jar in jars for message in _messages_in(jar)]
        if not schemas:
            raise DataError("None of the jars holds the schemas of Kafka's messages.")
        return cls(
            messages={message.name: message for message in reversed(schemas)},
            requests=_by_key(schemas, "request"),
            responses=_by_key(schemas, "response"),
            # Tiered storage numbers its own records in kafka-storage, from 0 as well.
            metadata=_by_key((m for m in schemas if m.artifact != _STORAGE), "metadata"),
            group_keys=_group_keys(schemas),
        )

    def message(self, name: str) -> MessageSchema:
        """The message of that name: `FetchRequest`. Raises DataError."""
        try:
            return self.messages[name]
        except KeyError:
            raise DataError(f"This version of Kafka has no message {name}.") from None

    def api(self, key: int) -> str:
        """`Fetch` for 1; `api 999` for a key that the jars do not know."""
        known = self.requests.get(key)
        return known.name.removesuffix("Request") if known else f"api {key}"

    def decode_request(self, frame: bytes) -> ReceivedRequest:
        """Header and body of a request. Raises DecodeError."""
        try:
            key, version, correlation = struct.unpack_from(">hhi", frame)
        except struct.error as error:
            raise DecodeError(f"A request of {len(frame)} bytes has no header.") from error
        schema = self.requests.get(key)
        if schema is None or version not in schema.versions:
            raise DecodeError(f"There is no schema for api key {key} in version {version}.")
        header_version = 2 if version in schema.flexible else 1
        header, position = self.message("RequestHeader").decode_at(header_version, frame, 0)
        body = schema.decode(version, frame[position:])
        name = schema.name.removesuffix("Request")
        return ReceivedRequest(name, key, version, correlation, header["clientId"], body)

    def encode_request(
        self, api: str, version: int, correlation_id: int, client_id: str | None, body: Body
    ) -> bytes:
        """A request with its header, without the length in front of it."""
        schema = self.message(f"{api}Request")
        header = {
            "requestApiKey": schema.api_key,
            "requestApiVersion": version,
            "correlationId": correlation_id,
            "clientId": client_id,
        }
        header_version = 2 if version in schema.flexible else 1
        encoded = self.message("RequestHeader").encode(header_version, header)
        return encoded + schema.encode(version, body)

    def decode_response(self, key: int, version: int, frame: bytes) -> tuple[int, Body]:
        """Correlation id and body of the answer to a request of that key and version.

        A broker answers an ApiVersions request of a version that it does not know in version 0
        (KIP-511). Raises DecodeError.
        """
        schema = self.responses.get(key)
        if key == _API_VERSIONS and schema and version not in schema.versions:
            version = 0
        if schema is None or version not in schema.versions:
            raise DecodeError(f"There is no schema for api key {key} in version {version}.")
        header, position = self.message("ResponseHeader").decode_at(
            _response_header(schema, version), frame, 0
        )
        body = frame[position:]
        if key == _API_VERSIONS and body[:2] == b"\x00\x23":  # UNSUPPORTED_VERSION
            version = 0
        return header["correlationId"], schema.decode(version, body)

    def encode_response(self, api: str, version: int, correlation_id: int, body: Body) -> bytes:
        """An answer with its header, without the length in front of it."""
        schema = self.message(f"{api}Response")
        header = self.message("ResponseHeader").encode(
            _response_header(schema, version), {"correlationId": correlation_id}
        )
        return header + schema.encode(version, body)

    def decode_metadata_record(self, value: bytes) -> RecordValue:
        """A record's value of `__cluster_metadata`: frame version, api key, version, message.

        Source: org.apache.kafka.server.common.serialization.AbstractApiMessageSerde.
        """
        try:
            frame, position = read_unsigned_varint(value, 0)
            key, position = read_unsigned_varint(value, position)
            version, position = read_unsigned_varint(value, position)
        except IndexError as error:
            raise DecodeError("A metadata record is cut off in its frame.") from error
        schema = self.metadata.get(key)
        if frame != 1 or schema is None:
            raise DecodeError(f"A metadata record of frame version {frame}, api key {key}.")
        return RecordValue(schema.name, version, schema.decode(version, value[position:]))

    def encode_metadata_record(self, record: RecordValue) -> bytes:
        """What `decode_metadata_record` reads."""
        schema = self.message(record.name)
        out = bytearray(b"\x01")
        for number in (schema.api_key or 0, record.version):
            append_unsigned_varint(out, number)
        return bytes(out) + schema.encode(record.version, record.body)

    def decode_group_record(
        self, key: bytes, value: bytes | None
    ) -> tuple[RecordValue, RecordValue | None] | None:
        """A record of `__consumer_offsets`: its key and its value (None: a tombstone).

        None if the number in front of the key is of no schema: a newer version wrote it.
        """
        number = _short(key)
        schema = self.group_keys.get(number)
        if schema is None:
            return None
        # Until 3.9 the number is the key's version; since 4.0 it is its api key.
        version = number if number in schema.versions and schema.kind == "data" else 0
        decoded = RecordValue(schema.name, version, schema.decode(version, key[2:]))
        if value is None:
            return decoded, None
        values = self.message(schema.name.removesuffix("Key") + "Value")
        written = _short(value)
        return decoded, RecordValue(values.name, written, values.decode(written, value[2:]))


def _response_header(schema: MessageSchema, version: int) -> int:
    # A client cannot know the broker's version yet when it reads this one (KIP-511).
    return int(version in schema.flexible and schema.api_key != _API_VERSIONS)


def _short(data: bytes) -> int:
    if len(data) < 2:
        raise DecodeError("A coordinator's record has no version in front.")
    return int.from_bytes(data[:2], "big", signed=True)


def _by_key(messages: Iterable[MessageSchema], kind: str) -> dict[int, MessageSchema]:
    return {
        message.api_key: message
        for message in messages
        if message.kind == kind and message.api_key is not None and message.versions.high >= 0
    }


def _group_keys(messages: Iterable[MessageSchema]) -> dict[int, MessageSchema]:
    """Keys of the group coordinator; up to 3.9 a key's versions are the numbers in front."""
    keys: dict[int, MessageSchema] = {}
    for message in messages:
        if message.artifact != "kafka-group-coordinator" or not message.name.endswith("Key"):
            continue
        if message.kind == "coordinator-key" and message.api_key is not None:
            keys[message.api_key] = message
        elif message.kind == "data":
            keys |= dict.fromkeys(range(message.versions.low, message.versions.high + 1), message)
    return keys


def _messages_in(jar: Path) -> Iterable[MessageSchema]:
    try:
        with zipfile.ZipFile(jar) as archive:
            names = [name for name in archive.namelist() if name.endswith(".json")]
            texts = [archive.read(name) for name in names if name.startswith(_FOLDERS)]
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{jar} is damaged: {error}. Remove it and fetch it again.") from error
    artifact = re.sub(r"-\d+\.\d+.*$", "", jar.name)
    for text in texts:
        yield parse_schema(text.decode("utf-8"), artifact)


def parse_schema(text: str, artifact: str = "") -> MessageSchema:
    """A schema file: JSON with comments."""
    definition = json.loads(_COMMENT.sub(lambda match: match[1] or "", text))
    return MessageSchema(
        name=definition["name"],
        kind=definition["type"],
        api_key=definition.get("apiKey"),
        versions=Versions.parse(definition["validVersions"]),
        flexible=Versions.parse(definition.get("flexibleVersions")),
        definition=definition,
        artifact=artifact,
    )
