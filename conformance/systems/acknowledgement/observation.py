"""What requests show, as the spec's values: the variables that Acknowledgement has of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.acknowledgement.clients import Consumer, Producer
from conformance.systems.acknowledgement.requests import BrokerRequests
from conformance.systems.replication.channel import Channel
from conformance.systems.shared.replication.observation import VARIABLES as OF_REPLICATION
from conformance.tla import Fn, Value, make_function


@dataclass(frozen=True, slots=True)
class RequestsView:
    """Who asked, and what waits at which broker; all by name."""

    producers: Mapping[str, Producer]
    channels: Mapping[str, Channel]
    consumers: Mapping[str, Consumer]
    requests: Mapping[str, BrokerRequests]


OF_REQUESTS: dict[str, Callable[[RequestsView], Value]] = {
    "produce": lambda view: make_function(
        {name: one.value() for name, one in view.producers.items()}
    ),
    "parked": lambda view: Fn({name: one.is_parked for name, one in view.channels.items()}),
    "consumer": lambda view: make_function(
        {name: one.value() for name, one in view.consumers.items()}
    ),
    "checks": lambda view: Fn({name: one.actions.by for name, one in view.requests.items()}),
}
"""Each variable of the requests, and how their view shows it."""

VARIABLES = (*OF_REPLICATION, *OF_REQUESTS)
"""Observed."""
