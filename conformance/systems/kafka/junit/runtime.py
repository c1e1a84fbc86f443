"""A finding on the coordinators' runtime as a test of one broker's CoordinatorRuntime.

Only the broker that departs is there. Its log, its shard and its elections are the test's; the
runtime and the adapter of its listener are Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable
from conformance.tla import Action, Fn, Value

_PARTS = MappingProxyType(
    {
        "electAnotherBroker(": {"resigns"},
        "write(": {"writes", "writing"},
        "writeDirectly(": {"direct", "writing"},
        "thrownAfterwards(": {"throws"},
        "writeInTransaction(": {"transactional"},
        "completeTransaction(": {"completes"},
        "flush(": {"flushes"},
        "hears(": {"watermark"},
        "isActive(": {"answers"},
        "hasOpenBatch(": {"batch"},
        "deleteTopic(": {"deletes"},
        "offload(": {"offloads", "writes", "writing"},
    }
)
_OF_RUNTIME: Mapping[str, str] = MappingProxyType(
    {
        "Operate": "Write",
        "Flush": "FlushBatch",
        "BecomeLeader": "Elect",
        "Delete": "DeleteTopic",
        "HandleRole": "RunRole",
        "EndLoad": "CompleteLoad",
    }
)
"""By action of CoordinatorTasks, the one of the runtime that it takes."""
_NO_EPOCH = 0
_SMALL, _TWO, _LARGE = "4", "400", "KEY_BYTES * RECORDS_OF_A_BATCH"


@dataclass(slots=True)
class RuntimeScene(JUnitScene):
    """A runtime, as the broker that departs sees it."""

    template = "runtime.java.txt"
    calls = _PARTS
    broker: str
    records: str
    """Of plain size, so many fill a batch."""
    writes: int = 0

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> RuntimeScene:
        """The scene of the broker whose values are not as the specification has them."""
        scene = DepartingPath(behaviour)
        for name, expected, actual in scene.differing():
            if name in _ASSERTED and isinstance(expected, Fn) and isinstance(actual, Fn):
                for broker in expected:
                    if expected[broker] != actual.get(broker):
                        return cls(scene, str(broker), constants.get("MaxBatch", "1"))
        if any(name == "answers" for name, _, _ in scene.differing()):
            (broker, *_) = scene.action(len(scene) - 1).args
            return cls(scene, str(broker), constants.get("MaxBatch", "1"))
        raise Unsayable("nothing differs at its end that the runtime shows to others")

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a runtime."""
        return {"records": self.records}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self._action(number)
        if action.name == "Elect":
            self._elect(number, action)
        elif self._is_deletion(number):
            self._delete(number)
        elif self.broker not in action.args[:1]:
            raise Unsayable(f"it has no words for the step {action}")
        elif action.name == "RunRole":
            self.lines.add("runEvent();")
        elif action.name == "CompleteLoad":
            epochs = self._own(number - 1, "loads")
            assert isinstance(epochs, frozenset)
            begun = sorted(epoch for epoch in epochs if isinstance(epoch, int))
            self.lines.add(f"endLoad({begun.index(int(str(action.args[1])))});")
        elif action.name == "Write":
            self._write(*map(str, action.args[1:]))
        elif action.name == "TransactionalWrite":
            _, producer, kind, result = action.args
            self._append(f"writeInTransaction({producer}, {self._entries(str(kind))})", str(result))
        elif action.name == "CompleteTransaction":
            _, producer, end, result = action.args
            self.writes += 1
            call = f"completeTransaction({producer}, TransactionResult.{end})"
            self._append(call, str(result), "Void")
        elif action.name == "FlushBatch" and self._is_as_led(number, action):
            self.lines.add("flush();")
        else:
            raise Unsayable(f"it has no words for the step {action}")

    def _action(self, number: int) -> Action:
        action = self.scene.action(number)
        return Action(_OF_RUNTIME.get(action.name, action.name), action.args)

    def _is_as_led(self, number: int, action: Action) -> bool:
        """Whether the log answers a flush as its leadership says."""
        leads = self.scene.value(number, "leader") == self.broker
        return action.args[1] == ("appended" if leads else "refused")

    def _elect(self, number: int, action: Action) -> None:
        epoch = self.scene.value(number, "epoch")
        if action.args[0] == self.broker:
            self.lines.add(f"electThisBroker({epoch});")
        elif self.scene.value(number - 1, "leader") == self.broker:
            self.lines.add(f"electAnotherBroker({epoch});")
        else:
            self.lines.comment(f"Another broker is elected in epoch {epoch}.")

    def _delete(self, number: int) -> None:
        if self.scene.value(number - 1, "leader") != self.broker:
            self.lines.comment("The topic is deleted.")
            return
        answer = "OptionalInt resignation = " if number == len(self.scene) - 1 else ""
        self.lines.add(f"{answer}deleteTopic({self.scene.value(number - 1, 'epoch')});")

    def _is_deletion(self, number: int) -> bool:
        return self._action(number).name == "DeleteTopic"

    def _write(self, kind: str, result: str) -> None:
        if kind == "parts":
            raise Unsayable("a write in it is not atomic")
        method = "writeDirectly" if kind in ("direct", "large") else "write"
        entries = self._entries(kind)
        call = "offload()" if kind == "offload" else f"{method}({entries})"
        self._append(call, result)

    def _entries(self, kind: str) -> str:
        """The records of the next write, as arguments."""
        self.writes += 1
        number = self.writes
        records = {
            "nothing": (),
            "offload": (),
            "two": (f'"k1", {number}, {_TWO}', f'"k2", {number}, {_TWO}'),
            "delete": ('"k1", null, 0',),
            "large": (f'"k1", {number}, {_LARGE}',),
        }.get(kind, (f'"k1", {number}, {_SMALL}',))
        return ", ".join(f"new Entry({record})" for record in records)

    def _append(self, call: str, result: str, answer: str = "Integer") -> None:
        """A step that appends, with what comes of it; its answer, if the end asks for it."""
        if result == "appended" and self.writes in self._unlike():
            self.lines.add(f"CompletableFuture<{answer}> answer{self.writes} = {call};")
        elif result == "appended":
            self.lines.add(f"{call};")
        elif result == "thrown":
            self.lines.add(f"thrownAfterwards(() -> {call});")
        else:
            raise Unsayable("an append is refused in it")

    # ---- the end -----------------------------------------------------------------------------

    def _unlike(self) -> list[int]:
        """The writes that should have an answer at the end, and have none."""
        return [
            number
            for name, expected, actual in self.scene.differing()
            if name == "answers" and isinstance(expected, tuple) and isinstance(actual, tuple)
            for number, (wanted, seen) in enumerate(zip(expected, actual, strict=True), 1)
            if wanted != seen == "none"
        ]

    def _then(self) -> Iterator[str]:
        for number in self._unlike():
            yield f'assertTrue(answer{number}.isDone(), "write {number} is answered");'
        for name, expected, actual in self.scene.differing():
            if name in _ASSERTED and isinstance(expected, Fn) and isinstance(actual, Fn):
                wanted, seen = expected[self.broker], actual[self.broker]
                if wanted != seen and (name != "roles" or self._is_deletion(len(self.scene) - 1)):
                    yield from _ASSERTED[name](wanted, seen)

    def _own(self, number: int, variable: str) -> Value:
        value = self.scene.value(number, variable)
        assert isinstance(value, Fn)
        return value[self.broker]


def _log(expected: Value, _actual: Value) -> Iterator[str]:
    assert isinstance(expected, tuple)
    records = [record for record in expected if isinstance(record, Fn)]
    texts = ", ".join(f'"{record["key"]}={record["value"] or ""}"' for record in records)
    yield f'assertEquals(List.of({texts}), log, "what the log has");'


def _shard(expected: Value, actual: Value) -> Iterator[str]:
    assert isinstance(expected, Fn)
    assert isinstance(actual, Fn)
    memory, seen = expected["memory"], actual["memory"]
    assert isinstance(memory, Fn)
    assert isinstance(seen, Fn)
    for key in memory:
        if not isinstance(memory[key], Fn) and memory[key] != seen[key]:
            value = memory[key] or "null"
            yield f'assertEquals({value}, store.values.get("{key}"), "{key} in memory");'
    if bool(expected["batch"]) != bool(seen_batch := actual["batch"]):
        assertion = "assertFalse" if seen_batch else "assertTrue"
        yield f'{assertion}(hasOpenBatch(), "records wait for a flush");'


def _state(expected: Value, actual: Value) -> Iterator[str]:
    if "ACTIVE" in (expected, actual):
        assertion = "assertTrue" if expected == "ACTIVE" else "assertFalse"
        yield f'{assertion}(isActive(), "reads are answered");'


def _roles(expected: Value, _actual: Value) -> Iterator[str]:
    assert isinstance(expected, tuple)
    resignation = expected[-1]
    assert isinstance(resignation, Fn)
    if resignation["epoch"] == _NO_EPOCH:
        yield 'assertEquals(OptionalInt.empty(), resignation, "epoch of the resignation");'


def _listener(expected: Value, actual: Value) -> Iterator[str]:
    assert isinstance(expected, Fn)
    assert isinstance(actual, Fn)
    if expected["kind"] == "RETIRED" and actual["kind"] == "LIVE":
        yield 'assertFalse(hears(1), "the watermark of the next leader is heard");'


_Assert = Callable[[Value, Value], Iterator[str]]
_ASSERTED: Mapping[str, _Assert] = MappingProxyType(
    {"log": _log, "shard": _shard, "state": _state, "listener": _listener, "roles": _roles}
)
"""By variable, what is asserted of it."""
