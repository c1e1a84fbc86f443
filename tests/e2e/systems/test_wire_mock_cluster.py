"""librdkafka's mock cluster: a broker that offers no CreateTopics, and that is not Kafka."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.wire_brokers import MOCK_METADATA
from tests.e2e.commands import in_child
from tests.e2e.systems.test_script import run, served, write
from tests.e2e.systems.test_wire import replay

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None, reason="needs the extra `clients`"
)

# Its threads must not be in the worker of the tests.
SERVER = """
from experiments.wire_brokers import mock
with mock() as system:
    print(system, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def mock_cluster() -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.communicate("\n")


def test_a_topic_is_made_by_the_question_for_its_metadata(
    mock_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its idempotent produce takes every sequence."""
    system = mock_cluster
    code, output = replay("produce/bumps-1b", system, tmp_path, monkeypatch)

    assert code == 1, output
    assert "Produce(0, 1): state not allowed" in output
    script = tmp_path / "script.py"
    assert any(write(story, script) for story in sorted(tmp_path.rglob("*.itf.json")))
    red = run(script, system.removeprefix("wire:").partition("?")[0])
    with served() as address:
        green = run(script, address)
    assert (red.returncode, green.returncode) == (1, 0), (red.stderr, green.stderr)
    assert "AssertionError" in red.stderr


def test_an_answer_that_cannot_be_read_is_the_brokers_fault(mock_cluster: str) -> None:
    system = mock_cluster.removesuffix(f"&{MOCK_METADATA}")
    ended = in_child("", "replay", "produce/bumps-1b", "--system", system)

    assert ended.code == 2
    assert "failed before its first step" in ended.err
    assert "metadata version 9: the answer cannot be read" in ended.err
    assert "Traceback" not in ended.err
