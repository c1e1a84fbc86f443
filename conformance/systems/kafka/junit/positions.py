"""A finding on the positions of a Java consumer as a test of a ClassicKafkaConsumer.

The application assigns, and the leaders are the test: they answer as the path has it. No call
waits, since each poll has no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, sorted_numbers
from conformance.tla import Action, Fn, Value

_EPOCH = 1
"""The leader epoch that the consumer's first metadata has."""


@dataclass(slots=True)
class PositionsScene(JUnitScene):
    """A consumer whose leaders stay. Broker N - 1 leads the specification's partition N."""

    template = "positions.java.txt"
    calls = MappingProxyType(
        {
            "fetching(": {"fetching"},
            "answerListOffsets(": {"lists"},
            "answerFetch(": {"fetches"},
        }
    )
    max_poll: int
    max_fetch: int

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> PositionsScene:
        """The scene of a consumer that assigns itself."""
        if constants.get("GroupAssigns") == "TRUE":
            raise Unsayable("it has no words for a group that assigns")
        limits = (constants.get(name, "") for name in ("MaxPoll", "MaxFetch"))
        try:
            return cls(DepartingPath(behaviour), *map(int, limits))
        except ValueError:
            raise Unsayable("it does not say how much a poll and a fetch take") from None

    @property
    def placeholders(self) -> Mapping[str, str]:
        """How many partitions there are, and what a poll takes."""
        partitions = _sequence(self.scene.value(0, "log"))
        return {"partitions": str(len(partitions)), "maxPoll": str(self.max_poll)}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        self.lines.add(self._line(number, self.scene.action(number)))

    def _line(self, number: int, action: Action) -> str:
        match action.name, action.args:
            case "Poll", _:
                return "poll();"
            case "Assign", (frozenset() as assigned,):
                return f"consumer.assign({_partitions(*sorted_numbers(assigned))});"
            case "SeekToEdge", (int(partition), strategy):
                edge = "Beginning" if strategy == "earliest" else "End"
                return f"consumer.seekTo{edge}({_partitions(partition)});"
            case "Pause" | "Resume", (int(partition),):
                return f"consumer.{action.name.lower()}({_partitions(partition)});"
            case "Answer", (int(place),):
                return self._answer(
                    number, fn(_sequence(self.scene.value(number - 1, "sent"))[place - 1])
                )
        raise Unsayable(f"it has no words for the step {action}")

    def _answer(self, number: int, asked: Fn) -> str:
        partition, offset = _number(asked["partition"]), _number(asked["offset"])
        epoch = _sequence(self.scene.value(number, "leaderEpoch"))[partition - 1]
        log = _sequence(_sequence(self.scene.value(number, "log"))[partition - 1])
        if {epoch, *log} != {_EPOCH}:
            raise Unsayable("it has no words for a leader that is elected")
        if asked["kind"] == "list":
            edge = 0 if asked["strategy"] == "earliest" else len(log)
            return call("answerListOffsets", partition - 1, edge) + ";"
        if asked["kind"] == "fetch" and offset <= len(log):
            count = min(self.max_fetch, len(log) - offset)
            return call("answerFetch", partition - 1, offset, count) + ";"
        raise Unsayable(f"it has no words for the answer to {asked}")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            fetches = [_fetches(each) for each in (expected, actual)] if name == "sent" else []
            if fetches and fetches[0] != fetches[1]:
                words = "by partition, the offset that is fetched"
                yield f'assertEquals(Map.of({fetches[0]}), fetching(), "{words}");'


def _fetches(sent: Value) -> str:
    """The partitions and offsets of the fetches among the requests."""
    asked = [fn(each) for each in _sequence(sent)]
    fetches = [each for each in asked if each["kind"] == "fetch"]
    return ", ".join(f"{_number(each['partition']) - 1}, {each['offset']}L" for each in fetches)


def _partitions(*numbers: int) -> str:
    """A list of Java."""
    return call("partitions", *(number - 1 for number in numbers))


def _sequence(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise Unsayable("it is of another model: a sequence is missing")
    return value


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
