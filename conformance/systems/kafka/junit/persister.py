"""A finding on the share coordinator (KIP-932) as a test of one ShareCoordinatorShard.

The group coordinator and the leaders of the partition are the test's: their requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call
from conformance.systems.shared.persister import STATE_IDS
from conformance.tla import Fn, Value

_UPDATES: Final = "UpdatesPerSnapshot"


@dataclass(slots=True)
class PersisterScene(JUnitScene):
    """The shard, as the leaders and the group coordinator ask it."""

    template = "persister.java.txt"
    oldest = (4, 1, 0)
    calls = MappingProxyType(
        {
            "initialize(": {"initializes"},
            "read(": {"reads"},
            "write(": {"writes"},
            "updates(": {"updates"},
        }
    )
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> PersisterScene:
        """The scene of the share partition."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a share coordinator."""
        if _UPDATES not in self.constants:
            raise Unsayable(f"it does not say what {_UPDATES} of its model is")
        return {"updates": self.constants[_UPDATES]}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        match action.name, action.args:
            case "Join", ():
                self.lines.comment("a member joins: the partition is to be initialised")
            case "Alter", (start,):
                self.lines.comment(f"an administrator sets the start offset to {start}")
            case "Acknowledge", (leader, offset, kind):
                words = f"the leader of epoch {leader} is told {kind} of record {offset}"
                self.lines.comment(f"{words}, and will write it")
            case "Initialize", (int(which),):
                request = fn(_item(self.scene.value(number, "requests"), which))
                self._ask(number, call("initialize", request["epoch"], request["start"]))
            case "Read", (leader,):
                self._ask(number, call("read", leader))
            case "Write", (int(which), _):
                self._ask(number, _write(fn(_item(self.scene.value(number - 1, "writes"), which))))
            case "HandleForged", (str(kind),):
                self._ask(number, _forged(kind, fn(self.scene.value(number - 1, "fences"))))
            case _:
                raise Unsayable(f"it has no words for the step {action}")

    def _ask(self, number: int, request: str) -> None:
        """A request; the answer to the last one is looked at."""
        is_last = number == len(self.scene) - 1
        self.lines.add(f"Errors answer = {request};" if is_last else f"{request};")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        differing = list(self.scene.differing())
        names = {name for name, _, _ in differing}
        for name, expected, actual in differing:
            if name == "share":
                yield from _share(fn(expected), fn(actual))
            elif name == "complete" and "share" not in names:  # not there before 4.2
                seen = "stored().deliveryCompleteCount()"
                yield f'assertEquals({expected}, {seen}, "settled records");'
            elif name == "updates":
                yield f'assertEquals({expected}, updates(), "updates since the last snapshot");'
            elif name == "answer" and expected == "refused":
                yield 'assertNotEquals(Errors.NONE, answer, "it is refused");'
            elif name == "answer":
                yield f"assertEquals(Errors.{expected}, answer);"


def _item(sequence: Value, number: int) -> Value:
    if not isinstance(sequence, tuple) or number > len(sequence):
        raise Unsayable(f"it has no request number {number}")
    return sequence[number - 1]


def _write(write: Fn) -> str:
    batches = f"List.of({_batch(write['offset'], write['state'], write['count'])})"
    names = ("leader", "epoch", "start", "complete")
    return call("write", *(write[name] for name in names), batches)


def _forged(kind: str, fences: Fn) -> str:
    """A request with epoch -1; its other fields are as the state would have them."""
    if kind == "Read":
        return call("read", -1)
    if kind == "Initialize":
        return call("initialize", -1, -1)
    leader, epoch = fences["leader"], fences["epoch"]
    epochs = (-1, epoch) if kind == "WriteLeaderEpoch" else (leader, -1)
    return call("write", *epochs, 0, 0, "List.of()")


def _batch(offset: Value, state: Value, count: Value) -> str:
    id_of_state = STATE_IDS[str(state)]
    return f"new PersisterStateBatch({offset}, {offset}, (byte) {id_of_state}, (short) {count})"


_OF_A_SHARE: Final = MappingProxyType(
    {
        "epoch": ("stateEpoch()", "state epoch"),
        "leader": ("leaderEpoch()", "leader epoch"),
        "start": ("startOffset()", "start offset"),
    }
)
"""By field, where it is seen, and what it is called."""


def _share(expected: Fn, actual: Fn) -> Iterator[str]:
    if expected["known"] is not True:
        yield 'assertNull(stored(), "nothing is stored");'
        return
    for part, (seen, words) in _OF_A_SHARE.items():
        if expected[part] != actual[part]:
            yield f'assertEquals({expected[part]}, stored().{seen}, "{words}");'
    if expected["rec"] != actual["rec"]:
        known = sorted(
            (offset, fn(record)["state"], fn(record)["count"])
            for offset, record in fn(expected["rec"]).items()
            if fn(record)["state"] != "NONE"
        )
        batches = ", ".join(_batch(*each) for each in known)
        yield f'assertEquals(List.of({batches}), stored().stateBatches(), "states of records");'
