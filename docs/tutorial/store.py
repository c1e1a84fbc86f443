"""A store of one's own, and the adapter that lets kconform drive it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.tla import Action, Fn, Value


class Store:
    """Keeps what a key holds, and its version."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[str | None, int]] = {}

    def get(self, key: str) -> str | None:
        return self.entries[key][0] if key in self.entries else None

    def version(self, key: str) -> int:
        return self.entries[key][1] if key in self.entries else 0

    def put(self, key: str, value: str) -> None:
        self.entries[key] = (value, self.version(key) + 1)

    def remove(self, key: str) -> None:
        del self.entries[key]

    def compare_and_set(self, key: str, expected: int, value: str) -> bool:
        if self.version(key) != expected:
            return False
        self.put(key, value)
        return True


class Adapter:
    """Maps the spec's actions to calls, and the store's state to the spec's variables."""

    variables = ("value", "version", "answer")  # `writes` is a ghost: a store has none

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self.keys = sorted(str(key) for key in constants["Keys"])
        self.reset({})

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.store, self.answer = Store(), "none"

    def apply(self, action: Action) -> None:
        self.answer = "none"
        match action:
            case ("Put", (key, value)):
                self.store.put(key, value)
            case ("Remove", (key,)):
                self.store.remove(key)
            case ("CompareAndSet", (key, expected, value)):
                written = self.store.compare_and_set(key, expected, value)
                self.answer = "written" if written else "conflict"

    def observe(self) -> Mapping[str, Value]:
        return {
            "value": Fn({key: self.store.get(key) or "absent" for key in self.keys}),
            "version": Fn({key: self.store.version(key) for key in self.keys}),
            "answer": self.answer,
        }


def create(constants: Mapping[str, Value]) -> Adapter:
    return Adapter(constants)
