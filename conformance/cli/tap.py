"""kconform tap: a proxy in front of brokers that writes down and disturbs what passes."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from conformance.cli.cluster import LibOption, VersionOption, teller
from conformance.cli.options import JsonOption
from conformance.cli.session import session
from conformance.conversion import convert
from conformance.errors import UserError
from conformance.events import StageFinished
from conformance.files import check_file
from conformance.inputs import read_toml
from conformance.kafka.jars import chosen_jars
from conformance.kafka.schemas import Schemas
from conformance.kafka.tap import TapLink, TapRule, TapThread, writer_to
from conformance.verdict import Verdict


def tap(
    broker: Annotated[str, typer.Argument(help="host:port of a broker, any Kafka-compatible one.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The NDJSON file to write.")],
    listen: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1 to listen on; 0: a free one.")
    ] = 0,
    rules: Annotated[
        Path | None, typer.Option(help="A TOML file of rules that delay, drop, hold or cut.")
    ] = None,
    version: VersionOption = None,
    kafka_lib: LibOption = None,
    seconds: Annotated[float, typer.Option(help="End after so long; 0: with Ctrl-C.")] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Proxy clients' connections to a broker: record messages, and disturb them by rules.

    Addresses in the broker's answers are replaced by the tap's own, so that clients stay on it.
    """
    with session("tap", as_json=as_json) as work:
        check_file(output)
        started = time.monotonic()
        host, _, port = broker.rpartition(":")
        if not host or not port.isdigit():
            raise UserError(f"A broker is named host:port; {broker!r} is not.")
        read = read_rules(rules) if rules else ()
        jars = chosen_jars(version, kafka_lib, tell=teller(work, "tap"))
        schemas = Schemas.of(jars.classpath)
        with ExitStack() as stack:
            output.parent.mkdir(parents=True, exist_ok=True)
            # Line by line: whoever follows the file sees each message when it passes.
            file = stack.enter_context(output.open("w", encoding="utf-8", buffering=1))
            link = TapLink(f"client->{broker}", listen, int(port), host)
            proxy = stack.enter_context(TapThread(schemas, [link], writer_to(file), follow=True))
            proxy.add_rules(read)
            work.say(f"bootstrap.servers=127.0.0.1:{proxy.ports[0]} leads to {broker}")
            try:
                time.sleep(seconds or 10**9)
            except KeyboardInterrupt:
                work.say("stopping")
        summary = f"{proxy.passed} messages, {proxy.undecoded} of them not decoded"
        spent = time.monotonic() - started
        work.emit(StageFinished("tap", broker, Verdict.PASS, spent, summary))


class _Rules(msgspec.Struct, forbid_unknown_fields=True):
    rule: tuple[dict[str, Any], ...] = ()


def _rule(table: dict[str, Any]) -> TapRule:
    TapRule(**table)  # knows its keys
    return convert(table, TapRule)  # and msgspec their types


def read_rules(path: Path) -> tuple[TapRule, ...]:
    """The rules of a TOML file: `[[rule]]` tables. Raises UserError."""
    tables = read_toml(path, _Rules, "a file of rules", "docs/tap.md").rule
    try:
        return tuple(_rule(table) for table in tables)
    except (TypeError, msgspec.ValidationError) as error:
        raise UserError(f"The rules in {path} cannot be read: {error}") from error
