"""Commands out, answers in: the conversation with one adapter, whatever the commands mean.

`AdapterChannel.call` sends several commands in one line and returns their answers. An error is
reported in the adapter's own words. The channel is then broken, and `restart` starts the
adapter afresh. Channels outlive the systems that use them: `CHANNELS` keeps what is idle.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from conformance.systems.external.transport import (
    AdapterGone,
    NoAnswer,
    Opener,
    Rubbish,
    Transport,
    excerpt,
)
from conformance.systems.protocol import ActionRefused, SystemFailed, SystemHangs

PROTOCOL = 1
"""The version of the protocol that this is."""

Command: TypeAlias = "Mapping[str, object] | msgspec.Raw"
"""An object with the member `command`, or its JSON text where that has been made before."""


@dataclass(frozen=True, slots=True)
class AdapterTimeouts:
    """Seconds that an adapter may take."""

    start: float = 60.0
    """For its first answer after it was started: a JVM on a busy machine takes ten."""
    call: float = 10.0
    """For any other line."""


DEFAULT: Final = AdapterTimeouts()


class AdapterAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one command was answered: exactly one of these."""

    ok: msgspec.Raw = msgspec.Raw()
    refused: str | None = None
    exception: str | None = None
    protocol_error: str | None = None


class _AnswerLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    answers: list[AdapterAnswer]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_AnswerLine).decode


class AdapterChannel:
    """A conversation with one adapter, which is started at the first call."""

    __slots__ = ("_fresh", "_in_flight", "_lines", "_open", "_transport", "limits", "name")

    def __init__(
        self, name: str, opener: Opener, limits: AdapterTimeouts = AdapterTimeouts()
    ) -> None:
        self.name, self.limits = name, limits
        self._open = opener
        self._transport: Transport | None = None
        self._fresh = True
        self._lines = 0
        self._in_flight = False

    @property
    def ready(self) -> bool:
        """Whether an adapter runs that has answered everything; else the next call starts one."""
        return self._transport is not None and not self._in_flight

    def call(self, commands: Sequence[Command]) -> list[msgspec.Raw]:
        """What each command was answered, as JSON text; all in one line.

        The first that goes wrong ends the line. ActionRefused if the adapter refuses it;
        SystemFailed if it raised an exception, says something that is no answer or is gone;
        SystemHangs if it does not answer in time. UserError if it cannot be started.
        """
        results: list[msgspec.Raw] = []
        for answer in self.answers(commands):
            if answer.refused is not None:
                raise ActionRefused(answer.refused)
            if answer.exception is not None:
                raise SystemFailed(answer.exception.rstrip())
            if answer.protocol_error is not None:
                raise self._broken(f"has not understood: {answer.protocol_error}")
            results.append(answer.ok)
        return results

    def ask(self, command: str, **members: object) -> object:
        """What one command was answered, as JSON's plain objects."""
        return msgspec.json.decode(self.call([{"command": command, **members}])[0])

    def start(self) -> None:
        """Start the adapter, or connect to it, unless that was done. UserError if it cannot be."""
        if self._in_flight:
            self.restart()
        if self._transport is None:
            self._transport, self._fresh = self._open(), True

    def restart(self) -> None:
        """End the adapter, if there is one; the next call starts another."""
        transport, self._transport = self._transport, None
        if transport is not None:
            if self._in_flight:
                transport.kill()
            else:
                transport.close()
        self._in_flight = False

    def hang_up(self) -> None:
        """Ask the adapter to end, without waiting for it."""
        if self._transport is not None:
            self._transport.hang_up()

    def answers(self, commands: Sequence[Command]) -> list[AdapterAnswer]:
        """The answers as they came, whatever they say; at most one fails, and is the last.

        Raises as `call` does where there is no such answer.
        """
        self.start()
        transport, limits = self._transport, self.limits
        assert transport is not None
        self._lines += 1
        number = self._lines
        # Whatever happens until the answer is there, a signal's exception too, breaks the channel.
        self._in_flight = True
        try:
            line = transport.exchange(
                _encode({"id": number, "commands": commands}) + b"\n",
                limits.start if self._fresh else limits.call,
            )
        except NoAnswer as error:
            raise self._broken(str(error), SystemHangs) from None
        except (AdapterGone, Rubbish) as error:
            raise self._broken(str(error)) from None
        answers = self._checked(line, number, len(commands))
        self._in_flight = self._fresh = False
        return answers

    def _checked(self, line: bytes, number: int, asked: int) -> list[AdapterAnswer]:
        """The answers of a line, held against the protocol."""
        try:
            reply = _decode(line)
        except RecursionError:
            raise self._broken(
                f"wrote an answer that is nested too deep: {excerpt(line)}"
            ) from None
        except msgspec.MsgspecError as error:
            raise self._broken(f"wrote what is no answer ({error}): {excerpt(line)}") from None
        if reply.id != number:
            again = " (a second time)" if reply.id < number else ""
            raise self._broken(f"answered line {reply.id}{again} where line {number} was asked")
        answers = reply.answers
        for answer in answers:
            if _kinds(answer) != 1:
                raise self._broken(
                    "gave an answer that is not exactly one of ok, refused, exception and "
                    f"protocol_error: {excerpt(line)}"
                )
        failed = [number for number, answer in enumerate(answers, 1) if not answer.ok]
        if failed and failed != [len(answers)]:
            raise self._broken("went on after a command that had failed")
        if len(answers) > asked or (len(answers) < asked and not failed):
            raise self._broken(f"gave {len(answers)} answers to {asked} commands")
        return answers

    def _broken(self, what: str, kind: type[SystemFailed] = SystemFailed) -> SystemFailed:
        """The adapter's failure as an exception; the adapter is ended."""
        transport, self._transport = self._transport, None
        self._in_flight = False
        words = ""
        if transport is not None:
            transport.kill()
            words = transport.last_words()
        lines = [f"The adapter {self.name} {what}."]
        if words:
            lines += ["The end of its standard error:", *words.splitlines()[-_TOLD:]]
        return kind("\n".join(lines))


_TOLD = 20
"""Lines of standard error in a message."""


def _kinds(answer: AdapterAnswer) -> int:
    others = (answer.refused, answer.exception, answer.protocol_error)
    return bool(answer.ok) + sum(other is not None for other in others)


@dataclass(slots=True)
class Channels:
    """The channels of this process: whoever needs an adapter takes one that is idle.

    All of them are ended with the process. A forked child leaves its parent's alone.
    """

    _idle: dict[str, list[AdapterChannel]] = field(default_factory=dict)
    _all: list[AdapterChannel] = field(default_factory=list)
    _process: int = 0

    def borrow(
        self, name: str, opener: Opener, limits: AdapterTimeouts = DEFAULT
    ) -> AdapterChannel:
        """A channel for the exclusive use of the caller, until it is given back.

        `name` says what the opener opens: channels of one name are alike.
        """
        if self._process != os.getpid():
            self._idle, self._all, self._process = {}, [], os.getpid()
            atexit.unregister(self.close)
            atexit.register(self.close)
        idle = self._idle.get(name)
        if idle:
            channel = idle.pop()
        else:
            channel = AdapterChannel(name, opener)
            self._all.append(channel)
        channel.limits = limits
        return channel

    def give_back(self, channel: AdapterChannel) -> None:
        """Keep the channel for the next that asks for one of its name."""
        idle = self._idle.setdefault(channel.name, [])
        if channel in self._all and channel not in idle:
            idle.append(channel)

    def close(self) -> None:
        """End every adapter that this process has started: all are asked first, then awaited."""
        if self._process != os.getpid():
            return
        for channel in self._all:
            channel.hang_up()
        for channel in self._all:
            channel.restart()
        self._idle.clear()
        self._all.clear()


CHANNELS: Final = Channels()
"""Of this process: starting an adapter for every system would take longer than its tests."""
