"""Moves the coordinator: the user's command does it, or kconform itself where there are several
brokers of Kafka's kind."""

from __future__ import annotations

import subprocess
from functools import partial

from conformance.errors import UserError
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.address import Address
from conformance.systems.wire.admin import OFFSETS_TOPIC
from conformance.systems.wire.leadership import move_leaders
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import Security
from conformance.systems.wire.turns import Turns, turns_of

MOVE = "move"
"""In place of a command: another replica is to lead the offsets topic."""
_SECONDS = 120.0


def turns(address: Address, security: Security) -> Turns:
    """Of all tests of this process at the broker: it fails over once for those side by side."""
    return turns_of(f"{address} {address.fail_over}", partial(fail_over, address, security))


def fail_over(address: Address, security: Security) -> None:
    """Move all group coordinators. Raises UserError where that fails."""
    if address.fail_over != MOVE:
        run_command(address.fail_over)
        return
    port = Port(address, security)
    try:
        move_leaders(port, OFFSETS_TOPIC)
    except SystemFailed as error:
        raise UserError(f"The leaders of {OFFSETS_TOPIC} cannot be moved: {error}") from error
    finally:
        port.close()


def run_command(command: str) -> None:
    """Run it in a shell and wait for its end. Raises UserError if it fails."""
    try:
        done = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"The command of --fail-over has not ended after {_SECONDS:.0f} s: {command}. It must "
            "move the coordinator, and end once another broker has taken over."
        ) from None
    if done.returncode:
        words = (done.stderr or done.stdout).strip()[-500:]
        raise UserError(
            f"The command of --fail-over ended with {done.returncode}: {command}\n{words}"
        )
