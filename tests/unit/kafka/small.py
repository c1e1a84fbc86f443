"""A protocol with one request, of two versions, and the headers of Kafka's."""

from __future__ import annotations

from conformance.kafka.schemas import MessageSchema, Schemas, parse_schema

_TEXTS = (
    """{ "type": "header", "name": "RequestHeader", "validVersions": "0-2",
    "flexibleVersions": "2+", "fields": [
    { "name": "RequestApiKey", "type": "int16", "versions": "0+" },
    { "name": "RequestApiVersion", "type": "int16", "versions": "0+" },
    { "name": "CorrelationId", "type": "int32", "versions": "0+" },
    { "name": "ClientId", "type": "string", "versions": "1+", "nullableVersions": "1+",
      "flexibleVersions": "none" } ] }""",
    """{ "type": "header", "name": "ResponseHeader", "validVersions": "0-1",
    "flexibleVersions": "1+", "fields": [
    { "name": "CorrelationId", "type": "int32", "versions": "0+" } ] }""",
    """{ "apiKey": 1, "type": "request", "name": "AskRequest", "validVersions": "0-1",
    "flexibleVersions": "1+", "fields": [
    { "name": "Text", "type": "string", "versions": "0+" },
    { "name": "More", "type": "int32", "versions": "1+" } ] }""",
    """{ "apiKey": 1, "type": "response", "name": "AskResponse", "validVersions": "0-1",
    "flexibleVersions": "1+", "fields": [
    { "name": "Error", "type": "int16", "versions": "0+" },
    { "name": "Hint", "type": "string", "versions": "1+" } ] }""",
    """{ "apiKey": 3, "type": "request", "name": "MetadataRequest", "validVersions": "0",
    "flexibleVersions": "none", "fields": [] }""",
    """{ "apiKey": 3, "type": "response", "name": "MetadataResponse", "validVersions": "0",
    "flexibleVersions": "none", "fields": [
    { "name": "Brokers", "type": "[]Broker", "versions": "0+", "fields": [
      { "name": "NodeId", "type": "int32", "versions": "0+" },
      { "name": "Host", "type": "string", "versions": "0+" },
      { "name": "Port", "type": "int32", "versions": "0+" } ] } ] }""",
)


def _schemas() -> Schemas:
    messages = [parse_schema(text) for text in _TEXTS]

    def of(kind: str) -> dict[int, MessageSchema]:
        return {one.api_key or 0: one for one in messages if one.kind == kind}

    return Schemas({one.name: one for one in messages}, of("request"), of("response"), {}, {})


SMALL = _schemas()
