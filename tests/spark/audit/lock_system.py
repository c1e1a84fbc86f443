"""An implementation of the lock, honest or with a bug, as a recorder drives it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.protocol import ActionRefused
from conformance.tla import Action, Value


class LockSystem:
    variables: tuple[str, ...] = ("holder", "log")

    def __init__(self, *, forgets: bool = False) -> None:
        self._forgets = forgets

    def reset(self, initial: Mapping[str, Value]) -> None:
        self._holder = initial["holder"]
        self._log: tuple[Value, ...] = ()

    def apply(self, action: Action) -> None:
        if action.name == "Drop":
            if self._holder == "nobody":
                raise ActionRefused("nobody holds it")
            self._holder = "nobody"
            if self._forgets and len(self._log) == 2:
                self._log = ()
        else:
            self._holder = action.args[0]
            self._log = (*self._log, action.args[0])

    def observe(self) -> Mapping[str, Value]:
        return {"holder": self._holder, "log": self._log}


def honest(constants: Mapping[str, Value]) -> LockSystem:
    assert constants["Limit"] == 3
    return LockSystem()


def forgetful(constants: Mapping[str, Value]) -> LockSystem:
    return LockSystem(forgets=True)
