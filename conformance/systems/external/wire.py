"""TLA+ values as the protocol's JSON: ITF, in which an integer may be a plain number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import cast

import msgspec

from conformance.errors import DataError
from conformance.systems.protocol import Observation, SystemFailed
from conformance.tla import Action, Json, Value, from_itf, to_itf

EXACT = 2**53
"""From here on JSON's numbers are not exact in every language, so that integers are texts."""


class Form(StrEnum):
    """How the harness writes values to an adapter. It reads both."""

    PLAIN = "plain"
    """ITF with integers as JSON's numbers."""
    ITF = "itf"
    """ITF as its other tools write it: every integer is {"#bigint": "1"}."""


def to_json(value: Value, form: Form = Form.PLAIN) -> Json:
    """The value in the form."""
    whole = to_itf(value)
    return whole if form is Form.ITF else _plain(whole)


def _plain(data: Json) -> Json:
    match data:
        case {"#bigint": str(digits)}:
            number = int(digits)
            return number if -EXACT < number < EXACT else data
        case Mapping():
            return {key: _plain(item) for key, item in data.items()}
        case list() | tuple():
            return [_plain(item) for item in data]
    return data


def from_json(data: object) -> Value:
    """The value that was written in either form. DataError if it is none."""
    return from_itf(cast("Json", data))


_REMEMBERED = 200_000


class Observations:
    """Makes observations of what an adapter shows, the same one for the same text.

    So the harness finds a state that it has compared before by identity.
    """

    __slots__ = ("_known", "_sometimes", "_variables")

    def __init__(self, variables: tuple[str, ...], sometimes: frozenset[str]) -> None:
        self._variables, self._sometimes = frozenset(variables), sometimes
        self._known: dict[bytes, Observation] = {}

    def read(self, text: msgspec.Raw) -> Observation:
        """The values shown. SystemFailed if they are not those of the declared variables."""
        key = bytes(text)
        observation = self._known.get(key)
        if observation is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            observation = self._known[key] = self._make(key)
        return observation

    def _make(self, text: bytes) -> Observation:
        shown = msgspec.json.decode(text)
        if not isinstance(shown, dict):
            raise SystemFailed(
                f"The adapter answered `observe` with {_short(text)}, which is no object of "
                "variables and their values."
            )
        unknown = sorted({*shown} - self._variables)
        missing = sorted(self._variables - {*shown} - self._sometimes)
        for names, what in ((unknown, "shows"), (missing, "does not show")):
            if names:
                raise SystemFailed(
                    f"The adapter {what} {', '.join(names)}; it has declared the variables "
                    f"{', '.join(sorted(self._variables))}. Correct what it answers to `hello`, or "
                    "what it observes."
                )
        return Observation({name: _value(name, data) for name, data in shown.items()})


def _value(name: str, data: object) -> Value:
    try:
        return from_json(data)
    except (DataError, TypeError) as error:
        raise SystemFailed(f"The adapter shows no TLA+ value in {name}. {error}") from None


def _short(text: bytes) -> str:
    shown = text[:100].decode("utf-8", "backslashreplace")
    return shown + ("..." if len(text) > len(shown) else "")


def read_action(data: object) -> Action:
    """An action of the form {"action": NAME, "arguments": [...]}. DataError if it is none."""
    match data:
        case {"action": str(name), "arguments": [*arguments]}:
            return Action(name, tuple([from_json(argument) for argument in arguments]))
    raise DataError(f"{str(data)[:100]} is no action: it needs `action` and `arguments`.")


ApplyText = Callable[[Action], msgspec.Raw]


def action_texts(form: Form) -> ApplyText:
    """Writes the command that applies an action, each action once."""
    known: dict[Action, msgspec.Raw] = {}

    def text(action: Action) -> msgspec.Raw:
        entry = known.get(action)
        if entry is None:
            body = {
                "command": "apply",
                "action": action.name,
                "arguments": [to_json(value, form) for value in action.args],
            }
            entry = known[action] = msgspec.Raw(msgspec.json.encode(body))
        return entry

    return text
