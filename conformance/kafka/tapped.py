"""A cluster whose every listener has a tap in front of it."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.kafka.cluster import BROKER, CLIENT, CONTROLLER, LISTENERS, Endpoints
from conformance.kafka.ports import free_ports
from conformance.kafka.tap import TapLink


def tapped(nodes: Sequence[int]) -> tuple[Endpoints, list[TapLink]]:
    """Ports for nodes that reach one another, and are reached, through a tap's links.

    Nodes find the voters by a link for each pair of nodes. A listener that is advertised to all has
    one for each target, where the source is told from the client id: that between brokers, and
    since KIP-853 that of the controllers too, by which followers find the leader of the quorum.
    """
    pairs = [(node, listener) for node in nodes for listener in LISTENERS]
    routes = [(node, other) for node in nodes for other in nodes]
    ports = free_ports(2 * len(pairs) + len(routes))
    bound = dict(zip(pairs, ports, strict=False))
    advertised = dict(zip(pairs, ports[len(pairs) :], strict=False))
    voters = dict(zip(routes, ports[2 * len(pairs) :], strict=True))
    links = [
        TapLink(f"client->{node}", advertised[node, CLIENT], bound[node, CLIENT]) for node in nodes
    ]
    links += [
        TapLink(
            f"?->{node}:{kind}", advertised[node, listener], bound[node, listener], by_client=True
        )
        for listener, kind in ((BROKER, "broker"), (CONTROLLER, "controller"))
        for node in nodes
    ]
    links += [
        TapLink(f"{node}->{other}:controller", voters[node, other], bound[other, CONTROLLER])
        for node, other in routes
    ]
    return Endpoints(bound, advertised, voters), links
