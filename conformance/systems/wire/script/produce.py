"""A finding on idempotent produce, as batches of one producer and what is answered and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.story.behaviour import Behaviour
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group import words
from conformance.tla import Fn, Value

_UNSEEN = frozenset({"Send", "Acknowledge", "Bump"})
"""What a producer does by itself."""


@dataclass(frozen=True, slots=True)
class ProduceScript:
    """The lines of a script."""

    template = "produce.py.txt"
    scene: DepartingPath

    @classmethod
    def of(cls, behaviour: Behaviour, _constants: Mapping[str, str]) -> ProduceScript:
        """Of a divergence. Unsayable if the behaviour is none."""
        return cls(DepartingPath(behaviour))

    @property
    def placeholders(self) -> Mapping[str, str]:
        """None: a producer is as the template has it."""
        return {}

    def lines(self) -> Iterator[str]:
        """Given, when, then. Unsayable if nothing of what differs is seen at a port."""
        last = len(self.scene) - 1
        asked = [line for number in range(1, last + 1) for line in self._step(number)]
        asserted = list(self._then())
        if not asserted or self.scene.action(last).name in _UNSEEN:
            names = ", ".join(sorted(name for name, _, _ in self.scene.differing()))
            raise Unsayable(f"nobody sees at a port what differs at its end: {names}")
        yield from (*asked[:-1], "", "# when", f"answer = {asked[-1]}", "", "# then", *asserted)

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
