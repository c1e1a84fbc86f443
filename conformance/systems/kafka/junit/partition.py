"""A finding on a partition that transactions write, as a test of one Partition and its log.

What coordinators and producers do is in the test by what they send: batches, and markers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call
from conformance.tla import Action, Fn, Value

_OF_OTHERS = frozenset(
    {"BeginTransaction", "SendBatch", "EndTransaction", "TakeProducerId", "TakeAdded", "TakeEnd"}
    | {"HandleInitProducerId", "BeginFence", "EndFence", "HandleEndTxn", "Verify"}
    | {"AddPartitionOfClient", "AddPartitionOfLeader", "AcknowledgeAppend"}
    | {"AcknowledgeMarker", "CompleteTransaction"}
)
"""Steps of producers and of coordinators."""
_SEEN = frozenset({"log", "highWatermark", "entry", "verifying"})
"""What a partition is seen by."""
_NO_GUARD = "VerificationGuard.SENTINEL"


@dataclass(slots=True)
class PartitionScene(JUnitScene):
    """A partition, as its leader's log sees it."""

    template = "replica.java.txt"
    calls = MappingProxyType(
        {
            "verify(": {"transactions", "verifies"},
            "appendBatch(": {"transactions", "batches"},
            "writeMarker(": {"transactions", "markers"},
            "logEndOffset(": {"logEnd"},
        }
    )
    partition: str

    @classmethod
    def of(cls, behaviour: Behaviour) -> PartitionScene:
        """The scene of the partition of the last step."""
        scene = DepartingPath(behaviour)
        return cls(scene, str(scene.action(len(scene) - 1).args[0]))

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values: one broker has the partition."""
        return {"broker": "1", "replicas": "1"}

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        return ("becomeLeader(0, 1);",)

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name in _REQUESTS and action.args[0] == self.partition:
            self._say(number, action)
        elif action.name not in {*_OF_OTHERS, *_REQUESTS}:
            raise Unsayable(f"it has no words for the step {action}")

    def _say(self, number: int, action: Action) -> None:
        request = _REQUESTS[action.name](self, number, action)
        if number == len(self.scene) - 1:
            self.lines.add(f"Errors answer = answer(() -> {request});")
        elif action.name in _VERIFIED:
            self.lines.add(f"VerificationGuard {_guard(action)} = {request};")
        else:
            self.lines.add(f"{request};")

    def _batch(self, number: int, action: Action) -> Fn:
        _, transaction, sequence = action.args[:3]
        wanted = {"type": "Produce", "txn": transaction, "sequence": sequence}
        return self._request(number, wanted)

    def _request(self, number: int, wanted: Mapping[str, Value]) -> Fn:
        requests = self.scene.value(number - 1, "requests")
        assert isinstance(requests, frozenset)
        for request in map(fn, requests):
            if {**wanted, "partition": self.partition}.items() <= dict(request).items():
                return request
        raise Unsayable(f"its step {number} has no request {dict(wanted)}")

    def _verify(self, number: int, action: Action) -> str:
        batch = self._batch(number, action)
        return call("verify", batch["epoch"], batch["sequence"])

    def _append(self, number: int, action: Action) -> str:
        batch = self._batch(number, action)
        verifying = self.scene.value(number - 1, "verifying")
        assert isinstance(verifying, frozenset)
        waits = any(fn(each)["batch"] == batch for each in verifying)
        guard = _guard(action) if waits else _NO_GUARD
        return call("appendBatch", batch["epoch"], batch["sequence"], guard)

    def _marker(self, number: int, action: Action) -> str:
        _, transaction, coordinator_epoch = action.args
        wanted: Mapping[str, Value] = {
            "type": "Marker",
            "txn": transaction,
            "coordinatorEpoch": coordinator_epoch,
        }
        marker = self._request(number, wanted)
        kind = "COMMIT" if marker["kind"] == "Committed" else "ABORT"
        return call("writeMarker", marker["epoch"], coordinator_epoch, f"ControlRecordType.{kind}")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        differing = {name: expected for name, expected, _ in self.scene.differing()}
        last = self.scene.action(len(self.scene) - 1)
        if differing.keys() <= _SEEN and last.name.startswith("Refuse"):
            yield f'assertEquals(Errors.{last.args[-1]}, answer, "answer to the batch");'
        elif "log" in differing:
            batches = fn(differing["log"])[self.partition]
            assert isinstance(batches, tuple)
            yield f'assertEquals({len(batches)}, logEndOffset(), "log end offset");'


def _guard(action: Action) -> str:
    """The variable that holds the guard of a batch."""
    _, transaction, sequence = action.args[:3]
    return f"guardOf{transaction}At{sequence}"


_VERIFIED = frozenset({"StartVerification", "StartVerificationOfOvertaking"})
_Say = Callable[[PartitionScene, int, Action], str]
_REQUESTS: Mapping[str, _Say] = MappingProxyType(
    {
        **dict.fromkeys((*_VERIFIED, "RefuseVerification"), PartitionScene._verify),
        **dict.fromkeys(("AppendBatch", "RefuseBatch"), PartitionScene._append),
        **dict.fromkeys(("WriteMarker", "DeliverOutdatedMarker"), PartitionScene._marker),
    }
)
"""By action, what the partition's leader is asked."""
