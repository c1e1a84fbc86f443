"""Holds an adapter against docs/adapter-protocol.md, point by point, before any suite runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from conformance.errors import DataError, UserError
from conformance.systems.external.channel import Answer, Channel, Command
from conformance.systems.external.system import (
    Capability,
    ExternalFactory,
    Hello,
    hello_command,
    limits_of,
    read_hello,
)
from conformance.systems.external.transport import (
    GRACE_SECONDS,
    Ended,
    NoAnswer,
    ProcessTransport,
    Rubbish,
)
from conformance.systems.external.wire import Observations, action_texts, read_action, to_json
from conformance.systems.protocol import ActionRefused, Observation, SystemFailed
from conformance.tla import Action, State, Value, differing, format_value
from conformance.verdict import Verdict

OBSERVE: Command = {"command": "observe"}
NONSENSE: Mapping[str, str] = {"command": "no-such-command"}
MANY = 3000
"""Commands in one line: more than fit into a pipe at once, there or back."""
ACTIONS = 100
"""So many actions are tried at most, each from the initial state."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the points need of a model: constants, an initial state and what is enabled there."""

    model: str
    specification: str
    constants: Mapping[str, Value]
    variables: tuple[str, ...]
    initial: State
    enabled: tuple[Action, ...]


class NotKept(Exception):
    """The adapter does not keep to the protocol; the message says in what."""


class NotApplicable(Exception):
    """The point does not concern this adapter; the message says why."""


@dataclass(frozen=True, slots=True)
class PointResult:
    """What one point showed."""

    point: str
    verdict: Verdict
    told: str
    seconds: float


class Subject:
    """The adapter, in one conversation; and the model's part."""

    def __init__(self, factory: ExternalFactory, material: Material) -> None:
        self.factory, self.material = factory, material
        self.channel = self.new_channel()
        self.hello: Hello | None = None

    def new_channel(self) -> Channel:
        """Another conversation, which nobody has begun."""
        return Channel(self.factory.name, self.factory.opener, self.factory.limits)

    def said(self) -> Hello:
        """What the adapter has said of itself. NotKept if that could not be read."""
        if self.hello is None:
            raise NotKept("it has not answered `hello`")
        return self.hello

    def greet(self, channel: Channel) -> Hello:
        """Say hello for the model's constants."""
        [answer] = channel.call([hello_command(self.material.constants)])
        said = read_hello(channel.name, answer)
        channel.limits = limits_of(self.factory.limits, said)
        return said

    def reset(self, channel: Channel | None = None) -> Observation:
        """Begin a test, and look."""
        return self.read((channel or self.channel).call([self.reset_command(), OBSERVE])[-1])

    def reset_command(self) -> Command:
        """To the model's initial state."""
        pairs = zip(self.material.variables, self.material.initial, strict=True)
        form = self.said().values
        return {
            "command": "reset",
            "initial": {name: to_json(value, form) for name, value in pairs},
        }

    def apply_command(self, action: Action) -> Command:
        """To take a step."""
        return action_texts(self.said().values)(action)

    def read(self, text: msgspec.Raw) -> Observation:
        """What an answer to `observe` shows."""
        said = self.said()
        return Observations(said.variables, frozenset(said.sometimes)).read(text)

    def close(self) -> None:
        """End the conversation."""
        self.channel.restart()


def check_adapter(factory: ExternalFactory, material: Material) -> Iterator[PointResult]:
    """Hold it against each point in turn. UserError if it cannot be started at all."""
    subject = Subject(factory, material)
    try:
        subject.channel.start()
        for point, holds in POINTS.items():
            if subject.hello is None and holds is not _answers_hello:
                yield PointResult(point, Verdict.INCONCLUSIVE, "not tried: no `hello`", 0.0)
            else:
                yield _result(point, holds, subject)
    finally:
        subject.close()


def _result(point: str, holds: Callable[[Subject], str], subject: Subject) -> PointResult:
    started = time.monotonic()
    verdict = Verdict.PASS
    try:
        if subject.hello is not None and not subject.channel.ready:
            subject.greet(subject.channel)  # the point before has broken the conversation
        told = holds(subject)
    except NotApplicable as reason:
        told = f"does not concern it: {reason}"
    except (NotKept, SystemFailed, UserError, DataError) as error:
        verdict, told = Verdict.FAIL, str(error)
    except ActionRefused as refusal:
        verdict, told = Verdict.FAIL, f"was refused: {refusal}"
    return PointResult(point, verdict, told, time.monotonic() - started)


def _answers_hello(subject: Subject) -> str:
    said = subject.greet(subject.channel)
    wanted = subject.material.specification
    if said.specification != wanted:
        raise NotKept(f"it is an adapter of {said.specification}, the model is one of {wanted}")
    unknown = sorted({*said.variables} - {*subject.material.variables})
    if unknown:
        raise NotKept(f"the specification has no variable {', '.join(unknown)}")
    subject.hello = said
    hidden = [name for name in subject.material.variables if name not in said.variables]
    return f"{said.name}: {', '.join(said.variables)}" + (
        f"; not observed: {', '.join(hidden)}" if hidden else ""
    )


def _answers_hello_again(subject: Subject) -> str:
    before, again = subject.said(), subject.greet(subject.channel)
    if again != before:
        raise NotKept(f"to the same `hello` it first said {before}, then {again}")
    return "the same answer"


def _knows_what_it_does_not_know(subject: Subject) -> str:
    answers = subject.channel.answers([NONSENSE, hello_command(subject.material.constants)])
    if len(answers) != 1 or answers[0].protocol_error is None:
        raise NotKept(
            f"to an unknown command and one more it said {_told(answers)}; the answer is one "
            "`protocol_error`, and the line's other commands are left out"
        )
    subject.greet(subject.channel)
    return _told(answers)


def _resets(subject: Subject) -> str:
    seen = subject.reset()
    _expect_initial(subject, seen)
    return f"shows the model's initial state in {len(seen)} variables"


def _expect_initial(subject: Subject, seen: Observation) -> None:
    material = subject.material
    for name in differing(material.variables, material.initial, seen):
        expected = material.initial[material.variables.index(name)]
        raise NotKept(
            f"after `reset` {name} is {format_value(seen[name])}, in the initial state it is "
            f"{format_value(expected)}"
        )


def _observing_changes_nothing(subject: Subject) -> str:
    *_, first, second = subject.channel.call([subject.reset_command(), OBSERVE, OBSERVE])
    _expect_same(subject.read(first), subject.read(second), "observing twice")
    return "twice the same"


def _expect_same(one: Observation, other: Observation, what: str) -> None:
    if dict(one) != dict(other):
        raise NotKept(f"{what} shows {dict(one)}, then {dict(other)}")


def _takes_many_commands(subject: Subject) -> str:
    answers = subject.channel.call([subject.reset_command(), *[OBSERVE] * MANY])
    sizes = sum(len(bytes(answer)) for answer in answers)
    return f"{MANY + 1} commands in one line, {sizes:,} bytes back"


def _applies(subject: Subject) -> str:
    enabled = subject.material.enabled[:ACTIONS]
    for action in enabled:
        commands = [subject.reset_command(), subject.apply_command(action), OBSERVE]
        try:
            subject.read(subject.channel.call(commands)[-1])
        except (ActionRefused, SystemFailed) as error:
            raise NotKept(f"{action}: {error}") from None
    names = dict.fromkeys(action.name for action in enabled)
    return f"{len(enabled)} actions from the initial state: {', '.join(names)}"


def _forgets(subject: Subject) -> str:
    for action in subject.material.enabled[:ACTIONS]:
        subject.channel.call([subject.reset_command(), subject.apply_command(action)])
        _expect_initial(subject, subject.reset())
    return "nothing of the last test is left after a reset"


def _rejects_unknown_actions(subject: Subject) -> str:
    action: Command = {"command": "apply", "action": "NoSuchAction", "arguments": []}
    answers = subject.channel.answers([subject.reset_command(), action, OBSERVE])
    if len(answers) != 2:
        raise NotKept(f"to an action that does not exist it said {_told(answers)}")
    _expect_initial(subject, subject.reset())
    return _told(answers[-1:])


def _offers(subject: Subject) -> str:
    if not subject.said().offerable:
        raise NotApplicable("it declares nothing in `offerable`")
    offers: Command = {"command": "offers"}
    _, before, first, second, after = subject.channel.call(
        [subject.reset_command(), OBSERVE, offers, offers, OBSERVE]
    )
    _expect_same(subject.read(before), subject.read(after), "asking for offers")
    one, other = (frozenset(map(read_action, _array(text))) for text in (first, second))
    beyond = sorted({action.name for action in one} - {*subject.said().offerable})
    if beyond:
        raise NotKept(f"it offers {', '.join(beyond)}, which `offerable` does not name")
    if one != other:
        raise NotKept("it offers something else when it is asked again")
    return ", ".join(sorted(map(str, one))) or "nothing in the initial state"


def _array(text: msgspec.Raw) -> list[object]:
    found = msgspec.json.decode(text)
    if not isinstance(found, list):
        raise NotKept(f"it offers {str(found)[:100]}, which is no array of actions")
    return found


def _goes_back(subject: Subject) -> str:
    if Capability.SNAPSHOT not in subject.said().capabilities:
        raise NotApplicable("it does not declare the capability `snapshot`")
    before = subject.reset()
    snapshot = subject.channel.ask("snapshot")
    restore: Command = {"command": "restore", "snapshot": snapshot}
    for action in subject.material.enabled[:ACTIONS]:
        *_, seen = subject.channel.call([subject.apply_command(action), restore, OBSERVE])
        _expect_same(before, subject.read(seen), f"a snapshot, and restoring it after {action},")
    return "a snapshot is restored after every action"


def _holds_conversations_apart(subject: Subject) -> str:
    other = subject.new_channel()
    try:
        subject.greet(other)
        before = subject.reset()
        subject.reset(other)
        for action in subject.material.enabled[:ACTIONS]:
            other.call([subject.reset_command(), subject.apply_command(action)])
            seen = subject.read(subject.channel.call([OBSERVE])[0])
            _expect_same(before, seen, f"{action} in another conversation")
    finally:
        other.restart()
    return "two at a time do not disturb one another"


def _ends(subject: Subject) -> str:
    transport = subject.factory.opener()
    try:
        if not isinstance(transport, ProcessTransport):
            raise NotApplicable("it is no process of ours")
        line = msgspec.json.encode({"id": 1, "commands": [NONSENSE]}) + b"\n"
        transport.exchange(line, subject.factory.limits.start)
        transport.hang_up()
        if not transport.ends_within(GRACE_SECONDS):
            raise NotKept(
                f"it still runs {GRACE_SECONDS:g} s after its standard input has ended: it would "
                "stay behind if kconform were killed"
            )
    except (Ended, NoAnswer, Rubbish) as error:
        raise NotKept(f"another one {error}") from None
    finally:
        transport.kill()
    return "exits when its standard input ends"


def _told(answers: list[Answer]) -> str:
    """The answers in words, the first line of each."""
    words: list[str] = []
    for answer in answers:
        texts = {
            "refused": answer.refused,
            "exception": answer.exception,
            "protocol_error": answer.protocol_error,
        }
        failed = [f"{kind}: {text}" for kind, text in texts.items() if text is not None]
        words.append(failed[0].partition("\n")[0] if failed else "ok")
    return ", ".join(words)


POINTS: Mapping[str, Callable[[Subject], str]] = {
    "hello": _answers_hello,
    "hello again": _answers_hello_again,
    "unknown command": _knows_what_it_does_not_know,
    "reset": _resets,
    "observe": _observing_changes_nothing,
    "many commands": _takes_many_commands,
    "apply": _applies,
    "reset forgets": _forgets,
    "unknown action": _rejects_unknown_actions,
    "offers": _offers,
    "snapshot": _goes_back,
    "two conversations": _holds_conversations_apart,
    "end": _ends,
}
"""By name; the first is needed by all others."""
