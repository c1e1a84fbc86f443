"""A finding on share groups (KIP-932) as a test of one SharePartition.

Its members, its timers, the answers of the share coordinator and the start of its log are the
test's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, text
from conformance.tla import Fn, Value

_NOT_CACHED = "NONE"
_PLACEHOLDERS = MappingProxyType(
    {"records": "Records", "inFlight": "MaxInFlight", "limit": "DeliveryLimit"}
)
"""By placeholder, the constant of the model."""


@dataclass(slots=True)
class ShareScene(JUnitScene):
    """A share partition, as its members and the share coordinator see it."""

    template = "share.java.txt"
    oldest = (4, 1, 0)
    calls = MappingProxyType(
        {
            "acknowledge(": {"acknowledges"},
            "expireLock(": {"expires", "cached"},
            "completeWrite(": {"writes"},
            "moveLogStart(": {"moves"},
            "cached(": {"cached"},
        }
    )
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> ShareScene:
        """The scene of the partition."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a share partition."""
        missing = [name for name in _PLACEHOLDERS.values() if name not in self.constants]
        if missing:
            raise Unsayable(f"it does not say what {', '.join(missing)} of its model is")
        return {place: self.constants[name] for place, name in _PLACEHOLDERS.items()}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name not in _STEPS:
            raise Unsayable(f"it has no words for the step {action}")
        self.lines.add(_STEPS[action.name](*action.args) + ";")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "rec":
                for offset, wanted in fn(expected).items():
                    yield from _record(offset, fn(wanted), fn(fn(actual)[offset]))
            elif name in _OFFSETS:
                yield f"assertEquals({expected}, partition.{name}Offset(), {text(_OFFSETS[name])});"
            elif name == "flag":
                assertion = "assertTrue" if expected is True else "assertFalse"
                words = "a record may have to be given again"
                yield f"{assertion}(partition.findNextFetchOffset(), {text(words)});"


def _write(number: Value, ok: Value) -> str:
    error = "NONE" if ok is True else "COORDINATOR_NOT_AVAILABLE"
    return call("completeWrite", number, f"Errors.{error}")


_STEPS: Mapping[str, Callable[..., str]] = MappingProxyType(
    {
        "Acquire": lambda member, size: call("acquire", text(member), size),
        "Acknowledge": lambda member, first, last, kind: call(
            "acknowledge", text(member), first, last, f"AcknowledgeType.{kind}"
        ),
        "EndSession": lambda member: call("partition.releaseAcquiredRecords", text(member)),
        "CompleteWrite": _write,
        "ExpireLock": lambda offset: call("expireLock", offset),
        "MoveLogStart": lambda to: call("moveLogStart", to),
    }
)
"""By action, the call that takes its arguments."""
_OFFSETS = MappingProxyType({"start": "start offset", "end": "end offset"})


def _record(offset: Value, expected: Fn, actual: Fn) -> Iterator[str]:
    """What is asserted of a record; of its lock and its write there is nothing to be seen."""
    if _NOT_CACHED in (expected["state"], actual["state"]):
        if expected["state"] != actual["state"]:
            is_cached = expected["state"] != _NOT_CACHED
            assertion = "assertTrue" if is_cached else "assertFalse"
            seen = f"partition.cachedState().containsKey({offset}L)"
            yield f'{assertion}({seen}, "record {offset} is in flight");'
        return
    for part, (seen, words) in _OF_A_RECORD.items():
        if expected[part] != actual[part] and expected[part] != _NO_MEMBER:
            wanted = expected[part] if part == "count" else text(expected[part])
            yield f'assertEquals({wanted}, cached({offset}).{seen}, "{words} {offset}");'


_NO_MEMBER = "none"
_OF_A_RECORD = MappingProxyType(
    {
        "state": ("batchState().toString()", "state of record"),
        "count": ("batchDeliveryCount()", "deliveries of record"),
        "member": ("batchMemberId()", "member that has record"),
    }
)
"""By field, where it is seen, and what it is called."""
