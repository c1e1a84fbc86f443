"""A coordinator behind a port: driven by suites, joined by nobody's but Kafka's protocol.

The brokers here are ours: the server over impl, and small ones that break the protocol.
"""

from __future__ import annotations

import json
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from typer.testing import CliRunner

from conformance.bugs.fault import load_catalogue, relocated
from conformance.cli.main import app
from conformance.kafka.entities import class_of, make
from conformance.systems.protocol import SystemFailed, SystemHangs
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import security_of

INITIAL_DELAY = 150
ROOT = Path(__file__).resolve().parents[3]
SYSTEMS = ROOT / "conformance" / "systems"


@contextmanager
def served(*options: str, folder: Path = ROOT) -> Iterator[str]:
    """The address of the coordinator of this folder's `impl`, in a process of its own."""
    command = [sys.executable, "-m", "impl.wire", "--port", "0", "--topic", "topic=2"]
    command += ["--initial-delay-ms", str(INITIAL_DELAY), "--min-session-ms", "10", *options]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()
        assert process.wait(10) == 0


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with served() as address:
        yield address


def test_a_suite_agrees_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority, certificate, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    issuer = trustme.CA()
    issued = issuer.issue_cert("127.0.0.1")
    issuer.cert_pem.write_to_path(authority)
    issued.private_key_pem.write_to_path(key)
    certificate.write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    with served("--tls-cert", str(certificate), "--tls-key", str(key)) as address:
        system = f"wire:{address}?initial-delay={INITIAL_DELAY}&groups=24&tls-ca={authority}"
        code, output = replay("group/protocols-2m", system, tmp_path, monkeypatch)
        plain, _ = replay("group/protocols-2m", f"wire:{address}", tmp_path, monkeypatch)
    assert "203 tests passed, 0 failed" in output
    assert (code, plain) == (0, 2)


def replay(
    model: str, system: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str]:
    monkeypatch.chdir(folder)
    ended = CliRunner().invoke(app, ["replay", model, "--system", system])
    return ended.exit_code, ended.output


def test_a_whole_suite_agrees_through_the_port(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = f"wire:{broker}?initial-delay={INITIAL_DELAY}&groups=24"
    code, output = replay("group/protocols-2m", system, tmp_path, monkeypatch)
    assert code == 0, output
    assert "203 tests passed, 0 failed, 0 inconclusive" in output


def test_a_gate_through_the_port_says_pass(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    system = f"wire:{broker}?initial-delay={INITIAL_DELAY}&session=400&min-session=10&groups=24"
    models = ["group/protocols-2m", "group/late-requests-2m"]
    ended = CliRunner().invoke(app, ["gate", *models, "--system", system, "--output", "out"])
    assert ended.exit_code == 0, ended.output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["verdict"] == "pass"
    # They were driven at the same time: the one that ended first is told first.
    tests = {one["model"]: one["tests"] for one in report["stages"]["replay"]["models"]}
    assert {name: one["in"] for name, one in tests.items()} == dict(
        zip(models, (203, 268), strict=True)
    )
    assert all(one["pass"] == one["in"] for one in tests.values())
    assert (tmp_path / "out" / "report.html").is_file()


def test_what_a_port_cannot_bring_about_is_listed(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = f"wire:{broker}?initial-delay={INITIAL_DELAY}&groups=24"
    code, output = replay("group/store-failure-2m", system, tmp_path, monkeypatch)
    assert code == 0, output
    assert "398 transitions cannot be driven" in output
    assert "FailToStoreAssignment: it needs a log that refuses an append" in output


def test_the_version_of_a_request_is_chosen(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    system = f"wire:{broker}?initial-delay={INITIAL_DELAY}&groups=24"
    command = ["replay", "group/pending-2m", "--system", system, "--api-version"]
    ended = CliRunner().invoke(app, [*command, "JoinGroup=99"])
    assert ended.exit_code == 2
    assert "version 99 cannot be used" in " ".join(ended.output.split())
    ended = CliRunner().invoke(app, ["replay", "group/pending-2m", "--tls-ca", "ca.pem"])
    assert ended.exit_code == 2
    assert "they go with --system wire:HOST:PORT" in " ".join(ended.output.split())


def test_a_suite_of_idempotent_produce_agrees_through_the_port(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("produce/bumps-1b", f"wire:{broker}", tmp_path, monkeypatch)
    assert code == 0, output
    assert "638 tests passed, 0 failed, 0 inconclusive" in output
    code, output = replay("produce/expiry-1b", f"wire:{broker}", tmp_path, monkeypatch)
    assert code == 0, output
    assert "Expire: it takes producer.id.expiration.ms" in output


@pytest.mark.parametrize(
    ("system_under_test", "fault", "model"),
    [
        ("group", "D1", "group/initial-delay-3m"),
        ("group", "D7", "group/pending-timeouts-2m"),
        ("produce", "Q3", "produce/bumps-1b"),
        ("produce", "Q9", "produce/bench/retries-1b"),
    ],
)
def test_a_fault_of_a_broker_is_found_through_its_port(
    system_under_test: str,
    fault: str,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some of the faults that `experiments/wire_faults.py` looks for."""
    catalogue = load_catalogue(SYSTEMS / system_under_test / "faults.toml")
    (wanted,) = (one for one in catalogue.faults if one.id == fault)
    with relocated(wanted) as folder, served(folder=folder) as address:
        system = f"wire:{address}?initial-delay={INITIAL_DELAY}&session=400&min-session=10"
        code, output = replay(model, f"{system}&groups=24", tmp_path, monkeypatch)
    assert code == 1, output
    assert " failed, 0 inconclusive" in output


EMPTY_FOR_DEAD = ("group_id, DEAD.value)", 'group_id, "Empty")')
"""A departure of a broker from a public registry: harmless, and there at the first look."""
FIRST_GENERATION = ("        self.generation_id = 0", "        self.generation_id = -1")
"""Another one of it, which nobody saw behind that."""
DECLARED = """
[[deviation]]
id = "unknown-group-empty"
title = "an unknown group is described as Empty"
severity = "harmless"
shown = { groupState = { '"Empty"' = '"Dead"' } }
"""


@contextmanager
def broker_of_somebody_else(folder: Path, *changes: tuple[str, str]) -> Iterator[str]:
    """Our coordinator with these lines of it changed."""
    shutil.copytree(ROOT / "impl", folder / "impl")
    sources = [
        folder / "impl" / "group" / f"group_{name}.py" for name in ("coordinator", "metadata")
    ]
    for before, after in changes:
        (source,) = (one for one in sources if before in one.read_text())
        source.write_text(source.read_text().replace(before, after, 1))
    with served(folder=folder) as address:
        yield f"wire:{address}?initial-delay={INITIAL_DELAY}&groups=24"


def test_what_is_behind_a_harmless_departure_is_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker_of_somebody_else(tmp_path, EMPTY_FOR_DEAD, FIRST_GENERATION) as system:
        code, output = replay("group/protocols-2m", system, tmp_path, monkeypatch)
    told = " ".join(output.split())
    assert code == 1, output
    assert 'went on where groupState is "Empty" where the specification has "Dead"' in told
    assert "generation" in output, "the second fault"


def test_departures_that_the_maker_declares_are_no_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours.toml").write_text(DECLARED)
    (tmp_path / "broken.toml").write_text(DECLARED.replace("shown", "shows"))
    with broker_of_somebody_else(tmp_path, EMPTY_FOR_DEAD) as system:
        plain, _ = replay("group/protocols-2m", system, tmp_path, monkeypatch)
        named = f"{system}&deviations=ours.toml"
        code, output = replay("group/protocols-2m", named, tmp_path, monkeypatch)
        wrong, refusal = replay(
            "group/protocols-2m", f"{system}&deviations=broken.toml", tmp_path, monkeypatch
        )
    assert (plain, code, wrong) == (1, 0, 2), output
    assert "203 tests passed, 0 failed" in output
    assert "broken.toml is not a table of deviations" in " ".join(refusal.split())


def test_real_consumers_join_rebalance_and_leave(broker: str) -> None:
    reason = "the extra `clients` is not installed"
    kafka = pytest.importorskip("kafka", reason=reason)
    librdkafka = pytest.importorskip("confluent_kafka", reason=reason)
    first = kafka.KafkaConsumer("topic", bootstrap_servers=broker, group_id="shared")
    second = librdkafka.Consumer({"bootstrap.servers": broker, "group.id": "shared"})
    try:
        poll_until(lambda: len(first.assignment()) == 2, first, second)
        second.subscribe(["topic"])
        poll_until(lambda: len(first.assignment()) == len(second.assignment()) == 1, first, second)
        mine = {one.partition for one in first.assignment()}
        assert mine | {one.partition for one in second.assignment()} == {0, 1}
    finally:
        second.close()
    poll_until(lambda: len(first.assignment()) == 2, first)
    first.close()


def test_a_real_idempotent_producer_writes_what_a_real_consumer_reads(broker: str) -> None:
    librdkafka = pytest.importorskip(
        "confluent_kafka", reason="the extra `clients` is not installed"
    )
    values = [str(number).encode() for number in range(200)]
    errors: list[Any] = []
    producer = librdkafka.Producer(
        {
            "bootstrap.servers": broker,
            "enable.idempotence": True,
            "batch.num.messages": 7,
            "linger.ms": 1,
        }
    )
    for value in values:
        producer.produce(
            "written", value, partition=0, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(60) == 0
    assert errors == [None] * len(values)

    consumer = librdkafka.Consumer(
        {"bootstrap.servers": broker, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.assign([librdkafka.TopicPartition("written", 0, 0)])
    read: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(read) < len(values) and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            read.append(message.value())
    consumer.close()
    assert read == values


LONGER_THAN_A_JOIN_MS = 4_000
"""kafka-python 3.0.12 gives a join up when the time of its poll is over, and joins anew: with short
polls for ever, since librdkafka hears of each rebalance with its next heartbeat, after 3 s."""


def poll_until(reached: Callable[[], bool], *consumers: Any) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        for consumer in consumers:
            librdkafka = type(consumer).__module__ == "cimpl"
            consumer.poll(0.1) if librdkafka else consumer.poll(LONGER_THAN_A_JOIN_MS)


# ---- brokers that break the protocol --------------------------------------------------------

API_VERSIONS = 18
OFFERED = [
    (10, 0, 4),
    (11, 0, 9),
    (12, 0, 4),
    (13, 0, 5),
    (14, 0, 5),
    (8, 2, 9),
    (15, 0, 5),
    (42, 0, 2),
]


def coordinator_answer(error_code: int) -> bytes:
    """FindCoordinator's answer in version 4."""
    body = b"CCCC" + b"\0\0\0\0\0\x02\x02g\0\0\0\x01\x0alocalhost\0\0\0\x01"
    body += struct.pack(">h", error_code) + b"\0\0\0"
    return struct.pack(">i", len(body)) + body


class Liar(socketserver.BaseRequestHandler):
    """Says what it offers, then does what `lie` says with the next request."""

    lie = b""

    def handle(self) -> None:
        while head := self.request.recv(4, socket.MSG_WAITALL):
            frame = self.request.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
            key, _, correlation_id = struct.unpack_from(">hhi", frame)
            if key != API_VERSIONS:
                if not self.lie:
                    return
                self.request.sendall(self.lie.replace(b"CCCC", frame[4:8]))
                continue
            body = struct.pack(">ihi", correlation_id, 0, len(OFFERED))
            body += b"".join(struct.pack(">hhh", *one) for one in OFFERED)
            self.request.sendall(struct.pack(">i", len(body)) + body)


@pytest.fixture
def liar(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Lie", (Liar,), {"lie": request.param})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host, port = server.server_address[:2]
        yield f"{host!s}:{port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("liar", "told"),
    [
        (b"", "find_coordinator version 4: the broker closed the connection"),
        (b"\x7f\xff\xff\xff", "the answer says that it has 2147483647 bytes"),
        (b"\0\0\0\x08CCCC\0\xff\xff\xff", "the answer cannot be read"),
        (b"\0\0\0\x0bXXXX\0\0\0\0\0\x01\0", "the answer is to correlation id"),
        (coordinator_answer(9999), "9999 is not a valid ErrorCode"),
    ],
    indirect=["liar"],
    ids=["closes", "endless", "garbage", "another's answer", "no code"],
)
def test_a_broker_that_breaks_the_protocol_is_a_finding_with_the_bytes(
    liar: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("group/protocols-2m", f"wire:{liar}?groups=1", tmp_path, monkeypatch)
    assert code == 1, output
    assert told in output
    assert "sent     00 00 00" in output


@pytest.mark.parametrize("liar", [coordinator_answer(118)], indirect=True, ids=["of telemetry"])
def test_an_error_that_is_none_of_groups_is_a_finding_with_its_name(
    liar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("group/protocols-2m", f"wire:{liar}?groups=1", tmp_path, monkeypatch)
    assert code == 1, output
    assert "was answered TELEMETRY_TOO_LARGE" in output


@pytest.mark.parametrize("liar", [b"", b"\x7f\xff\xff\xff"], indirect=True)
def test_a_connection_that_failed_does_not_spoil_the_next_request(liar: str) -> None:
    port = Port(parse_address(liar), security_of("", ""))
    request = make(class_of("list_groups", 4, "request"), states_filter=())
    try:
        with pytest.raises(SystemFailed, match="list_groups version 4"):
            port.ask_body(request)
        assert not port.receive(0.1)
    finally:
        port.close()


@pytest.mark.parametrize("liar", [b"\0\0\0\x08CCCC"], indirect=True, ids=["half an answer"])
def test_a_broker_that_never_ends_its_answer_hangs(liar: str) -> None:
    port = Port(parse_address(liar), security_of("", ""))
    request = make(class_of("list_groups", 4, "request"), states_filter=())
    try:
        with pytest.raises(SystemHangs, match="list_groups version 4 was not answered within"):
            port.ask_body(request, 0.3)
    finally:
        port.close()


def test_nobody_who_listens_is_told_in_one_paragraph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    code, output = replay("group/protocols-2m", f"wire:{address}", tmp_path, monkeypatch)
    assert code == 2
    assert "No broker answers at" in output


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("wire:", "is no address of a broker"),
        ("wire:localhost", "is no address of a broker"),
        ("wire:localhost:99999", "is no address of a broker"),
        ("wire:localhost:1?speed=3", "knows no setting 'speed'"),
        ("wire:localhost:1?session=soon", "session is a number"),
    ],
)
def test_a_name_that_says_nothing_is_a_mistake(
    name: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay("group/protocols-2m", name, tmp_path, monkeypatch)
    assert code == 2
    assert told in " ".join(output.split())
