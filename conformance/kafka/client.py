"""A blocking connection to one broker, for what the cluster and its tests ask for themselves."""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from conformance.errors import UserError
from conformance.kafka.schemas import Body, Schemas

CLIENT_ID = "kconform"


class BrokerGone(UserError):
    """A broker closed the connection, or does not answer in time."""


class Connection:
    """One TCP connection; one request at a time, in the newest version that both sides know."""

    def __init__(self, schemas: Schemas, port: int, *, seconds: float = 15.0) -> None:
        self._schemas = schemas
        self._where = f"127.0.0.1:{port}"
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        except OSError as error:
            raise BrokerGone(f"No broker accepts connections at {self._where}: {error}") from error
        self._correlation = 0
        self._versions: dict[int, int] = {18: 0}

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def call(self, api: str, body: Body, version: int | None = None) -> Body:
        """The answer to a request (`Metadata`). Raises BrokerGone."""
        key = self._schemas.message(f"{api}Request").api_key or 0
        chosen = self._version(key) if version is None else version
        self._correlation += 1
        frame = self._schemas.encode_request(api, chosen, self._correlation, CLIENT_ID, body)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            answer = self._read(struct.unpack(">i", self._read(4))[0])
        except OSError as error:
            raise BrokerGone(f"The broker at {self._where} does not answer: {error}") from error
        return self._schemas.decode_response(key, chosen, answer)[1]

    def _version(self, key: int) -> int:
        if key not in self._versions:
            known = self.call("ApiVersions", {}, 0)["apiKeys"]
            self._versions |= {
                entry["apiKey"]: min(
                    entry["maxVersion"], self._schemas.requests[entry["apiKey"]].versions.high
                )
                for entry in known
                if entry["apiKey"] in self._schemas.requests
            }
        return self._versions[key]

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise BrokerGone(f"The broker at {self._where} closed the connection.")
            parts += part
        return bytes(parts)
