"""Starts the server: `python -m impl.wire --port 9092 --topic orders=6`; ends on Ctrl-C or SIGTERM.
At SIGHUP every partition is led in its next epoch, as after a restart of its broker.

Prints `listening on HOST:PORT` once clients can connect; port 0 takes a free one.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import ssl

from ..coordinator.group.config import ConsumerGroupConfig
from ..fetch_session import MAX_SESSIONS
from ..group.config import GroupConfig
from ..types import BrokerEndPoint
from .broker import BrokerConfig
from .server import Server


def main() -> None:
    """Read the options and serve until told to end."""
    parser = argparse.ArgumentParser(prog="python -m impl.wire", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--topic", action="append", default=[], metavar="NAME=PARTITIONS")
    parser.add_argument("--initial-delay-ms", type=int, default=3_000)
    parser.add_argument("--min-session-ms", type=int, default=6_000)
    parser.add_argument("--max-size", type=int, default=2**31 - 1)
    parser.add_argument("--assignment-interval-ms", type=int, default=1_000)
    parser.add_argument("--heartbeat-interval-ms", type=int, default=5_000)
    parser.add_argument("--transaction-version", type=int, default=2, choices=(0, 1, 2))
    parser.add_argument("--fetch-session-slots", type=int, default=MAX_SESSIONS)
    parser.add_argument("--seed", type=int, default=1, help="decides the member ids")
    parser.add_argument("--tls-cert", metavar="FILE", help="TLS: the certificate chain (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="TLS: its key (PEM), if it is apart")
    options = parser.parse_args()
    topics = dict(_topic(parser, text) for text in options.topic)
    endpoint = BrokerEndPoint(0, options.host, options.port or _free_port(options.host))
    groups = GroupConfig(
        group_min_session_timeout_ms=options.min_session_ms,
        group_initial_rebalance_delay_ms=options.initial_delay_ms,
        group_max_size=options.max_size,
    )
    consumer_groups = ConsumerGroupConfig(
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_size=options.max_size,
        assignment_interval_ms=options.assignment_interval_ms,
    )
    config = BrokerConfig(
        endpoint,
        topics,
        1,
        groups,
        consumer_groups,
        options.seed,
        transaction_version=options.transaction_version,
        fetch_session_slots=options.fetch_session_slots,
    )
    tls = _tls(parser, options.tls_cert, options.tls_key) if options.tls_cert else None
    asyncio.run(_serve(config, tls))


def _tls(parser: argparse.ArgumentParser, certificate: str, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        parser.error(f"--tls-cert {certificate} and its key cannot be read: {error}")
    return context


def _topic(parser: argparse.ArgumentParser, text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    if not name or not count.isdecimal() or not int(count):
        parser.error(f"--topic {text}: write it as NAME=PARTITIONS, e.g. orders=6")
    return name, int(count)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


async def _serve(config: BrokerConfig, tls: ssl.SSLContext | None) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with Server(config, tls) as server:
        loop.add_signal_handler(signal.SIGHUP, server.broker.logs.elect_leaders)
        print(f"listening on {config.endpoint.host}:{config.endpoint.port}", flush=True)
        await ended.wait()


if __name__ == "__main__":
    main()
