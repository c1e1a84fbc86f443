"""Messages of Kafka's protocol as kio's entities: frames made and read, versions converted.

A frame is a size of four bytes, a header and a body (KIP-482 says which headers have tagged fields;
kio's classes know). Names of APIs are kio's: `join_group`. The harness speaks of a message in one
version (`newest`), and `in_version` makes it another one: docs/decisions/request-codec.md says why.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import timedelta
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.serial._parse import get_field_reader
from kio.static.primitive import i32Timedelta

from conformance.kafka.describe_transactions import DescribeTransactionsResponse

Entity = Any
"""One of kio's frozen dataclasses; which one depends on the API and its version."""
EntityClass = Any
"""The class of an entity."""
Kind = Literal["request", "response"]

NO_TIME = i32Timedelta.parse(timedelta(0))
SIZE_BYTES = 4
"""In front of a frame: they say how long the rest is."""
_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hh")


class MalformedFrame(Exception):
    """Bytes that are no message of this API and version; the message says what is wrong."""


class TrailingBytes(MalformedFrame):
    """A request with bytes behind its last field; Kafka's brokers pass over them.

    `received` is the request without them.
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
    """The class of a message's body: kio's, or ours where brokers send what kio's cannot hold."""
    name = "".join(part.capitalize() for part in api.split("_")) + kind.capitalize()
    return _OURS.get(name) or getattr(module_of(api, version, kind), name)


_OURS: Mapping[str, EntityClass] = MappingProxyType(
    {"DescribeTransactionsResponse": DescribeTransactionsResponse}
)


def api_of(body: Entity) -> str:
    """The API that a body is a message of."""
    return str(type(body).__module__.split(".")[2])


def make(kind: EntityClass, **values: object) -> Entity:
    """An entity; the values of fields that its version lacks are left out."""
    known = _field_names(kind)
    return kind(**{name: value for name, value in values.items() if name in known})


@cache
def _field_names(kind: EntityClass) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


# ---- versions ----------------------------------------------------------------------------------

NEWEST: Mapping[str, int] = MappingProxyType(
    {
        "join_group": 9,
        "sync_group": 5,
        "heartbeat": 4,
        "leave_group": 5,
        "offset_commit": 9,
        "offset_fetch": 9,
        "describe_groups": 5,
        "delete_groups": 2,
        "find_coordinator": 4,
    }
)
"""The version in which the harness speaks of the messages of groups. A later OffsetCommit or
OffsetFetch names topics by their ids."""

_IN_A_LIST: Mapping[str, str] = MappingProxyType(
    {
        "LeaveGroupRequest": "members",  # from version 3 on (KIP-345)
        "FindCoordinatorRequest": "coordinator_keys",  # 4 (KIP-699)
        "FindCoordinatorResponse": "coordinators",
        "OffsetFetchRequest": "groups",  # 8 (KIP-709)
        "OffsetFetchResponse": "groups",
    }
)
"""Messages whose later versions have several of what was one: the field with the list of them."""
_REBALANCE = "rebalance_timeout"
_KEY = "key"
"""FindCoordinator's name of what is an element of `coordinator_keys` later."""


def newest(api: str, kind: Kind) -> Any:
    """kio's module with the classes in which the harness speaks of a message."""
    return module_of(api, NEWEST[api], kind)


def in_version(body: Entity, version: int) -> Entity:
    """The same message in another version of its API.

    What that version cannot say is left out; what the given one did not say has the field's
    default, or is empty. ValueError if there are several of what the version has one of.
    """
    own = _class(body)
    if own.__version__ == version:
        return body
    kind: Kind = "request" if own.__name__.endswith("Request") else "response"
    target = class_of(api_of(body), version, kind)
    listed = _IN_A_LIST.get(own.__name__)
    sources = [body]
    if listed is not None and listed not in _field_names(target):
        elements = getattr(body, listed, None)
        if elements is not None:
            if len(elements) != 1:
                raise ValueError(f"{own.__name__} {version} has no {len(elements)} {listed}")
            sources.insert(0, _Key(elements[0]) if isinstance(elements[0], str) else elements[0])
    made = _converted(target, *sources)
    if listed is not None and listed in _field_names(target) and not hasattr(body, listed):
        made = _with(made, listed, body)
    return made


@dataclass(frozen=True, slots=True)
class _Key:
    key: str


def _with(made: Entity, listed: str, body: Entity) -> Entity:
    """The message with the one element that an older version has at its top."""
    element = _shapes(_class(made))[listed].element
    only = getattr(body, _KEY) if element is None else _converted(element, body)
    return replace(made, **{listed: (only,)})


@dataclass(frozen=True, slots=True)
class _Shape:
    """A field: the entity's class that it or its elements have, if any; its value if unsaid."""

    element: EntityClass | None
    nullable: bool
    has_default: bool
    empty: object


@cache
def _shapes(kind: EntityClass) -> Mapping[str, _Shape]:
    hints = get_type_hints(kind)
    return {field.name: _shape(field, hints[field.name]) for field in fields(kind)}


def _shape(field: Any, hint: Any) -> _Shape:
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    main = next(part for part in parts if part is not type(None))
    is_array = get_origin(main) is tuple
    element = get_args(main)[0] if is_array else main
    return _Shape(
        element=element if is_dataclass(element) else None,
        nullable=type(None) in parts,
        has_default=field.default is not MISSING,
        empty=() if is_array else _EMPTY.get(field.metadata.get("kafka_type", "")),
    )


_EMPTY: Mapping[str, object] = MappingProxyType(
    {"string": "", "bytes": b"", "bool": False, "timedelta_i32": NO_TIME}
)


def _converted(kind: EntityClass, *sources: Entity) -> Entity:
    values = {}
    for name, shape in _shapes(kind).items():
        source = next((each for each in sources if hasattr(each, name)), None)
        value = None if source is None else getattr(source, name)
        if source is None and shape.has_default:
            continue
        if value is None and not shape.nullable:
            value = shape.empty
        elif value is not None and shape.element is not None:
            value = _nested(shape.element, value)
        values[name] = value
    if kind.__name__ == "JoinGroupRequest" and not hasattr(sources[0], _REBALANCE):
        # Before JoinGroup 1 the session's timeout was the rebalance's too (KIP-62).
        values[_REBALANCE] = values["session_timeout"]
    return kind(**values)


def _nested(kind: EntityClass, value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_converted(kind, each) for each in value])
    return _converted(kind, value)


# ---- frames ------------------------------------------------------------------------------------


@cache
def _writer(kind: EntityClass) -> Callable[[io.BytesIO, Entity], None]:
    return entity_writer(kind)


@cache
def _reader(kind: EntityClass) -> Callable[[bytes, int], tuple[Entity, int]]:
    return entity_reader(kind)


def _class(body: Entity) -> EntityClass:
    return type(body)


def body_bytes(body: Entity) -> bytes:
    """An entity without a header."""
    buffer, kind = io.BytesIO(), _class(body)
    _writer(kind)(buffer, body)
    return buffer.getvalue()


def body_from(kind: EntityClass, data: bytes) -> Entity:
    """An entity without a header; bytes behind it are passed over. Raises MalformedFrame."""
    try:
        return _reader(kind)(data, 0)[0]
    except Exception as error:  # kio raises what its buffers do: errors of many families
        where = _broken_field(data, 0, kind)
        raise MalformedFrame(f"{where}: {type(error).__name__}: {error}") from error


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
    content = body_bytes(header) + body_bytes(body)
    return _SIZE.pack(len(content)) + content


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
    except Exception as error:  # kio raises whatever the bytes lead to
        where = _broken_field(frame, position, part)
        raise MalformedFrame(f"{name}: {where}: {type(error).__name__}: {error}") from error
    return header, body, len(frame) - position - length


def _broken_field(frame: bytes, position: int, kind: EntityClass) -> str:
    """The first field of an entity that cannot be read, by Kafka's name, and where it begins."""
    for field in fields(kind):
        if "tag" in field.metadata:
            continue
        reader = get_field_reader(kind, field, False, False)
        try:
            _, length = reader(frame, position)
        except Exception:  # noqa: BLE001  kio raises whatever the bytes lead to
            return f"{_in_kafka(field.name)} at byte {position} of {len(frame)}"
        position += length
    return f"tagged fields at byte {position} of {len(frame)}"


def _in_kafka(name: str) -> str:
    """A field's name as Kafka's schemas have it."""
    return "".join(part.capitalize() for part in name.split("_"))
