"""What passes on one connection, decoded: Kafka's frames in both directions, and their pairing."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformance.kafka.batches import MAGIC, header_at
from conformance.kafka.schemas import DecodeError, Schemas

LARGEST = 200 * 1024 * 1024
"""A longer frame is no frame: Kafka's own limit is 100 MB (socket.request.max.bytes)."""

_RECORDS = "records"


class Splitter:
    """Cuts a stream of bytes into frames: a length of four bytes, then as many bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that `data` completes, without their lengths. Raises DecodeError."""
        self._buffer += data
        while len(self._buffer) >= 4:
            (size,) = struct.unpack_from(">i", self._buffer)
            if not 0 <= size <= LARGEST:
                raise DecodeError(f"A frame of {size} bytes: this is not Kafka's protocol.")
            if len(self._buffer) < 4 + size:
                return
            frame = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            yield frame


def framed(frame: bytes) -> bytes:
    """A frame as it is sent: with its length in front."""
    return struct.pack(">i", len(frame)) + frame


@dataclass(frozen=True, slots=True)
class ObservedMessage:
    """A message that passed."""

    direction: str
    """`request` or `response`."""
    api: str
    version: int
    correlation: int | None
    client: str | None
    body: dict[str, Any] | None
    """None if it could not be decoded; `problem` says why."""
    problem: str = ""


@dataclass(slots=True)
class Conversation:
    """Pairs answers with the requests of one connection by their correlation id."""

    schemas: Schemas
    client: str | None = None
    """The client id that the connection's first request gave."""
    _waiting: dict[int, tuple[int, int, str | None]] = field(default_factory=dict)

    def request(self, frame: bytes) -> ObservedMessage:
        """A request that passes; what cannot be decoded is told, not dropped."""
        try:
            request = self.schemas.decode_request(frame)
        except DecodeError as error:
            return self._undecoded(frame, str(error))
        self.client = self.client or request.client_id
        # A Produce request with acks=0 is never answered.
        if not (request.api == "Produce" and request.body["acks"] == 0):
            self._waiting[request.correlation_id] = (
                request.api_key,
                request.version,
                request.client_id,
            )
        return ObservedMessage(
            "request",
            request.api,
            request.version,
            request.correlation_id,
            request.client_id,
            request.body,
        )

    def response(self, frame: bytes) -> ObservedMessage:
        """An answer that passes."""
        if len(frame) < 4:
            return ObservedMessage(
                "response", "?", -1, None, self.client, None, "no correlation id"
            )
        (correlation,) = struct.unpack_from(">i", frame)
        if correlation not in self._waiting:
            problem = "no request of this connection has its correlation id"
            return ObservedMessage("response", "?", -1, correlation, self.client, None, problem)
        key, version, client = self._waiting.pop(correlation)
        api = self.schemas.api(key)
        try:
            _, body = self.schemas.decode_response(key, version, frame)
        except DecodeError as error:
            return ObservedMessage("response", api, version, correlation, client, None, str(error))
        return ObservedMessage("response", api, version, correlation, client, body)

    def _undecoded(self, frame: bytes, problem: str) -> ObservedMessage:
        if len(frame) < 8:
            return ObservedMessage("request", "?", -1, None, self.client, None, problem)
        key, version, correlation = struct.unpack_from(">hhi", frame)
        self._waiting[correlation] = (key, version, self.client)
        api = self.schemas.api(key)
        return ObservedMessage("request", api, version, correlation, self.client, None, problem)


def plain(value: Any, name: str = "") -> Any:
    """A body for JSON: records as the headers of their batches, other bytes in base 64."""
    match value:
        case dict():
            return {key: plain(inner, str(key)) for key, inner in value.items()}
        case list():
            return [plain(inner, name) for inner in value]
        case bytes() if name == _RECORDS:
            return batches(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            return value


def batches(records: bytes) -> list[dict[str, int]]:
    """The headers of the record batches (magic 2) in a Produce or Fetch message.

    A batch that is cut off at the end, as a fetch may be, is left out.
    """
    result: list[dict[str, int]] = []
    position = 0
    while header := header_at(records, position):
        if header.magic != MAGIC or position + header.size > len(records):
            break
        result.append(
            {
                "baseOffset": header.base_offset,
                "lastOffset": header.base_offset + header.last_offset_delta,
                "leaderEpoch": header.leader_epoch,
                "count": header.records,
                "attributes": header.attributes,
                "producerId": header.producer_id,
                "producerEpoch": header.producer_epoch,
                "baseSequence": header.base_sequence,
            }
        )
        position += header.size
    return result
