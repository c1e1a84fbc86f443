"""Frames of Kafka's protocol, made and read with kio's entities: one class per API and version.

A frame is a size of four bytes, a header and a body (KIP-482 says which headers have tagged fields;
kio's classes know). Names of APIs are kio's: `join_group`.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Literal

from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.serial._parse import get_field_reader
from kio.static.primitive import i32Timedelta

Entity = Any
"""One of kio's frozen dataclasses; which one depends on the API and its version."""
EntityClass = Any
"""The class of an entity."""
Kind = Literal["request", "response"]

NO_TIME = i32Timedelta.parse(timedelta(0))
_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hh")


class MalformedFrame(Exception):
    """Bytes that are no message of this API and version; the message says what is wrong."""


class TrailingBytes(MalformedFrame):
    """A request with bytes behind its last field; Kafka's brokers pass over them.

    `received` is what it says before them.
    """

    def __init__(self, received: Received, count: int) -> None:
        super().__init__(f"{received.api} {received.version}: {count} bytes too many")
        self.received = received


@dataclass(frozen=True, slots=True)
class Received:
    """A request as a server reads it."""

    api: str
    version: int
    correlation_id: int
    client_id: str
    body: Entity


def milliseconds(amount: int) -> Entity:
    """A duration as the entities hold it."""
    return i32Timedelta.parse(timedelta(milliseconds=amount))


def in_milliseconds(duration: timedelta) -> int:
    """A duration of an entity."""
    return duration // timedelta(milliseconds=1)


@cache
def module_of(api: str, version: int, kind: Kind) -> ModuleType:
    """kio's module of one message; ModuleNotFoundError if it has none."""
    return import_module(f"kio.schema.{api}.v{version}.{kind}")


def has_request(api: str, version: int) -> bool:
    """Whether Kafka has this API in this version."""
    try:
        module_of(api, version, "request")
    except ModuleNotFoundError:
        return False
    return True


@cache
def class_of(api: str, version: int, kind: Kind) -> EntityClass:
    """The class of a message's body."""
    name = "".join(part.capitalize() for part in api.split("_")) + kind.capitalize()
    found: EntityClass = getattr(module_of(api, version, kind), name)
    return found


def make(kind: EntityClass, **values: object) -> Entity:
    """An entity; the values of fields that its version lacks are left out."""
    known = _field_names(kind)
    return kind(**{name: value for name, value in values.items() if name in known})


@cache
def _field_names(kind: EntityClass) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


@cache
def _writer(kind: EntityClass) -> Callable[[io.BytesIO, Entity], None]:
    return entity_writer(kind)


@cache
def _reader(kind: EntityClass) -> Callable[[bytes, int], tuple[Entity, int]]:
    return entity_reader(kind)


def request_frame(body: Entity, correlation_id: int, client_id: str) -> bytes:
    """A request, its size in front."""
    kind = type(body)
    header = make(
        kind.__header_schema__,
        request_api_key=kind.__api_key__,
        request_api_version=kind.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return _frame(header, body)


def response_frame(body: Entity, correlation_id: int) -> bytes:
    """A response, its size in front."""
    return _frame(make(type(body).__header_schema__, correlation_id=correlation_id), body)


def _frame(header: Entity, body: Entity) -> bytes:
    buffer = io.BytesIO(b"\0\0\0\0")
    buffer.seek(_SIZE.size)
    for part in (header, body):
        kind: EntityClass = type(part)
        _writer(kind)(buffer, part)
    content = buffer.getbuffer()
    _SIZE.pack_into(content, 0, len(content) - _SIZE.size)
    return bytes(content)


def frame_size(head: bytes | bytearray) -> int:
    """The size of the frame that follows, of its first four bytes."""
    size: int = _SIZE.unpack_from(head)[0]
    return size


def requested(frame: bytes) -> tuple[str, int]:
    """The API and version of a request, without its size; "" for an API that nobody knows."""
    if len(frame) < _HEAD.size:
        raise MalformedFrame(f"a request of {len(frame)} bytes has no header")
    key, version = _HEAD.unpack_from(frame)
    return api_key_map.get(key, ""), version


def read_request(frame: bytes) -> Received:
    """A request without its size. Raises MalformedFrame; TrailingBytes if all fields are there."""
    api, version = requested(frame)
    try:
        kind = class_of(api, version, "request")
    except ModuleNotFoundError as error:
        raise MalformedFrame(f"no request {api or 'of this key'} of version {version}") from error
    header, body, over = _read(frame, kind, f"{api} {version}")
    received = Received(api, version, header.correlation_id, header.client_id or "", body)
    if over:
        raise TrailingBytes(received, over)
    return received


def read_response(frame: bytes, kind: EntityClass) -> tuple[int, Entity]:
    """The correlation id and body of a response without its size. Raises MalformedFrame."""
    header, body, over = _read(frame, kind, kind.__name__)
    if over:
        raise MalformedFrame(f"{kind.__name__}: {over} bytes too many")
    return header.correlation_id, body


def _read(frame: bytes, kind: EntityClass, name: str) -> tuple[Entity, Entity, int]:
    """Header, body, and the number of bytes behind them. MalformedFrame names the broken field."""
    position, part = 0, kind.__header_schema__
    try:
        header, position = _reader(part)(frame, 0)
        part = kind
        body, length = _reader(part)(frame, position)
    except Exception as error:  # kio raises what its buffers do: errors of many families
        where = _broken_field(frame, position, part)
        raise MalformedFrame(f"{name}: {where}: {type(error).__name__}: {error}") from error
    return header, body, len(frame) - position - length


def _broken_field(frame: bytes, position: int, kind: EntityClass) -> str:
    """The first field of an entity that cannot be read, by Kafka's name, and where it begins."""
    for one in fields(kind):
        if "tag" in one.metadata:
            continue
        reader = get_field_reader(kind, one, False, False)
        try:
            _, length = reader(frame, position)
        except Exception:  # noqa: BLE001  as above
            return f"{_in_kafka(one.name)} at byte {position} of {len(frame)}"
        position += length
    return f"tagged fields at byte {position} of {len(frame)}"


def _in_kafka(name: str) -> str:
    """A field's name as Kafka's schemas have it."""
    return "".join(part.capitalize() for part in name.split("_"))
