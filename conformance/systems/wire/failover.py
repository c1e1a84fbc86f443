"""Moves the coordinator: the user's command does it, here it is run."""

from __future__ import annotations

import subprocess

from conformance.errors import UserError

_SECONDS = 120.0


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
