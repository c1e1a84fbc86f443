"""What the requests of one topic share: their versions, and how they name the topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from conformance.kafka.entities import make, module_of
from conformance.systems.protocol import ActionRefused
from conformance.systems.wire.port import Asked

_NEWEST_BY_NAME: Mapping[str, int] = MappingProxyType({"produce": 12, "fetch": 12})
"""Later versions name topics by ids only, which CreateTopics answers from version 7 on."""


@dataclass(frozen=True, slots=True)
class TopicRequests:
    """Of one topic, at the port of its leader."""

    port: Asked
    topic: str
    topic_id: UUID
    """Zero if the broker has told none."""

    def version(self, api: str) -> int:
        """The newest that both sides know and that can name the topic."""
        version = self.port.versions[api]
        return version if self.topic_id.int else min(version, _NEWEST_BY_NAME.get(api, version))

    def module(self, api: str) -> Any:
        """kio's module of a request in this version."""
        return module_of(api, self.version(api), "request")

    def named(self, kind: Any, **values: object) -> Any:
        """A request's topic, by name or by id (KIP-516), as its version wants."""
        return make(kind, name=self.topic, topic=self.topic, topic_id=self.topic_id, **values)


def expect(request: str, answered: str, error: str = "NONE") -> None:
    """Raises ActionRefused unless the request was answered so."""
    if answered != error:
        raise ActionRefused(f"{request} was answered {answered}, not {error}")
