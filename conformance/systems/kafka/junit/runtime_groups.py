"""A finding on groups in the coordinators' runtime as a test of one GroupCoordinatorShard.

No runtime is there: what departs is what the shard writes, or that it cannot be loaded from what
it wrote. The test replays and stores each operation's records at once, in the place of the
runtime; an append that throws takes the shard back to a snapshot, as in CoordinatorRuntime.
Targets are made by Kafka's own assignor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit import groups
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group.words import call, text
from conformance.tla import Action, Fn, Value

_OPERATIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"join": ("0", "Set.of()"), "leave": ("-1",)}
)
"""By kind of write, the epoch in the member's heartbeat, and what it owns."""
_KEYS = MappingProxyType(
    {
        "Group": "ConsumerGroupMetadata",
        "Attribute": "ConsumerGroupPartitionMetadata",
        "Member": "ConsumerGroupMemberMetadata",
        "Targets": "ConsumerGroupTargetAssignmentMetadata",
        "Target": "ConsumerGroupTargetAssignmentMember",
        "Current": "ConsumerGroupCurrentMemberAssignment",
    }
)
"""By a record's part of the group, what Kafka calls the record."""
_OF_THE_GROUP = MappingProxyType(
    {
        "metadata": ("groupEpoch", "group epoch"),
        "targets": ("assignmentEpoch", "epoch of the target assignment"),
    }
)
_APPENDS = frozenset({"Write", "FlushBatch"})
_TOMBSTONE = 0
_THE_PARTITION = 2
"""The value of a target that has it."""


@dataclass(slots=True)
class RuntimeGroupScene(JUnitScene):
    """A group's shard, as the broker that departs has it."""

    template = groups.TEMPLATE
    calls = MappingProxyType(
        {
            **groups.CALLS,
            "heartbeat(": {"consumer", "uniform", "owning"},
            "thrownAfterwards(": {"throws"},
            "load(": {"failsOver", "loads"},
            "recordsFrom(": {"recorded"},
            "firstEpoch": {"firstEpoch", "describes"},
            "describe(": {"describes"},
            'describe("': {"describesMember"},
            "partitions(": {"partitions", "numbers"},
        }
    )
    broker: str

    @classmethod
    def of(cls, behaviour: Behaviour, _constants: Mapping[str, str]) -> RuntimeGroupScene:
        """The scene of the broker that takes the last step."""
        scene = DepartingPath(behaviour)
        (broker, *_) = scene.action(len(scene) - 1).args or ("",)
        return cls(scene, str(broker))

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a group of members of one partition."""
        return {
            "topics": text("topic"),
            "partitions": "1",
            "instances": groups.map_of({}),
            "size": "Integer.MAX_VALUE",
            "interval": "0",
            **dict.fromkeys(("assignors", "delay", "rebalance", "version"), ""),
        }

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if self.broker not in action.args[:1]:
            raise Unsayable(f"it has no words for the step {action}")
        if action.name == "Write":
            self._write(number, action)
        elif action.name == "CompleteLoad":
            self._load(number)
        elif self._is_last(number):
            raise Unsayable(f"it ends with the step {action}, which the shard does not see")
        elif action.name == "FlushBatch":
            self._flush(number, action)
        elif action.name not in ("Elect", "RunRole"):
            raise Unsayable(f"it has no words for the step {action}")

    def _write(self, number: int, action: Action) -> None:
        _, operation, result = action.args
        kind, member = map(str, operation) if isinstance(operation, tuple) else ("", "")
        if kind not in _OPERATIONS or result != "appended":
            raise Unsayable(f"it has no words for the step {action}")
        asked = call("heartbeat", text(member), *_OPERATIONS[kind])
        if self._is_last(number) and self._unlike_records():
            self.lines.add("int first = log.size();")
        self.lines.add(f"thrownAfterwards(() -> {asked});" if self._throws(number) else f"{asked};")

    def _throws(self, number: int) -> bool:
        """Whether the append of what this step writes throws next."""
        following = map(self.scene.action, range(number + 1, len(self.scene)))
        append = next((each for each in following if each.name in _APPENDS), None)
        return append is not None and "thrown" in append.args

    def _flush(self, number: int, action: Action) -> None:
        """Nothing to say: the test stores what is written at once."""
        if action.args[1] == "thrown" and self._appends(number)[-2:] == ["Write", "Write"]:
            raise Unsayable("an append of several writes throws in it")
        if action.args[1] not in ("appended", "thrown"):
            raise Unsayable("an append is refused in it")

    def _load(self, number: int) -> None:
        appends = self._appends(number)
        if "Write" in appends[-1:]:
            raise Unsayable("the log lacks a write when it is loaded")
        if self._is_last(number):
            self.lines.add("String failure = load();")
        elif appends:
            self.lines.add("failOver();")
        else:
            self.lines.comment("The broker leads the partition, and has loaded an empty log.")

    def _is_last(self, number: int) -> bool:
        return number == len(self.scene) - 1

    def _appends(self, number: int) -> list[str]:
        """The writes and flushes before the step."""
        names = (self.scene.action(step).name for step in range(1, number))
        return [name for name in names if name in _APPENDS]

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        if self.scene.action(len(self.scene) - 1).name == "CompleteLoad":
            yield from _failure(self._differing("state"))
        if shards := self._differing("shard"):
            memory, other = (fn(fn(shard)["memory"]) for shard in shards)
            if records := self._unlike_records():
                yield from _records(records)
            yield from self._group(memory, other)
            yield from self._members(memory["members"], other["members"])
            yield from _targets(memory["target"], other["target"])

    def _differing(self, variable: str) -> tuple[Value, ...]:
        """Expected and actual value of the broker; none if they are the same."""
        differing = {name: pair for name, *pair in self.scene.differing()}
        return tuple(fn(value)[self.broker] for value in differing.get(variable, ()))

    def _unlike_records(self) -> list[str]:
        """What the last write should write, if that is not seen in the targets as well."""
        expected, actual = map(fn, self._differing("shard") or (Fn({}), Fn({})))
        if not expected or fn(expected["memory"])["target"] != fn(actual["memory"])["target"]:
            return []
        records = self._last_records(expected)
        return records if records != self._last_records(actual) else []

    def _group(self, memory: Fn, other: Fn) -> Iterator[str]:
        for name, (method, words) in _OF_THE_GROUP.items():
            if memory[name] != other[name]:
                epoch = self._epoch(memory[name])
                yield f"assertEquals({epoch}, describe().{method}(), {text(words)});"

    def _members(self, members: Value, others: Value) -> Iterator[str]:
        for member, wanted, seen in _pairs(members, others):
            if (epoch := fn(wanted)["epoch"]) != fn(seen)["epoch"]:
                described, words = call("describe", text(member)), f"member epoch of {member}"
                seen_epoch = f"{described}.memberEpoch()"
                yield f"assertEquals({self._epoch(epoch)}, {seen_epoch}, {text(words)});"

    def _last_records(self, shard: Fn) -> list[str]:
        """What the records of the last write are of, in their order."""
        last = len(_sequence(self.scene.value(len(self.scene) - 1, "writes")))
        records = map(fn, _sequence(shard["batch"]))
        return [_record(record) for record in records if record["write"] == last]

    def _epoch(self, epoch: Value) -> str:
        """An epoch, counted from the first one of the group."""
        return groups.epoch_from(next(filter(None, self._group_epochs), None), epoch)

    @property
    def _group_epochs(self) -> Iterator[int]:
        """The group's epochs before the last step."""
        for number in range(len(self.scene) - 1):
            memory = fn(fn(self.scene.of(number, "shard", self.broker))["memory"])
            epoch = memory["metadata"]
            assert isinstance(epoch, int)
            yield epoch


def _failure(states: tuple[Value, ...]) -> Iterator[str]:
    if states == ("ACTIVE", "FAILED"):
        yield 'assertNull(failure, "why the log cannot be loaded");'


def _records(wanted: list[str]) -> Iterator[str]:
    """An assertion of what the last request writes, one record a line."""
    yield "assertEquals("
    yield "    List.of("
    for number, record in enumerate(wanted, 1):
        yield f"        {text(record)}{'),' if number == len(wanted) else ','}"
    yield '    recordsFrom(first), "what is written");'


def _targets(targets: Value, others: Value) -> Iterator[str]:
    for member, wanted, _ in _pairs(targets, others):
        partitions = "Set.of(0)" if wanted == _THE_PARTITION else "Set.of()"
        described = f"partitions(describe({text(member)}).targetAssignment())"
        yield f'assertEquals({partitions}, {described}, "target of {member}");'


def _record(record: Fn) -> str:
    """What a record is of, as the test's `recordsFrom` calls it. Unsayable of other records."""
    kind, part, _ = _sequence(record["key"])
    if kind != "Consumer":
        raise Unsayable(f"it has no words for a record of {kind}")
    key = _KEYS[str(part)]
    return f"tombstone of {key}" if fn(record["value"])["value"] == _TOMBSTONE else key


def _pairs(expected: Value, actual: Value) -> Iterator[tuple[str, Value, Value]]:
    """By member that both have: the values, if they differ."""
    if isinstance(expected, Fn) and isinstance(actual, Fn):
        for member in expected:
            if member in actual and expected[member] != actual[member]:
                yield str(member), expected[member], actual[member]


def _sequence(value: Value) -> tuple[Value, ...]:
    assert isinstance(value, tuple)
    return value
