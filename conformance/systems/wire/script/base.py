"""What scripts of all protocols share: given, when, then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from conformance.story.behaviour import Behaviour
from conformance.systems.shared.departing import DepartingPath, Unsayable


@dataclass(frozen=True, slots=True)
class PortScript(ABC):
    """The lines of a script: what is asked in each step, and what is asserted at the end."""

    template: ClassVar[str]
    names_answer: ClassVar[bool]
    """Whether `answer` is that of the last step, which then must ask for something."""

    scene: DepartingPath
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> Self:
        """Of a divergence. Unsayable if the behaviour is none."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to the model."""
        return {}

    def lines(self) -> Iterator[str]:
        """Given, when, then. Unsayable if nothing of what differs is seen at a port."""
        steps = [list(self._step(number)) for number in range(1, len(self.scene))]
        while steps and not steps[-1] and not self.names_answer:
            steps.pop()  # the last that asks for something is what is looked at
        asserted = list(self._then())
        if not (steps and steps[-1] and asserted):
            names = ", ".join(sorted(name for name, _, _ in self.scene.differing()))
            if not names:
                raise Unsayable(
                    "its last step is refused: it does not end where an implementation's state "
                    "differs"
                )
            raise Unsayable(f"nobody sees at a port what differs at its end: {names}")
        *given, when = steps
        yield from self._start()
        yield from (line for step in given for line in step)
        yield from ("", "# when")
        yield from (f"answer = {line}" if self.names_answer else line for line in when)
        yield from ("", "# then", *asserted)

    def _start(self) -> Iterable[str]:
        """What is done before the first step."""
        return ()

    @abstractmethod
    def _step(self, number: int) -> Iterable[str]:
        """What is asked in a step; nothing if a client or the broker goes on by itself."""

    @abstractmethod
    def _then(self) -> Iterable[str]:
        """What is asserted of what differs."""
