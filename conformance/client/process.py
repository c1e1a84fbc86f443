"""The client's process: how it is started, what it tells of its callbacks, how it is ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from conformance.children import end_with_us
from conformance.errors import UserError

CALLBACKS = "KCONFORM_CALLBACKS"
"""The environment variable that names the pipe for callbacks."""
_LAST_BYTES = 4_000
_END_SECONDS = 30.0
"""So long a client may take to close after SIGTERM, on a busy machine too."""

Kind = Literal["assigned", "revoked", "lost"]


@dataclass(frozen=True, slots=True)
class Callback:
    """A callback of the user's rebalance listener."""

    kind: Kind
    partitions: frozenset[int]


class CallbackPipe:
    """The pipe: a named one, so that a client in any language appends lines to a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "callbacks"
        os.mkfifo(self.path)
        # Opened for both, so that it never ends, whoever closes it.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""

    def close(self) -> None:
        """Close it; the file goes with its folder."""
        os.close(self._pipe)

    def read(self) -> list[Callback]:
        """What the client has told since. UserError for a line that is none."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._pipe, 65_536):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        return [_callback(line) for line in lines if line.strip()]


def _callback(line: bytes) -> Callback:
    try:
        data = json.loads(line)
        kind, partitions = data["event"], data.get("partitions", [])
        numbers = frozenset(int(partition) for _, partition in partitions)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _no_callback(line) from error
    if kind not in ("assigned", "revoked", "lost"):
        raise _no_callback(line)
    return Callback(cast("Kind", kind), numbers)


def _no_callback(line: bytes) -> UserError:
    text = line[:200].decode(errors="replace")
    return UserError(
        f"The client wrote {text!r} to {CALLBACKS}. A line there is an object such as "
        '{"event": "assigned", "partitions": [["topic", 0]]}; the event is assigned, revoked or '
        "lost (docs/clients.md)."
    )


def arguments(command: str, values: Mapping[str, str]) -> list[str]:
    """The words of a command, `{bootstrap}` and the like filled in. UserError for others."""
    try:
        words = [word.format_map(values) for word in shlex.split(command)]
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(f"{{{name}}}" for name in values)
        raise UserError(
            f"--command {command!r} cannot be filled in ({error}). What may stand in braces: "
            f"{known}; write other braces twice."
        ) from None
    if not words:
        raise UserError("--command is empty. Give the command that is to be run.")
    return words


class ClientProcess:
    """A started client; what it writes goes to a file. Use `end` in any case."""

    def __init__(self, process: asyncio.subprocess.Process, output: Path) -> None:
        self._process = process
        self._output = output

    @classmethod
    async def start(
        cls, words: list[str], further: Mapping[str, str], output: Path
    ) -> ClientProcess:
        """Start it, in a session of its own. UserError if there is no such program."""
        with output.open("wb") as file:
            try:
                process = await asyncio.create_subprocess_exec(
                    *words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    env={**os.environ, **further},
                    start_new_session=True,
                )
            except OSError as error:
                raise UserError(
                    f"The client cannot be started: {words[0]}: {error.strerror}. Give a command "
                    "that starts your consumer, as a shell would find it."
                ) from error
        end_with_us(process)
        return cls(process, output)

    @property
    def exit_status(self) -> int | None:
        """None while it runs."""
        return self._process.returncode

    def last_lines(self) -> str:
        """The end of what it wrote."""
        data = self._output.read_bytes()[-_LAST_BYTES:]
        return "\n".join(data.decode(errors="replace").strip().splitlines()[-12:])

    async def ask_to_end(self) -> bool:
        """SIGTERM, and whether it was enough."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            return False
        return True

    async def end(self) -> None:
        """End it and whatever it started, now."""
        self._signal(signal.SIGKILL)
        await self._process.wait()

    def _signal(self, number: int) -> None:
        """To its session: a command may be a script around the client."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def python_first(words: list[str]) -> list[str]:
    """`python` is the Python that runs kconform: its environment has the client's library."""
    return [sys.executable, *words[1:]] if words[0] == "python" else words
