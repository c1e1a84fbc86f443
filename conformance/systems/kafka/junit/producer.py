"""A finding on a transactional producer as a test of one TransactionManager.

The test is the application, the sender's loop and the brokers: it answers as the path has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable
from conformance.systems.shared.group.words import text

_STEPS: Mapping[str, str] = MappingProxyType(
    {
        "InitTransactions": "initTransactions();",
        "BeginTransaction": "manager.beginTransaction();",
        "Send": "send();",
        "CommitTransaction": "result = manager.beginCommit();",
        "AbortTransaction": "result = manager.beginAbort();",
        "NextRequest": "sendRequest();",
        "Answer": "answer(Errors.{});",
        "SendBatch": "sendBatch();",
        "CompleteBatch": "completeBatch();",
        "FailBatch": "failBatch(Errors.{});",
    }
)
"""By action, what the application or the sender does."""
_OF_OTHERS = frozenset({"Fence", "ExpireId"})
"""The producer learns of them by the answers that follow."""


@dataclass(slots=True)
class ProducerScene(JUnitScene):
    """A producer with transactions of version 1."""

    template = "producer.java.txt"
    calls = MappingProxyType(
        {
            "sendBatch(": {"batches"},
            "completeBatch(": {"completes"},
            "failBatch(": {"fails"},
        }
    )

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> ProducerScene:
        """The scene of the only producer."""
        if constants.get("Version2") != "FALSE":
            raise Unsayable("its transactions are of version 2")
        return cls(DepartingPath(behaviour))

    @property
    def placeholders(self) -> Mapping[str, str]:
        """None: a producer is as the template has it."""
        return {}

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name in _STEPS:
            self.lines.add(_STEPS[action.name].format(*action.args))
        elif action.name not in _OF_OTHERS:
            raise Unsayable(f"it has no words for the step {action}")

    def _then(self) -> Iterator[str]:
        differing = {name: expected for name, expected, _ in self.scene.differing()}
        if differing.get("state") == "FATAL_ERROR":
            yield f"assertTrue(manager.hasFatalError(), {text('the producer is to be closed')});"
        elif "lastError" in differing:
            error = f"Errors.forException(manager.lastError()), {text('what a commit throws')}"
            yield f"assertEquals(Errors.{differing['lastError']}, {error});"
