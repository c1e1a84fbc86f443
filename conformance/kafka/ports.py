"""Ports of this machine for servers that bind them seconds after they were chosen."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
import time
from functools import cache
from itertools import islice
from pathlib import Path

from conformance.errors import EnvironmentProblem

_PORTS = range(15_000, 32_000)
"""Below those from which the operating system takes a client's own ports: a broker binds seconds
after its port was chosen, and again when it is started again."""
_BOUND_WITHIN_S = 120.0
_RESERVED: dict[int, float] = {}
"""By port, when this process chose it."""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now, and that no other process has chosen in the
    last two minutes. Raises EnvironmentProblem."""
    _give_up_old()
    drawn = random.SystemRandom().sample(_PORTS, len(_PORTS))
    free = (port for port in drawn if _is_free(port) and _reserve(port))
    result = list(islice(free, count))
    if len(result) < count:
        raise EnvironmentProblem(
            f"127.0.0.1 has no {count} free ports from {_PORTS.start} to {_PORTS.stop - 1}."
        )
    return result


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _reserve(port: int) -> bool:
    """Hold a lock on the port's byte; a process that ends gives up its own."""
    if port in _RESERVED:
        return False
    file = _locks()
    if file is not None:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
    _RESERVED[port] = time.monotonic()
    return True


def _give_up_old() -> None:
    """By now they are bound, or never will be."""
    file, now = _locks(), time.monotonic()
    for port in [each for each, since in _RESERVED.items() if now - since > _BOUND_WITHIN_S]:
        del _RESERVED[port]
        if file is not None:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, port)


@cache
def _locks() -> int | None:
    """The file whose bytes are locked. None if none can be made: then ports are drawn by luck."""
    path = Path(tempfile.gettempdir()) / f"kconform-ports-{os.getuid()}"
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError:
        return None
