"""A finding on groups that change their protocol as a test of one GroupCoordinatorShard.

The members' requests are in the test, as the path has them, and the target assignments that the
path chooses. A request and its answer are one step; who waits for others is answered later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit import groups
from conformance.systems.kafka.junit.groups import set_of
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.shared.group.words import call, text
from conformance.tla import Fn, Value

_LEAVES = -1
_MALFORMED = "new byte[] {0}"
"""No version of a subscription is so short."""
_CHOOSING = frozenset({"ConsumerJoin", "ConsumerHeartbeat", "ClassicJoin"})
"""Steps that may lead to a new target assignment."""
_ANSWERED = frozenset({"ClassicJoin", "ClassicSync", "ClassicHeartbeat"})


@dataclass(slots=True)
class MixedGroupScene(JUnitScene):
    """A group with members of both protocols, as its coordinator sees it."""

    template = groups.TEMPLATE
    calls = MappingProxyType(
        {
            "": {"consumer", "mixed"},
            "expire(": {"expires"},
            "firstEpoch": {"firstEpoch", "describes"},
            "heartbeat(": {"owning"},
            "leave(": {"leaves"},
            "sync(": {"synchronizes", "ofClassic"},
            "subscription(": {"subscription", "ofClassic"},
            "id(": {"ids"},
            "describe(": {"describes"},
            "describe(id(": {"describesMember"},
            "partitions(": {"partitions", "numbers"},
            "member(": {"member"},
            "numbers(": {"ofTopics", "numbers"},
            "groupState(": {"phase"},
            "assigned(": {"assigned", "ids"},
        }
    )
    constants: Mapping[str, str]
    joined: set[Value] = field(default_factory=set)
    """Who has been given a member id."""

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> MixedGroupScene:
        """The scene of the coordinator."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a group of both protocols."""
        instances = words.instances(self.constants)
        return {
            "partitions": str(words.last_partition(self.constants, "TopicOf") + 1),
            "topics": ", ".join(map(text, self._topics)),
            "instances": groups.map_of({name: text(id) for name, id in instances.items()}),
            "policy": self.constants.get("Policy", "").strip('"'),
            "size": "Integer.MAX_VALUE",
            "assignors": call("assignor", text("test")),
            "interval": "0",
        }

    @property
    def _topics(self) -> list[str]:
        """Their names. Unsayable of several topics that do not have one partition each."""
        names = words.names_in(self.constants.get("TopicOf", ""))
        if len(names) not in (1, words.last_partition(self.constants, "TopicOf") + 1):
            raise Unsayable("it has several topics that do not have one partition each")
        return sorted(names)

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterator[str]:
        """The first members join, and are assigned what the path begins with."""
        assigned = {
            str(name): set_of(fn(member)["assigned"])
            for name, member in fn(self.scene.value(0, "member")).items()
            if fn(member)["state"] != "None"
        }
        if self.scene.value(0, "type") == "consumer":
            yield f"target = {groups.map_of(assigned)};"
            for name in assigned:
                yield call("heartbeat", text(name), 0, "Set.of()", *self._reads(name)) + ";"
            return
        for name in assigned:
            yield self._join(name, "Set.of()") + ";"
        yield 'expire("join-group");'
        for name in assigned:
            yield call("sync", text(name), 1, groups.map_of(assigned)) + ";"

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        name = action.args[0]
        if action.name == "Crash":
            self.lines.comment(f"The process of {name} ends, and says nothing.")
            return
        if action.name not in _STEPS:
            raise Unsayable(f"it has no words for the step {action}")
        target = self.scene.value(number, "target")
        is_new = target != self.scene.value(number - 1, "target")
        if is_new and action.name in _CHOOSING and self._is_of_848(number):
            chosen = {str(member): set_of(given) for member, given in fn(target).items()}
            self.lines.add(f"target = {groups.map_of(chosen)};")
        client = fn(self.scene.of(number - 1, "client", name))
        if client["does"] == "out" and name in self.joined:
            self.lines.add(call("ids.remove", text(name)) + ";")
        asked = _STEPS[action.name](self, name, client)
        is_last = number == len(self.scene) - 1
        answer = "Errors answer = " if is_last and self._error() is not None else ""
        self.lines.add(f"{answer}{asked};")

    def _is_of_848(self, number: int) -> bool:
        return self.scene.value(number, "type") == "consumer"

    def _consumer_join(self, name: Value, _client: Fn) -> str:
        return call("heartbeat", text(name), 0, "Set.of()", *self._reads(name))

    def _consumer_heartbeat(self, name: Value, client: Fn) -> str:
        owned = set_of(client["owned"])
        epoch = self._epoch(client["epoch"])
        return call("heartbeat", text(name), epoch, owned, *self._reads(name))

    def _consumer_leave(self, name: Value, _client: Fn) -> str:
        return call("heartbeat", text(name), _LEAVES)

    def _expire_session(self, name: Value, _client: Fn) -> str:
        return f'expire("session-timeout-group-" + id({text(name)}))'

    def _classic_join(self, name: Value, client: Fn) -> str:
        is_cooperative = self.constants.get("Cooperative") == "TRUE"
        return self._join(name, set_of(client["owned"]) if is_cooperative else "Set.of()")

    def _join(self, name: Value, owned: str) -> str:
        self.joined.add(name)
        is_malformed = str(name) in words.names_in(self.constants.get("Malformed", ""))
        subscription = call("subscription", owned, *self._reads(name))
        return call("join", text(name), _MALFORMED if is_malformed else subscription)

    def _classic_sync(self, name: Value, client: Fn) -> str:
        return call("sync", text(name), self._epoch(client["epoch"]), "Map.of()")

    def _classic_heartbeat(self, name: Value, client: Fn) -> str:
        epoch = self._epoch(client["epoch"])
        return call("heartbeat", text(name), f"id({text(name)})", epoch)

    def _classic_leave(self, name: Value, _client: Fn) -> str:
        return call("leave", text(name), f"id({text(name)})")

    def _reads(self, name: Value) -> list[str]:
        """The topics of a member; none if it reads all."""
        read = sorted(words.names_in(words.by_member(self.constants, "Reads")[str(name)]))
        return [] if read == self._topics else list(map(text, read))

    def _epoch(self, epoch: Value) -> str:
        """An epoch as the test has it: counted from the first one of the group.

        Of a consumer group that is 1 or 2, by release; of a classic one it is 1.
        """
        if self.scene.value(0, "type") == "classic" or not isinstance(epoch, int) or epoch < 1:
            return str(epoch)
        return f"firstEpoch + {epoch - 1}" if epoch > 1 else "firstEpoch"

    def parts(self, test: str) -> frozenset[str]:
        """The template's parts that the test calls; heartbeats of both protocols are so called."""
        numbers = range(1, len(self.scene))
        beats = any(self.scene.action(number).name == "ClassicHeartbeat" for number in numbers)
        return JUnitScene.parts(self, test) | ({"heartbeats"} if beats else set())

    # ---- the end -----------------------------------------------------------------------------

    def _error(self) -> str | None:
        """The error of the last answer, if it is to be asserted."""
        last = len(self.scene) - 1
        action = self.scene.action(last)
        if action.name not in _ANSWERED:
            return None
        for name, expected, actual in self.scene.differing():
            if name == "client":
                wanted, seen = (fn(fn(each)[action.args[0]]) for each in (expected, actual))
                if (wanted["does"], wanted["error"]) != (seen["does"], seen["error"]):
                    return _error_of(wanted)
        return None

    def _then(self) -> Iterator[str]:
        error = self._error()
        if error is not None:
            yield f'assertEquals(Errors.{error}, answer, "the answer");'
            return  # what else differs follows from it
        differing = tuple(self.scene.differing())
        if [name for name, *_ in differing] == ["described"]:  # else it follows from what differs
            yield from self._described(*map(fn, differing[0][1:]))
        for name, expected, actual in differing:
            if name == "phase":
                yield f'assertEquals({text(expected)}, groupState(), "state of the group");'
            elif name in _OF_THE_GROUP and self._ends_as_consumer_group:
                seen, called = _OF_THE_GROUP[name]
                yield f"assertEquals({self._epoch(expected)}, {seen}, {text(called)});"
            elif name == "member":
                for member, wanted in fn(expected).items():
                    yield from self._member(member, fn(wanted), fn(fn(actual)[member]))

    def _described(self, expected: Fn, actual: Fn) -> Iterator[str]:
        for name, wanted in expected.items():
            if fn(wanted)["assignment"] != fn(actual[name])["assignment"]:
                given = set_of(fn(wanted)["assignment"])
                seen = f"partitions(describe(id({text(name)})).assignment())"
                yield f'assertEquals({given}, {seen}, "partitions of {name}, as described");'

    @property
    def _ends_as_consumer_group(self) -> bool:
        return self._is_of_848(len(self.scene) - 1)

    def _member(self, name: Value, expected: Fn, actual: Fn) -> Iterator[str]:
        if "None" in (expected["state"], actual["state"]):
            return
        if not self._ends_as_consumer_group:
            if expected["assigned"] != actual["assigned"]:
                given = set_of(expected["assigned"])
                yield f'assertEquals({given}, assigned({text(name)}), "partitions of {name}");'
            return
        for part, (seen, called) in _OF_A_MEMBER.items():
            if expected[part] != actual[part]:
                value = self._value(part, expected[part])
                subject = f"member(id({text(name)}))"
                yield f'assertEquals({value}, {seen.format(subject)}, "{called} {name}");'

    def _value(self, part: str, expected: Value) -> str:
        if part == "state":  # MemberState, by Kafka's name
            return text(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(expected)).upper())
        return set_of(expected) if isinstance(expected, frozenset) else self._epoch(expected)


def _error_of(client: Fn) -> str | None:
    """The error of the answer that has led to this; None if it may be several."""
    if client["error"] != "NONE":
        return str(client["error"])
    return "NONE" if client["does"] in ("sync", "on", "wait") else None


_STEPS: Mapping[str, Callable[[MixedGroupScene, Value, Fn], str]] = MappingProxyType(
    {
        "ConsumerJoin": MixedGroupScene._consumer_join,
        "ConsumerHeartbeat": MixedGroupScene._consumer_heartbeat,
        "ConsumerLeave": MixedGroupScene._consumer_leave,
        "ExpireSession": MixedGroupScene._expire_session,
        "ClassicJoin": MixedGroupScene._classic_join,
        "ClassicRejoin": MixedGroupScene._classic_join,
        "ClassicSync": MixedGroupScene._classic_sync,
        "ClassicHeartbeat": MixedGroupScene._classic_heartbeat,
        "ClassicLeave": MixedGroupScene._classic_leave,
    }
)
"""By action, the request."""
_OF_THE_GROUP = MappingProxyType(
    {
        "epoch": ("describe().groupEpoch()", "group epoch"),
        "assignmentEpoch": ("describe().assignmentEpoch()", "epoch of the target assignment"),
    }
)
_OF_A_MEMBER = MappingProxyType(
    {
        "state": ("{}.state().toString()", "state of"),
        "epoch": ("{}.memberEpoch()", "member epoch of"),
        "assigned": ("numbers({}.assignedPartitions())", "partitions assigned to"),
        "revoking": ("numbers({}.partitionsPendingRevocation())", "partitions revoked from"),
    }
)
"""By field, where it is seen, and what it is called."""
