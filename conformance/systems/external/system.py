"""A system that is an adapter in another process: actions and observations over the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

import msgspec

from conformance.errors import DataError, UserError
from conformance.systems.external.channel import (
    CHANNELS,
    DEFAULT,
    PROTOCOL,
    AdapterChannel,
    AdapterTimeouts,
    Command,
)
from conformance.systems.external.transport import Opener, ProcessTransport, SocketTransport
from conformance.systems.external.wire import (
    Form,
    Observations,
    action_texts,
    read_action,
    to_json,
)
from conformance.systems.protocol import (
    ActionRefused,
    Observation,
    SystemFailed,
    SystemUnderTest,
)
from conformance.tla import Action, Value

_OBSERVE: Command = {"command": "observe"}


class Capability(StrEnum):
    """What an adapter may be able to do beyond what every adapter has to."""

    SNAPSHOT = "snapshot"
    """`snapshot` and `restore`."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an adapter says of itself (docs/adapter-protocol.md)."""

    protocol: int
    name: str
    specification: str
    variables: tuple[str, ...]
    version: str = ""
    sometimes: tuple[str, ...] = ()
    offerable: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    values: Form = Form.PLAIN
    call_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None


# Made once: suites are replayed by several threads, and msgspec prepares a type at its first use.
_HELLO = msgspec.json.Decoder(Hello)


def greet(channel: AdapterChannel, constants: Mapping[str, Value]) -> Hello:
    """Say hello for these constants, and hold what the adapter says against the protocol.

    UserError if it does not speak it, or not this version; ActionRefused if it cannot take the
    constants.
    """
    try:
        [reply] = channel.call([hello_command(constants)])
    except SystemFailed as error:
        raise UserError(f"{error}\nNothing was tested.") from None
    return read_hello(channel.name, reply)


def hello_command(constants: Mapping[str, Value]) -> Command:
    """The command that begins a conversation, or begins it again for other constants."""
    values = {name: to_json(value) for name, value in constants.items()}
    return {"command": "hello", "protocol": PROTOCOL, "constants": values}


def read_hello(name: str, reply: msgspec.Raw) -> Hello:
    """The answer to `hello`. UserError if it is none, or of another version of the protocol."""
    try:
        answer = _HELLO.decode(reply)
    except msgspec.MsgspecError as error:
        raise UserError(
            f"The adapter {name} does not answer `hello` as docs/adapter-protocol.md says: "
            f"{error}. Correct it; `kconform adapter-check` shows what else is missing."
        ) from None
    if answer.protocol != PROTOCOL:
        raise UserError(
            f"The adapter {name} speaks version {answer.protocol} of the adapter protocol, this "
            f"kconform speaks version {PROTOCOL}. Use versions that fit."
        )
    undeclared = sorted({*answer.sometimes} - {*answer.variables})
    if undeclared or not answer.variables:
        what = f"`sometimes` names {undeclared[0]}" if undeclared else "it names no variable"
        raise UserError(
            f"The adapter {name} must declare in `variables` all that it ever observes, but {what}."
        )
    return answer


def limits_of(limits: AdapterTimeouts, hello: Hello) -> AdapterTimeouts:
    """The limits that the adapter has asked for."""
    return limits if hello.call_seconds is None else replace(limits, call=hello.call_seconds)


class ExternalSystem:
    """Drives an adapter. An action and the observation after it travel in one line."""

    def __init__(
        self, channel: AdapterChannel, constants: Mapping[str, Value], hello: Hello
    ) -> None:
        self._channel, self._constants, self.hello = channel, constants, hello
        channel.limits = limits_of(channel.limits, hello)
        self._text = action_texts(hello.values)
        self._observations = Observations(hello.variables, frozenset(hello.sometimes))
        self._observed: Observation | None = None
        self._closed = False

    @property
    def variables(self) -> tuple[str, ...]:
        """What the adapter has declared."""
        return self.hello.variables

    @property
    def sometimes(self) -> frozenset[str]:
        """What it may leave out."""
        return frozenset(self.hello.sometimes)

    @property
    def longest_call(self) -> float:
        """A reset may have to start the adapter again, and the call itself may take its time."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, initial: Mapping[str, Value]) -> None:
        """Begin a test; an adapter that is gone is started again."""
        form = self.hello.values
        values = {name: to_json(value, form) for name, value in initial.items()}
        commands: list[Command] = [{"command": "reset", "initial": values}, _OBSERVE]
        if not self._channel.ready:
            commands.insert(0, hello_command(self._constants))
        self._observed = self._observations.read(self._channel.call(commands)[-1])

    def apply(self, action: Action) -> None:
        """Take a step, and see in the same line what came of it."""
        self._observed = None
        _, seen = self._channel.call([self._text(action), _OBSERVE])
        self._observed = self._observations.read(seen)

    def observe(self) -> Mapping[str, Value]:
        """What the adapter showed after the last step."""
        if self._observed is None:
            self._observed = self._observations.read(self._channel.call([_OBSERVE])[0])
        return self._observed

    @property
    def offerable(self) -> frozenset[str]:
        """What the adapter says it starts by itself; nothing, if it does not say."""
        return frozenset(self.hello.offerable)

    def offers(self) -> frozenset[Action]:
        """What it would start now."""
        if not self.hello.offerable:
            return frozenset()
        reply = self._channel.ask("offers")
        try:
            offered = frozenset(map(read_action, reply if isinstance(reply, list) else [reply]))
        except DataError as error:
            raise SystemFailed(f"The adapter's offers cannot be read. {error}") from None
        beyond = sorted({action.name for action in offered} - self.offerable)
        if beyond:
            raise SystemFailed(
                f"The adapter offers {', '.join(beyond)}, which is not among what it has declared "
                f"as offerable: {', '.join(sorted(self.offerable))}."
            )
        return offered

    def close(self) -> None:
        """Leave the adapter to the next system of this process."""
        if not self._closed:
            self._closed = True
            CHANNELS.give_back(self._channel)


class SystemWithSnapshots(ExternalSystem):
    """An adapter that can go back."""

    def snapshot(self) -> object:
        """What the adapter gave as the name of its present state."""
        return self._channel.ask("snapshot")

    def restore(self, snapshot: object) -> None:
        """Go back to it."""
        self._observed = None
        self._channel.ask("restore", snapshot=snapshot)


@dataclass(frozen=True, slots=True)
class ExternalFactory:
    """Makes systems of one adapter, which is started once in each process."""

    name: str
    """As it was given, with its scheme."""
    opener: Opener
    limits: AdapterTimeouts = DEFAULT

    def __call__(self, constants: Mapping[str, Value]) -> SystemUnderTest:
        """A system for these constants. UserError if the adapter cannot be had for them."""
        channel = CHANNELS.borrow(self.name, self.opener, self.limits)
        try:
            hello = greet(channel, constants)
        except BaseException as error:
            CHANNELS.give_back(channel)
            if not isinstance(error, ActionRefused):
                raise
            raise UserError(f"The adapter {self.name} cannot take this model: {error}") from None
        goes_back = Capability.SNAPSHOT in hello.capabilities
        return (SystemWithSnapshots if goes_back else ExternalSystem)(channel, constants, hello)

    def cannot_take(self, specification: str, constants: Mapping[str, Value]) -> str:
        """What the adapter refuses, or that it is one of another specification."""
        channel = CHANNELS.borrow(self.name, self.opener, self.limits)
        try:
            hello = greet(channel, constants)
        except ActionRefused as refusal:
            return str(refusal)
        finally:
            CHANNELS.give_back(channel)
        if hello.specification != specification:
            return f"it is an adapter of {hello.specification}, the model is one of {specification}"
        return ""


def of_command(command: str) -> ExternalFactory:
    """`exec:COMMAND`: a process of ours, with shell-like words but no shell."""
    return ExternalFactory(f"exec:{command}", lambda: ProcessTransport(command))


def of_address(address: str) -> ExternalFactory:
    """`tcp:HOST:PORT` or `tcp:PORT` of this machine: an adapter that listens.

    UserError if it is no address.
    """
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UserError(
            f"tcp:{address} is no address: write tcp:HOST:PORT, or tcp:PORT for this machine."
        )
    host = host.strip("[]") or "127.0.0.1"
    limits = AdapterTimeouts(start=DEFAULT.call)  # it runs already
    return ExternalFactory(
        f"tcp:{address}", lambda: SocketTransport(host, int(port), limits.start), limits
    )
