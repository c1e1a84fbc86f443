"""What a workload needs of brokers besides its clients: topics, and the features they offer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import cycle

from conformance.errors import UserError
from conformance.kafka.entities import class_of, make, module_of
from conformance.kafka.maven import Tell
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.address import Address, parse_address
from conformance.systems.wire.admin import has_leaders, make_topic
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import security_of

_MOST_REPLICAS = 3
_WITH_FEATURES = 3
"""The first ApiVersions that tells the cluster's features."""
_PATIENCE_S = 60.0
"""Seconds until the topics must be there: brokers may be away while faults are made."""


def prepared(
    bootstrap: str,
    topics: Sequence[str],
    partitions: int,
    configs: Mapping[str, str],
    tell: Tell,
) -> Mapping[str, int]:
    """Create the topics; the level of each feature that the cluster has settled on.

    Each gets a replica on each broker, at most three. Raises UserError.
    """
    addresses = _addresses(bootstrap)
    until = time.monotonic() + _PATIENCE_S
    for address in cycle(addresses):
        try:
            return _prepared_at(address, topics, partitions, configs)
        except (SystemFailed, UserError) as error:
            if address == addresses[-1] and time.monotonic() > until:
                if isinstance(error, UserError):
                    raise
                raise UserError(
                    f"The brokers at {bootstrap} do not make the topics: {error}."
                ) from error
            tell(f"the brokers at {bootstrap} do not make the topics yet")
            time.sleep(0.5)
    raise AssertionError("addresses are never none")


def _addresses(bootstrap: str) -> list[Address]:
    try:
        return [parse_address(address.strip()) for address in bootstrap.split(",")]
    except UserError:
        raise UserError(
            f"--bootstrap takes HOST:PORT, or several with commas; {bootstrap!r} is not that."
        ) from None


def _prepared_at(
    address: Address, topics: Sequence[str], partitions: int, configs: Mapping[str, str]
) -> dict[str, int]:
    port = Port(address, security_of("", ""))
    try:
        replicas = min(_MOST_REPLICAS, _brokers(port))
        for topic in topics:
            if has_leaders(port, topic, partitions):
                continue  # an earlier attempt made it
            if make_topic(port, topic, partitions, replicas=replicas, configs=configs) is None:
                raise UserError(f"The broker at {port.address} does not offer CreateTopics.")
        return _features(port)
    finally:
        port.close()


def _brokers(port: Port) -> int:
    module = module_of("metadata", port.versions["metadata"], "request")
    request = make(
        module.MetadataRequest,
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return len(port.ask_body(request).brokers)


def _features(port: Port) -> dict[str, int]:
    request = make(
        class_of("api_versions", _WITH_FEATURES, "request"),
        client_software_name="kconform",
        client_software_version="1",
    )
    features = getattr(port.ask_body(request), "finalized_features", ())
    return {feature.name: int(feature.max_version_level) for feature in features}
