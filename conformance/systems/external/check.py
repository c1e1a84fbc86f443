"""Holds an adapter against docs/adapter-protocol.md, point by point, before any suite runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from conformance.errors import DataError, UserError
from conformance.systems.external.channel import AdapterAnswer, AdapterChannel, Command
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
    AdapterGone,
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


class ProtocolBreach(Exception):
    """The adapter does not keep to the protocol; the message says in what."""


class PointNotApplicable(Exception):
    """The point does not concern this adapter; the message says why."""


@dataclass(frozen=True, slots=True)
class PointResult:
    """What one point showed."""

    point: str
    verdict: Verdict
    detail: str
    seconds: float


class CheckedAdapter:
    """The adapter, in one conversation; and the model's part."""

    def __init__(self, factory: ExternalFactory, material: Material) -> None:
        self.factory, self.material = factory, material
        self.channel = self.new_channel()
        self.hello: Hello | None = None

    def new_channel(self) -> AdapterChannel:
        """Another conversation, which nobody has begun."""
        return AdapterChannel(self.factory.name, self.factory.opener, self.factory.limits)

    def greeting(self) -> Hello:
        """What the adapter has said of itself. ProtocolBreach if that could not be read."""
        if self.hello is None:
            raise ProtocolBreach("it has not answered `hello`")
        return self.hello

    def greet(self, channel: AdapterChannel) -> Hello:
        """Say hello for the model's constants."""
        [answer] = channel.call([hello_command(self.material.constants)])
        hello = read_hello(channel.name, answer)
        channel.limits = limits_of(self.factory.limits, hello)
        return hello

    def reset(self, channel: AdapterChannel | None = None) -> Observation:
        """Begin a test, and look."""
        return self.read((channel or self.channel).call([self.reset_command(), OBSERVE])[-1])

    def reset_command(self) -> Command:
        """To the model's initial state."""
        pairs = zip(self.material.variables, self.material.initial, strict=True)
        form = self.greeting().values
        return {
            "command": "reset",
            "initial": {name: to_json(value, form) for name, value in pairs},
        }

    def apply_command(self, action: Action) -> Command:
        """To take a step."""
        return action_texts(self.greeting().values)(action)

    def read(self, text: msgspec.Raw) -> Observation:
        """What an answer to `observe` shows."""
        hello = self.greeting()
        return Observations(hello.variables, frozenset(hello.sometimes)).read(text)

    def close(self) -> None:
        """End the conversation."""
        self.channel.restart()


def check_adapter(factory: ExternalFactory, material: Material) -> Iterator[PointResult]:
    """Hold it against each point in turn. UserError if it cannot be started at all."""
    subject = CheckedAdapter(factory, material)
    try:
        subject.channel.start()
        for point, holds in POINTS.items():
            if subject.hello is None and holds is not _answers_hello:
                yield PointResult(point, Verdict.INCONCLUSIVE, "not tried: no `hello`", 0.0)
            else:
                yield _result(point, holds, subject)
    finally:
        subject.close()


def _result(
    point: str, holds: Callable[[CheckedAdapter], str], subject: CheckedAdapter
) -> PointResult:
    started = time.monotonic()
    verdict = Verdict.PASS
    try:
        if subject.hello is not None and not subject.channel.ready:
            subject.greet(subject.channel)  # the point before has broken the conversation
        text = holds(subject)
    except PointNotApplicable as reason:
        text = f"does not concern it: {reason}"
    except (ProtocolBreach, SystemFailed, UserError, DataError) as error:
        verdict, text = Verdict.FAIL, str(error)
    except ActionRefused as refusal:
        verdict, text = Verdict.FAIL, f"was refused: {refusal}"
    return PointResult(point, verdict, text, time.monotonic() - started)


def _answers_hello(subject: CheckedAdapter) -> str:
    hello = subject.greet(subject.channel)
    wanted = subject.material.specification
    if hello.specification != wanted:
        raise ProtocolBreach(
            f"it is an adapter of {hello.specification}, the model is one of {wanted}"
        )
    unknown = sorted({*hello.variables} - {*subject.material.variables})
    if unknown:
        raise ProtocolBreach(f"the specification has no variable {', '.join(unknown)}")
    subject.hello = hello
    hidden = [name for name in subject.material.variables if name not in hello.variables]
    return f"{hello.name}: {', '.join(hello.variables)}" + (
        f"; not observed: {', '.join(hidden)}" if hidden else ""
    )


def _answers_hello_again(subject: CheckedAdapter) -> str:
    before, again = subject.greeting(), subject.greet(subject.channel)
    if again != before:
        raise ProtocolBreach(f"to the same `hello` it first said {before}, then {again}")
    return "the same answer"


def _knows_what_it_does_not_know(subject: CheckedAdapter) -> str:
    answers = subject.channel.answers([NONSENSE, hello_command(subject.material.constants)])
    if len(answers) != 1 or answers[0].protocol_error is None:
        raise ProtocolBreach(
            f"to an unknown command and one more it said {_answer_text(answers)}; the answer is "
            "one `protocol_error`, and the line's other commands are left out"
        )
    subject.greet(subject.channel)
    return _answer_text(answers)


def _resets(subject: CheckedAdapter) -> str:
    seen = subject.reset()
    _expect_initial(subject, seen)
    return f"shows the model's initial state in {len(seen)} variables"


def _expect_initial(subject: CheckedAdapter, seen: Observation) -> None:
    material = subject.material
    for name in differing(material.variables, material.initial, seen):
        expected = material.initial[material.variables.index(name)]
        raise ProtocolBreach(
            f"after `reset` {name} is {format_value(seen[name])}, in the initial state it is "
            f"{format_value(expected)}"
        )


def _observing_changes_nothing(subject: CheckedAdapter) -> str:
    *_, first, second = subject.channel.call([subject.reset_command(), OBSERVE, OBSERVE])
    _expect_same(subject.read(first), subject.read(second), "observing twice")
    return "twice the same"


def _expect_same(observation: Observation, other: Observation, what: str) -> None:
    if dict(observation) != dict(other):
        raise ProtocolBreach(f"{what} shows {dict(observation)}, then {dict(other)}")


def _takes_many_commands(subject: CheckedAdapter) -> str:
    answers = subject.channel.call([subject.reset_command(), *[OBSERVE] * MANY])
    sizes = sum(len(bytes(answer)) for answer in answers)
    return f"{MANY + 1} commands in one line, {sizes:,} bytes back"


def _applies(subject: CheckedAdapter) -> str:
    enabled = subject.material.enabled[:ACTIONS]
    for action in enabled:
        commands = [subject.reset_command(), subject.apply_command(action), OBSERVE]
        try:
            subject.read(subject.channel.call(commands)[-1])
        except (ActionRefused, SystemFailed) as error:
            raise ProtocolBreach(f"{action}: {error}") from None
    names = dict.fromkeys(action.name for action in enabled)
    return f"{len(enabled)} actions from the initial state: {', '.join(names)}"


def _forgets(subject: CheckedAdapter) -> str:
    for action in subject.material.enabled[:ACTIONS]:
        subject.channel.call([subject.reset_command(), subject.apply_command(action)])
        _expect_initial(subject, subject.reset())
    return "nothing of the last test is left after a reset"


def _rejects_unknown_actions(subject: CheckedAdapter) -> str:
    action: Command = {"command": "apply", "action": "NoSuchAction", "arguments": []}
    answers = subject.channel.answers([subject.reset_command(), action, OBSERVE])
    if len(answers) != 2:
        raise ProtocolBreach(f"to an action that does not exist it said {_answer_text(answers)}")
    _expect_initial(subject, subject.reset())
    return _answer_text(answers[-1:])


def _offers(subject: CheckedAdapter) -> str:
    if not subject.greeting().offerable:
        raise PointNotApplicable("it declares nothing in `offerable`")
    offers: Command = {"command": "offers"}
    _, before, first, second, after = subject.channel.call(
        [subject.reset_command(), OBSERVE, offers, offers, OBSERVE]
    )
    _expect_same(subject.read(before), subject.read(after), "asking for offers")
    item, other = (frozenset(map(read_action, _array(text))) for text in (first, second))
    beyond = sorted({action.name for action in item} - {*subject.greeting().offerable})
    if beyond:
        raise ProtocolBreach(f"it offers {', '.join(beyond)}, which `offerable` does not name")
    if item != other:
        raise ProtocolBreach("it offers something else when it is asked again")
    return ", ".join(sorted(map(str, item))) or "nothing in the initial state"


def _array(text: msgspec.Raw) -> list[object]:
    result = msgspec.json.decode(text)
    if not isinstance(result, list):
        raise ProtocolBreach(f"it offers {str(result)[:100]}, which is no array of actions")
    return result


def _goes_back(subject: CheckedAdapter) -> str:
    if Capability.SNAPSHOT not in subject.greeting().capabilities:
        raise PointNotApplicable("it does not declare the capability `snapshot`")
    before = subject.reset()
    snapshot = subject.channel.ask("snapshot")
    restore: Command = {"command": "restore", "snapshot": snapshot}
    for action in subject.material.enabled[:ACTIONS]:
        *_, seen = subject.channel.call([subject.apply_command(action), restore, OBSERVE])
        _expect_same(before, subject.read(seen), f"a snapshot, and restoring it after {action},")
    return "a snapshot is restored after every action"


def _holds_conversations_apart(subject: CheckedAdapter) -> str:
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


def _ends(subject: CheckedAdapter) -> str:
    transport = subject.factory.opener()
    try:
        if not isinstance(transport, ProcessTransport):
            raise PointNotApplicable("it is no process of ours")
        line = msgspec.json.encode({"id": 1, "commands": [NONSENSE]}) + b"\n"
        transport.exchange(line, subject.factory.limits.start)
        transport.hang_up()
        if not transport.ends_within(GRACE_SECONDS):
            raise ProtocolBreach(
                f"it still runs {GRACE_SECONDS:g} s after its standard input has ended: it would "
                "stay behind if kconform were killed"
            )
    except (AdapterGone, NoAnswer, Rubbish) as error:
        raise ProtocolBreach(f"another one {error}") from None
    finally:
        transport.kill()
    return "exits when its standard input ends"


def _answer_text(answers: list[AdapterAnswer]) -> str:
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


POINTS: Mapping[str, Callable[[CheckedAdapter], str]] = {
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
