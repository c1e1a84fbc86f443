"""A finding on idempotent produce, as batches of one producer and what is answered and read."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.systems.shared.departing import Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.wire.script.base import PortScript
from conformance.tla import Fn, Value

_UNSEEN = frozenset({"Send", "Acknowledge", "Bump"})
"""What a producer does by itself."""


class ProduceScript(PortScript):
    """Of an idempotent producer."""

    template = "produce.py.txt"
    names_answer = True

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> Iterator[str]:
        action = self.scene.action(number)
        if action.name in _UNSEEN:
            return
        if action.name != "Produce":
            raise Unsayable(f"at a port it cannot be brought about at will: {action}")
        batch = self._sent(number)
        yield words.call("producer.produce", batch["epoch"], batch["seq"], batch["size"])

    def _sent(self, number: int) -> Fn:
        """The batch of a step."""
        epoch, value = self.scene.action(number).args
        sent = self.scene.value(number - 1, "sent")
        assert isinstance(sent, frozenset)
        for batch in map(fn, sent):
            if (batch["epoch"], batch["value"]) == (epoch, value):
                return batch
        raise Unsayable(f"nobody has sent the batch of its step {number}")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "answers":
                yield from self._answer(expected, actual)
            elif name == "log":
                (wanted,) = fn(expected).values()
                assert isinstance(wanted, tuple)
                batches = [(each["epoch"], each["seq"], each["size"]) for each in map(fn, wanted)]
                yield f"assert producer.log() == {batches}, producer.log()"
            elif name == "hw":
                (end,) = fn(expected).values()
                yield f"assert producer.end() == {end}, producer.end()"

    def _answer(self, expected: Value, actual: Value) -> Iterator[str]:
        """The answer to the last batch."""
        batch = self._sent(len(self.scene) - 1)
        of_batch = [self._answer_to(batch, answers) for answers in (expected, actual)]
        wanted, seen = of_batch
        if wanted is None or wanted == seen:
            return
        if seen is None or wanted["error"] != seen["error"]:
            yield f'assert answer["error"] == {words.text(wanted["error"])}, answer'
        elif wanted["offset"] != seen["offset"]:
            yield f'assert answer["offset"] == {wanted["offset"]}, answer'

    @staticmethod
    def _answer_to(batch: Fn, answers: Value) -> Fn | None:
        assert isinstance(answers, frozenset)
        own = (batch["epoch"], batch["seq"])
        return next((a for a in map(fn, answers) if (a["epoch"], a["seq"]) == own), None)
