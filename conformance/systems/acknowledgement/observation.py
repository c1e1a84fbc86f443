"""What requests show, as the spec's values: the variables that Acknowledgement has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.acknowledgement.clients import FetchingConsumer, Producer
from conformance.systems.acknowledgement.requests import BrokerRequests
from conformance.systems.replication.channel import FetchChannel
from conformance.systems.shared.replication.observation import VARIABLES as OF_REPLICATION
from conformance.tla import Fn, Value, make_function


@dataclass(frozen=True, slots=True)
class RequestsView:
    """Who asked, and what waits at which broker; all by name."""

    producers: Mapping[str, Producer]
    channels: Mapping[str, FetchChannel]
    consumers: Mapping[str, FetchingConsumer]
    requests: Mapping[str, BrokerRequests]


OF_REQUESTS: dict[str, Callable[[RequestsView], Value]] = {
    "produce": lambda view: make_function(
        {name: id_.value() for name, id_ in view.producers.items()}
    ),
    "parked": lambda view: Fn({name: id_.is_parked for name, id_ in view.channels.items()}),
    "consumer": lambda view: make_function(
        {name: id_.value() for name, id_ in view.consumers.items()}
    ),
    "checks": lambda view: Fn({name: id_.actions.by for name, id_ in view.requests.items()}),
}
"""Each variable of the requests, and how their view shows it."""

VARIABLES = (*OF_REPLICATION, *OF_REQUESTS)
"""Observed."""
