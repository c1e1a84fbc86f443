"""A model's constants as the adapter needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from conformance.tla import Value

NO_KEY = "no key"


@dataclass(frozen=True, slots=True)
class OperationSettings:
    """One operation: it completes once so many of its keys' events have come."""

    name: str
    keys: tuple[str, ...]
    needs: int
    lock: str
    triggers: str | None


@dataclass(frozen=True, slots=True)
class DelayedSettings:
    """What a model fixes. `completers` and `cancellers`: the key of each of these threads."""

    operations: tuple[OperationSettings, ...]
    keys: tuple[str, ...]
    completers: Mapping[str, str]
    cancellers: Mapping[str, str]
    purge_interval: int


def settings_of(constants: Mapping[str, Value]) -> DelayedSettings:
    """Read a model's constants."""
    names = sorted(str(name) for name in cast("frozenset[Value]", constants["Operations"]))
    return DelayedSettings(
        operations=tuple(_operation(constants, name) for name in names),
        keys=tuple(sorted(str(key) for key in cast("frozenset[Value]", constants["Keys"]))),
        completers=_names(constants["Completers"]),
        cancellers=_names(constants["Cancellers"]),
        purge_interval=cast("int", constants["PurgeInterval"]),
    )


def _operation(constants: Mapping[str, Value], name: str) -> OperationSettings:
    def of(constant: str) -> Value:
        return cast("Mapping[str, Value]", constants[constant])[name]

    triggers = str(of("Triggers"))
    return OperationSettings(
        name,
        tuple(str(key) for key in cast("tuple[Value, ...]", of("KeysOf"))),
        cast("int", of("Needs")),
        str(of("LockOf")),
        None if triggers == NO_KEY else triggers,
    )


def _names(value: Value) -> dict[str, str]:
    """A function of names; the empty one is the empty sequence."""
    if isinstance(value, tuple):
        return {}
    return {str(name): str(key) for name, key in cast("Mapping[Value, Value]", value).items()}
