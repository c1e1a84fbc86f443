"""Moves lines to an adapter and back: over a process's standard streams, or a TCP connection.

Standard error is read while an answer is awaited, so that an adapter which fills it does not
stand still; its end is kept for messages. No thread is needed, and a signal can end any wait.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from conformance.children import end_with_us
from conformance.errors import UserError

STDERR_KEPT = 16_384
"""Bytes of standard error that are kept: its end."""

LONGEST_LINE = 64 * 2**20
"""Bytes of an answer; an adapter that writes more without a line's end writes rubbish."""

GRACE_SECONDS = 2.0
"""For an adapter to end by itself once its standard input has ended, before it is killed."""

_PIECE = 65_536


class AdapterGone(Exception):
    """The adapter has gone away; the message says how."""


class NoAnswer(Exception):
    """The adapter has not answered in time."""


class Rubbish(Exception):
    """What arrived is no line of the protocol."""


class Transport(Protocol):
    """A way to one adapter, for one line at a time."""

    def exchange(self, line: bytes, seconds: float) -> bytes:
        """Send a line, which ends with a line's end, and wait for one, which is given without.

        Raises Ended, NoAnswer or Rubbish; then it is of no further use.
        """

    def last_words(self) -> str:
        """The end of what the adapter wrote to standard error."""

    def hang_up(self) -> None:
        """Tell the adapter that nothing more will come, without waiting for its end."""

    def close(self) -> None:
        """Let the adapter end, or end the connection to it. May be called twice."""

    def kill(self) -> None:
        """The same, without waiting for it to end by itself."""


Opener: TypeAlias = Callable[[], Transport]
"""Starts an adapter or connects to one. UserError if that cannot be done."""


class _Lines:
    """Lines over descriptors that do not block."""

    def __init__(self, to: int, source: int, errors: int | None = None) -> None:
        for descriptor in (to, source, *([] if errors is None else [errors])):
            os.set_blocking(descriptor, False)
        self._to, self._source, self._errors = to, source, errors
        self._read = bytearray()
        self._tail = bytearray()
        self._poll = select.poll()
        self._poll.register(source, select.POLLIN)
        if errors is not None:
            self._poll.register(errors, select.POLLIN)

    def exchange(self, line: bytes, seconds: float) -> bytes:
        self._expect_silence()
        deadline = time.monotonic() + seconds
        unsent = self._send(memoryview(line))
        if unsent:
            self._poll.register(self._to, select.POLLOUT | self._events_of(self._to))
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise NoAnswer(f"has not answered after {seconds:g} s")
            for descriptor, _ in self._poll.poll(left * 1000):
                if descriptor == self._errors:
                    self.read_errors()
                if descriptor == self._source and self._receive() and not unsent:
                    return self._take_line()
                if descriptor == self._to and unsent:
                    unsent = self._send(unsent)
                    if not unsent:
                        self._stop_sending()

    def _expect_silence(self) -> None:
        """What comes without a question answers none: often a line that was answered twice."""
        with suppress(BlockingIOError):
            self._read += os.read(self._source, _PIECE)
        if self._read:
            raise Rubbish(f"wrote without being asked: {excerpt(bytes(self._read))}")

    def _events_of(self, descriptor: int) -> int:
        return select.POLLIN if descriptor == self._source else 0

    def _stop_sending(self) -> None:
        if self._to == self._source:
            self._poll.modify(self._to, select.POLLIN)
        else:
            self._poll.unregister(self._to)

    def _send(self, data: memoryview) -> memoryview:
        """What could not be written yet."""
        try:
            return data[os.write(self._to, data) :]
        except BlockingIOError:
            return data
        except OSError as error:
            raise AdapterGone("does not read any more") from error

    def _receive(self) -> bool:
        """Read what is there; whether a whole line has come."""
        try:
            piece = os.read(self._source, _PIECE)
        except BlockingIOError:
            return False
        except OSError as error:
            raise AdapterGone("has broken the connection") from error
        if not piece:
            raise AdapterGone("has ended its output")
        self._read += piece
        if len(self._read) > LONGEST_LINE:
            raise Rubbish(f"wrote a line without an end: {excerpt(bytes(self._read[:200]))}")
        return b"\n" in piece

    def _take_line(self) -> bytes:
        line, _, more = bytes(self._read).partition(b"\n")
        self._read.clear()
        if more:
            raise Rubbish(
                f"wrote more than one line for one question: {excerpt(line)}, then {excerpt(more)}"
            )
        return line

    def read_errors(self) -> None:
        """Take what standard error has, without waiting."""
        if self._errors is None:
            return
        with suppress(BlockingIOError):
            while piece := os.read(self._errors, _PIECE):
                self._tail += piece
                del self._tail[:-STDERR_KEPT]
            self._poll.unregister(self._errors)
            self._errors = None

    def end_errors(self) -> None:
        """Take the last of standard error, which nobody will read any more."""
        self.read_errors()
        self._errors = None

    def last_words(self) -> str:
        self.read_errors()
        return self._tail.decode("utf-8", "replace").strip()


class ProcessTransport:
    """An adapter that is a process of ours, with a process group of its own.

    It is asked to end by the end of its standard input, and killed with its children otherwise.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._process = _start(command)
        out, back, errors = self._process.stdin, self._process.stdout, self._process.stderr
        assert out is not None
        assert back is not None
        assert errors is not None
        self._lines = _Lines(out.fileno(), back.fileno(), errors.fileno())

    @property
    def pid(self) -> int:
        """The process's number, and its group's."""
        return self._process.pid

    def exchange(self, line: bytes, seconds: float) -> bytes:
        """Send a line and wait for one."""
        try:
            return self._lines.exchange(line, seconds)
        except AdapterGone as ended:
            raise AdapterGone(self._how_it_ended(str(ended))) from None

    def last_words(self) -> str:
        """The end of standard error."""
        return self._lines.last_words()

    def hang_up(self) -> None:
        """End its standard input, which asks it to end."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def close(self) -> None:
        """Let the process end, and end what is left of it and of what it has started."""
        self.hang_up()
        self.ends_within(GRACE_SECONDS)
        self._finish()
        self._lines.end_errors()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def kill(self) -> None:
        """End the process at once: it has hung, or nothing it says is of use any more."""
        self._finish()
        self.close()

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end, reading its standard error, so that it can come; whether it has."""
        deadline = time.monotonic() + seconds
        while not self._has_ended():
            if time.monotonic() > deadline:
                return False
            self._lines.read_errors()
            time.sleep(0.002)
        return True

    def _has_ended(self) -> bool:
        """Whether it has, without taking its exit code: till then its group's number is its own."""
        if self._process.returncode is not None:
            return True
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _finish(self) -> None:
        """Kill the group, if we have not yet, and take the exit code."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _how_it_ended(self, otherwise: str) -> str:
        if not self.ends_within(GRACE_SECONDS):
            return otherwise
        self._lines.read_errors()
        self._finish()
        code = self._process.returncode
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"has exited with code {code}"


def _start(command: str) -> subprocess.Popen[bytes]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"The command {command!r} cannot be read: {error}.") from None
    if not words:
        raise UserError("exec: needs a command after it, such as exec:./my-adapter --flag.")
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is ours to handle; children end with it
        )
    except OSError as error:
        raise UserError(
            f"The adapter {command!r} cannot be started in {Path.cwd()}: {error.strerror}. Give a "
            "command that can be, with its path if it is not in PATH."
        ) from None
    end_with_us(process)
    return process


class SocketTransport:
    """An adapter that listens on a TCP port; each connection is a session of its own."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        try:
            self._socket = socket.create_connection((host, port), seconds)
        except OSError as error:
            raise UserError(
                f"There is no adapter at {host}:{port}: {error}. Start it, or correct the address."
            ) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        descriptor = self._socket.fileno()
        self._lines = _Lines(descriptor, descriptor)

    def exchange(self, line: bytes, seconds: float) -> bytes:
        """Send a line and wait for one."""
        return self._lines.exchange(line, seconds)

    def last_words(self) -> str:
        """Nothing: its standard error is on its own machine."""
        return ""

    def hang_up(self) -> None:
        """Send nothing more."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End the connection; the adapter goes on to listen."""
        self._socket.close()

    def kill(self) -> None:
        """The same."""
        self._socket.close()


_SHOWN = 200


def excerpt(data: bytes) -> str:
    """The beginning of some bytes, for a message."""
    text = data[:_SHOWN].decode("utf-8", "backslashreplace").strip()
    return repr(text) + ("..." if len(data) > _SHOWN else "")
