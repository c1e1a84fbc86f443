"""A finding on transactions as a test of one TransactionCoordinator and its state manager.

Only the coordinator that departs is there. What producers ask is in the test, as the path has it.
The state topic and the sender of the markers are the test's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, text
from conformance.tla import Action, Fn, Value

_OF_PRODUCERS = frozenset(
    {"BeginTransaction", "SendBatch", "EndTransaction"}
    | {"TakeProducerId", "TakeAdded", "TakeEnd", "TakeEndWithId", "TakeFence"}
)
_OF_PARTITIONS = frozenset(
    {"StartVerification", "Verify", "AppendBatch", "WriteMarker", "Replicate"}
)
"""Steps that the coordinator does not see, and that lead to none that it misses."""
_NO_TRANSACTION = 0
_LAST_EPOCH = 32766
"""That a client may have."""


def _names(names: Value) -> str:
    """Names of a set, as Java's arguments."""
    assert isinstance(names, frozenset)
    return ", ".join(text(name) for name in sorted(map(str, names)))


@dataclass(slots=True)
class TransactionScene(JUnitScene):
    """A transactional id, as the coordinator that departs sees it."""

    template = "transaction.java.txt"
    calls = MappingProxyType(
        {
            "addPartition(": {"adds"},
            "endTransaction(": {"ends"},
            "abortTimedOutTransactions(": {"timesOut"},
            "completeMarkers(": {"completes"},
            "loseLeader(": {"leaderless"},
            "useUpEpochs(": {"nearEnd", "metadata"},
            "leadAgain(": {"loads"},
            "acknowledgeLateAppend(": {"late"},
            "expireIds(": {"expires"},
            "pendingState(": {"pending", "metadata"},
            "metadata(": {"metadata"},
            "topics(": {"topics"},
            "lastRecord(": {"record"},
        }
    )
    constants: Mapping[str, str]
    coordinator: str

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> TransactionScene:
        """The scene of the coordinator of the last step."""
        scene = DepartingPath(behaviour)
        coordinator = str(scene.action(len(scene) - 1).args[0])
        if coordinator not in fn(scene.value(0, "coordinators")):
            raise Unsayable("its last step is none of a coordinator")
        return cls(scene, constants, coordinator)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to transactions."""
        return {"version": "2" if self.constants.get("Version2") == "TRUE" else "1"}

    # ---- steps -------------------------------------------------------------------------------

    def _epoch(self, number: Value) -> int:
        """Kafka's: where a producer id is used up, the count goes on with the next one's."""
        assert isinstance(number, int)
        if number >= int(self.constants.get("EpochsOfId", _LAST_EPOCH + 1)):
            raise Unsayable("its epochs are of a producer id that is given after a tombstone")
        if "LastEpoch" not in self.constants:
            return number
        left = int(self.constants["LastEpoch"]) - number
        return _LAST_EPOCH - left if left >= -1 else -left - 2

    def _start(self) -> Iterable[str]:
        """The id is known, and its epoch is 0 or, at the end of its epochs, near the last."""
        log = self.scene.value(0, "transactionLog")
        assert isinstance(log, tuple)
        if len(log) != 1 or fn(log[0])["epoch"] != 0:
            raise Unsayable("it does not begin with an id that has just been initialized")
        yield from ("initProducerId();", "acknowledgeAppend();")
        if "LastEpoch" in self.constants:
            yield call("useUpEpochs", self._epoch(0)) + ";"

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name == "StopLeader":
            self._lose_leader(number, action)
        elif action.name in _STEPS and action.args[0] == self.coordinator:
            _STEPS[action.name](self, number, action)
        elif action.name not in _OF_PRODUCERS | _OF_PARTITIONS:
            raise Unsayable(f"it has no words for the step {action}")

    def _init(self, _number: int, _action: Action) -> None:
        self.lines.add("initProducerId();")

    def _add_of_client(self, number: int, action: Action) -> None:
        _, client, partition = action.args
        epoch = self._epoch(fn(self.scene.of(number - 1, "clients", client))["epoch"])
        self.lines.add(call("addPartition", epoch, text(partition)) + ";")

    def _add_of_leader(self, number: int, action: Action) -> None:
        partition = action.args[1]
        verifying = self.scene.value(number - 1, "verifying")
        assert isinstance(verifying, frozenset)
        batches = [fn(fn(each)["batch"]) for each in verifying]
        epochs = {
            self._epoch(batch["epoch"]) for batch in batches if batch["partition"] == partition
        }
        if len(epochs) != 1:
            raise Unsayable(f"several producers ask for partition {partition}")
        self.lines.add(call("addPartition", *epochs, text(partition)) + ";")

    def _refuse_add(self, number: int, action: Action) -> None:
        self._add_of_client(number, Action(action.name, action.args[:3]))

    def _end(self, number: int, action: Action) -> None:
        _, transaction, commits = action.args
        requests = self.scene.value(number - 1, "requests")
        assert isinstance(requests, frozenset)
        ends = [each for each in map(fn, requests) if each["type"] == "EndTxn"]
        epoch = next(self._epoch(end["epoch"]) for end in ends if end["txn"] == transaction)
        result = "COMMIT" if commits else "ABORT"
        self.lines.add(call("endTransaction", epoch, f"TransactionResult.{result}") + ";")

    def _begin_fence(self, number: int, action: Action) -> None:
        """The fence has two sections; what a thread does in one go is said in its second."""
        following = self.scene.action(number + 1) if number + 1 < len(self.scene) else None
        if len(action.args) > 1 or following != Action("EndFence", (self.coordinator,)):
            raise Unsayable("something happens between the two sections of a fence")

    def _end_fence(self, _number: int, _action: Action) -> None:
        self.lines.add("abortTimedOutTransactions();")

    def _elect(self, number: int, action: Action) -> None:
        _, end = action.args
        log = self.scene.value(number, "transactionLog")
        assert isinstance(log, tuple)
        following = self.scene.action(number + 1) if number + 1 < len(self.scene) else None
        if end != len(log) or following != Action("Load", (self.coordinator,)):
            raise Unsayable("its coordinator does not load all of its log at once")
        self.lines.add(call("leadAgain", self.scene.value(number, "tenure")) + ";")

    def _load(self, _number: int, _action: Action) -> None:
        """Said by the election."""

    def _acknowledge(self, _number: int, _action: Action) -> None:
        self.lines.add("acknowledgeAppend();")

    def _call_back_late(self, number: int, action: Action) -> None:
        term = action.args[1]
        assert isinstance(term, int)
        if self.scene.value(number, "tenure") != term + 1:
            raise Unsayable("a call-back comes several terms late")
        self.lines.add("acknowledgeLateAppend();")

    def _expire(self, _number: int, _action: Action) -> None:
        self.lines.add("expireIds();")

    def _marker(self, _number: int, action: Action) -> None:
        self.lines.comment(f"The marker of partition {action.args[1]} is written.")

    def _lose_leader(self, _number: int, action: Action) -> None:
        self.lines.add(call("loseLeader", text(action.args[0])) + ";")

    def _complete(self, _number: int, _action: Action) -> None:
        self.lines.add("completeMarkers();")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        last = self.scene.action(len(self.scene) - 1)
        differing = list(self.scene.differing())
        if last.name == "RefuseAddPartition" and not differing:
            yield f'assertEquals(Errors.{last.args[-1]}, added, "answer to AddPartitionsToTxn");'
        for name, expected, actual in differing:
            if name == "transactionLog":
                yield from self._record(expected, actual)
            elif name == "coordinators":
                departing = (fn(fn(each)[self.coordinator]) for each in (expected, actual))
                yield from self._coordinator(*departing)

    def _coordinator(self, expected: Fn, actual: Fn) -> Iterator[str]:
        yield from self._metadata(fn(expected["now"]), fn(actual["now"]))
        if expected["pending"] != actual["pending"]:
            none = expected["pending"] == "None"
            state = "Optional.empty()" if none else call("Optional.of", text(expected["pending"]))
            yield f'assertEquals({state}, pendingState(), "pending state");'

    def _record(self, expected: Value, actual: Value) -> Iterator[str]:
        assert isinstance(expected, tuple)
        assert isinstance(actual, tuple)
        if len(expected) == len(actual) and fn(expected[-1])["epoch"] != fn(actual[-1])["epoch"]:
            epoch = self._epoch(fn(expected[-1])["epoch"])
            yield f'assertEquals({epoch}, lastRecord().producerEpoch(), "epoch in the log");'

    def _metadata(self, expected: Fn, actual: Fn) -> Iterator[str]:
        if expected["epoch"] != actual["epoch"]:
            epoch = self._epoch(expected["epoch"])
            yield f'assertEquals({epoch}, metadata().producerEpoch(), "epoch in memory");'
        if expected["parts"] != actual["parts"]:
            names = _names(expected["parts"])
            words = "partitions that wait for a marker"
            yield f"assertEquals(Set.of({names}), topics(metadata()), {text(words)});"
        if expected["txn"] == _NO_TRANSACTION != actual["txn"]:
            words = "when the transaction began, of an id that has none"
            yield f"assertEquals(-1, metadata().txnStartTimestamp(), {text(words)});"


_Say = Callable[[TransactionScene, int, Action], None]
_STEPS: Mapping[str, _Say] = MappingProxyType(
    {
        "HandleInitProducerId": TransactionScene._init,
        "AddPartitionOfClient": TransactionScene._add_of_client,
        "AddPartitionOfLeader": TransactionScene._add_of_leader,
        "RefuseAddPartition": TransactionScene._refuse_add,
        "HandleEndTxn": TransactionScene._end,
        "BeginFence": TransactionScene._begin_fence,
        "EndFence": TransactionScene._end_fence,
        "AcknowledgeAppend": TransactionScene._acknowledge,
        "Elect": TransactionScene._elect,
        "Load": TransactionScene._load,
        "AcknowledgeMarker": TransactionScene._marker,
        "CompleteTransaction": TransactionScene._complete,
        "ExpireId": TransactionScene._expire,
        "CallBackLate": TransactionScene._call_back_late,
    }
)
"""By action, what the test does."""
