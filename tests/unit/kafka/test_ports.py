"""Ports that are chosen now and bound by a broker later."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import EnvironmentProblem
from conformance.kafka import ports as module
from conformance.kafka.ports import _is_free, free_ports

CHOOSER = """
import sys
from conformance.kafka import ports
ports._PORTS = range(int(sys.argv[1]), int(sys.argv[1]) + 8)
print(*ports.free_ports(4), flush=True)
sys.stdin.read()
"""


def test_ports_are_free_and_distinct() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))
        taken.listen()
        assert not _is_free(ports[0])
    assert _is_free(ports[1])


def test_two_processes_choose_different_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the other one has ended, or two minutes have passed."""
    start = _eight_free_ports()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(module, "_PORTS", range(start, start + 8))
    monkeypatch.setattr(module, "_RESERVED", {})
    module._locks.cache_clear()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", CHOOSER, str(start)],
            env={**os.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            theirs = {int(word) for word in other.stdout.readline().split()}
            ours = set(free_ports(4))
            assert (len(theirs), len(ours), theirs & ours) == (4, 4, set())
            with pytest.raises(EnvironmentProblem, match="no 1 free ports"):
                free_ports(1)
            other.stdin.close()
        assert set(free_ports(4)) == theirs
    finally:
        module._locks.cache_clear()


def _eight_free_ports() -> int:
    """Where eight begin that nobody listens on."""
    starts = range(module._PORTS.start, module._PORTS.stop - 8, 8)
    return next(start for start in starts if all(map(_is_free, range(start, start + 8))))
