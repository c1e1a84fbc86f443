"""A finding on groups of KIP-848 as a test of one GroupCoordinatorShard.

The members' requests are in the test, as the path has them, and the target assignments that the
path chooses. What members do by themselves is not seen by the coordinator.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit import groups
from conformance.systems.kafka.junit.groups import set_of
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.shared.group.words import call, text
from conformance.systems.wire.consumer.inner_steps import (
    ASSIGNMENT_INTERVAL_MS,
    PAUSES_MS,
    RUN_RESOLUTION,
    WRITE_RESOLUTION,
)
from conformance.tla import Fn, Value

_NO_REGEXES = "<<>>"
"""The constant Matches of a model without regular expressions."""
_HEARTBEATS = frozenset({"HandleHeartbeat", "RefuseHeartbeat", "HandleLeave", "HandleStaticLeave"})
_EXPIRIES = MappingProxyType(
    {"ExpireSession": "session-timeout", "ExpireRebalance": "rebalance-timeout"}
)
_OF_MEMBERS = frozenset(
    {"Join", "SendHeartbeat", "Revoke", "Assign", "Abandon", "Leave", "ReceiveAnswer"}
    | {"Resubscribe", "SendCommit", "ReceiveCommit"}
)
"""Steps that the coordinator does not see, and that lead to none that it misses."""
_LOST = MappingProxyType(
    {
        "LoseMessage": "What is under way between {} and the coordinator is lost.",
        "LoseCommit": "A commit of {} or its answer is lost.",
    }
)
_TIMES = MappingProxyType(
    {
        "PassAssignmentInterval": "group.consumer.assignment.interval.ms",
        "PassMinInterval": "REGEX_BATCH_REFRESH_MIN_INTERVAL_MS",
        "PassRefreshInterval": "group.consumer.regex.refresh.interval.ms",
    }
)
"""By step, what is over then."""
_INNER = MappingProxyType(
    {
        RUN_RESOLUTION: "resolveRegularExpressions();",
        WRITE_RESOLUTION: "writeResolution();",
        **{step: f"pass({ms:_}); // {_TIMES[step]}" for step, ms in PAUSES_MS.items()},
    }
)
"""Steps that no request brings: the executor's, and time."""
_NONE = "NONE"


@dataclass(slots=True)
class ConsumerGroupScene(JUnitScene):
    """A group, as its coordinator sees it."""

    template = groups.TEMPLATE
    calls = MappingProxyType(
        {
            **groups.CALLS,
            "heartbeat(": {"consumer", "oneProtocol"},
            "heartbeatNaming(": {"consumer", "oneProtocol", "owning", "naming"},
            "made, ": {"made"},
            "firstEpoch": {"firstEpoch", "describes"},
            "Set.of(": {"owning"},
            "subscribe(": {"subscribes"},
            "given(": {"gives", "numbers"},
            "describe(": {"describes"},
            'describe("': {"describesMember"},
            "partitions(": {"partitions", "numbers"},
            "member(": {"member"},
            "numbers(": {"ofTopics", "numbers"},
            "pass(": {"passes"},
            "heartbeatMatching(": {"consumer", "oneProtocol", "owning", "resolves", "matching"},
            "subscribeMatching(": {"consumer", "oneProtocol", "resolves", "unmatching"},
            "resolveRegularExpressions(": {"resolves"},
            "isResolving(": {"resolves", "resolving"},
            "intervalRuns(": {"interval"},
        }
    )
    constants: Mapping[str, str]

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> ConsumerGroupScene:
        """The scene of the coordinator."""
        kind = _IntervalScene if words.has_interval(constants) else cls
        return kind(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a group of KIP-848."""
        instances = words.instances(self.constants)
        size = self.constants.get("MaxSize", "")
        topics = self._topics
        several = str(len(topics)) if len(topics) > 1 else None
        return {
            "partitions": several or words.partitions_of(self.constants),
            "topics": ", ".join(map(text, topics)),
            "interval": str(ASSIGNMENT_INTERVAL_MS if words.has_interval(self.constants) else 0),
            "instances": groups.map_of({name: text(id) for name, id in instances.items()}),
            "size": size if size.isdigit() else "Integer.MAX_VALUE",
            "assignors": ", ".join(call("assignor", text(name)) for name in self._assignors),
            **dict.fromkeys(("delay", "rebalance", "version"), ""),
        }

    @property
    def _topics(self) -> list[str]:
        """Their names. Unsayable of several topics that do not have one partition each."""
        sizes = fn(self.scene.value(0, "topics"))
        if len(sizes) > 1 and {*sizes.values()} != {1}:
            raise Unsayable("it has several topics that do not have one partition each")
        return sorted(map(str, sizes))

    @property
    def _assignors(self) -> Sequence[str]:
        """Those of the coordinator; if there is one only, its name does not matter."""
        names = words.names_in(self.constants.get("Assignors", ""))
        return names if len(names) > 1 else ("test",)

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name in _INNER:
            self.lines.add(_INNER[action.name])
        elif action.name in _HEARTBEATS:
            self._heartbeat(number, action.args[0])
        elif action.name == "HandleCommit":
            self._commit(number, action.args[0])
        elif action.name in _EXPIRIES:
            self.lines.add(f'expire("{_EXPIRIES[action.name]}-group-{action.args[0]}");')
        elif action.name in _LOST:
            self.lines.comment(_LOST[action.name].format(action.args[0]))
        elif action.name not in _OF_MEMBERS:
            raise Unsayable(f"it has no words for the step {action}")

    def _heartbeat(self, number: int, member: Value) -> None:
        target = self.scene.value(number, "target")
        if target != self.scene.value(number - 1, "target"):
            chosen = {str(name): set_of(given) for name, given in fn(target).items() if given}
            self.lines.add(f"target = {groups.map_of(chosen)};")
        request = fn(self.scene.of(number - 1, "channel", member))
        owned = (set_of(request["owned"]),) if request["named"] else ()
        reads = words.sorted_names(request["reads"])
        sender = (text(member), self._epoch(request["epoch"]), *owned)
        if reads and self.constants.get("Matches", _NO_REGEXES) != _NO_REGEXES:
            asked = self._matching(reads, sender, "heartbeat" if owned else "subscribe")
        elif reads and not owned:
            asked = call("subscribe", *sender, *map(text, reads))
        else:
            topics = () if reads == self._topics else tuple(map(text, reads))
            named = self._named(member) if owned else ()
            asked = call("heartbeatNaming" if named else "heartbeat", *named, *sender, *topics)
        answer = "ConsumerGroupHeartbeatResponseData answer = " if self._is_last(number) else ""
        self.lines.add(f"{answer}{asked};")

    def _matching(self, reads: Sequence[str], sender: Sequence[str], method: str) -> str:
        """A request of a member that reads topics by name, and by a regular expression or none."""
        topics = [text(name) for name in reads if name in self._topics]
        regex = "".join(name for name in reads if name not in self._topics)
        return call(f"{method}Matching", text(regex), *sender, *topics)

    def _named(self, member: Value) -> Sequence[str]:
        """The assignor that a member names where it has a choice, as an expression."""
        if len(self._assignors) == 1:
            return ()
        name = words.by_member(self.constants, "NamedAssignor")[str(member)]
        return (name,) if name.strip('"') in self._assignors else ()

    def _commit(self, number: int, member: Value) -> None:
        request = fn(self.scene.of(number - 1, "commit", member))
        partitions = words.sorted_numbers(request["partitions"])
        epoch = self._epoch(request["epoch"])
        asked = call("commit", text(member), text(member), epoch, *partitions)
        answer = "Map<Integer, Errors> answer = " if self._is_last(number) else ""
        self.lines.add(f"{answer}{asked};")

    def _is_last(self, number: int) -> bool:
        """Whether it is the step whose answer is asserted."""
        differing = {name for name, _, _ in self.scene.differing()}
        return number == len(self.scene) - 1 and not differing.isdisjoint({"channel", "commit"})

    def _epoch(self, epoch: Value) -> str:
        """An epoch, counted from the first one of the group."""
        return groups.epoch_from(next(filter(None, self._group_epochs), None), epoch)

    @property
    def _group_epochs(self) -> Iterator[int]:
        """The group's epochs before the last step."""
        for number in range(len(self.scene) - 1):
            epoch = self.scene.value(number, "groupEpoch")
            assert isinstance(epoch, int)
            yield epoch

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        differing = {name: pair for name, *pair in self.scene.differing()}
        if "channel" in differing and self._is_refused(*map(fn, differing["channel"])):
            # All else follows from whether the request is taken; who is gone is not described.
            differing = {"channel": differing["channel"]}
        names = differing.keys()
        for name, (expected, actual) in differing.items():
            if name == "described" and names & _ASSIGNED:
                continue  # it follows from these, and from what a release shows of them
            if name == "assignedBy" and "groupEpoch" not in names:
                yield f'assertEquals({text(expected)}, made, "assignor that made the target");'
            if name in _OF_THE_GROUP:
                epoch, words = self._epoch(expected), text(_OF_THE_GROUP[name])
                yield f"assertEquals({epoch}, describe().{name}(), {words});"
            elif name in _FLAGS:
                value, seen = _FLAGS[name]
                yield f"assert{str(expected == value).capitalize()}({seen});"
            elif name in _OF_A_MEMBER:
                for member in fn(expected):
                    if fn(expected)[member] != fn(actual).get(member):
                        yield self._of_member(name, member, fn(expected)[member])
            elif name in _ANSWERS:
                yield from _ANSWERS[name](self, fn(expected), fn(actual))

    def _of_member(self, name: str, member: Value, expected: Value) -> str:
        seen, words = _OF_A_MEMBER[name]
        if name == "memberState":  # MemberState, by Kafka's name
            value = text(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(expected)).upper())
        elif isinstance(expected, frozenset):
            value = set_of(expected)
        else:
            value = self._epoch(expected)
        return f"assertEquals({value}, {seen.format(text(member))}, {text(words.format(member))});"

    @property
    def _asking(self) -> Value:
        """The member of the last request."""
        return self.scene.action(len(self.scene) - 1).args[0]

    def _is_refused(self, expected: Fn, actual: Fn) -> bool:
        """Whether the last request is refused, or shall be, or for another reason."""
        asking = self._asking
        return fn(expected[asking])["error"] != fn(actual[asking])["error"]

    def _channel(self, expected: Fn, actual: Fn) -> Iterator[str]:
        wanted, seen = fn(expected[self._asking]), fn(actual[self._asking])
        if wanted["error"] != seen["error"]:
            error, seen_error = f"Errors.{wanted['error']}", "Errors.forCode(answer.errorCode())"
            yield f'assertEquals({error}, {seen_error}, "error of the answer");'
            return
        if wanted["epoch"] != seen["epoch"]:
            epoch = self._epoch(wanted["epoch"])
            yield f'assertEquals({epoch}, answer.memberEpoch(), "epoch in the answer");'
        if not wanted["told"] and seen["told"]:
            yield 'assertNull(given(answer), "the answer gives no assignment");'
        elif (wanted["told"], wanted["given"]) != (seen["told"], seen["given"]):
            given = set_of(wanted["given"])
            yield f'assertEquals({given}, given(answer), "partitions that the answer gives");'

    def _answered_commit(self, expected: Fn, _actual: Fn) -> Iterator[str]:
        last = len(self.scene) - 1
        sent = fn(self.scene.of(last - 1, "commit", self._asking))["partitions"]
        wanted = fn(expected[self._asking])
        committed = words.sorted_numbers(wanted["partitions"])
        answers = ", ".join(
            f"{partition}, Errors.{_NONE if partition in committed else wanted['error']}"
            for partition in words.sorted_numbers(sent)
        )
        yield f'assertEquals(Map.of({answers}), answer, "answers by partition");'


@dataclass(slots=True)
class _IntervalScene(ConsumerGroupScene):
    """The same of a group whose target stays for an assignment interval."""

    oldest = (4, 3, 0)


_OF_THE_GROUP = MappingProxyType(
    {"groupEpoch": "group epoch", "assignmentEpoch": "epoch of the target assignment"}
)
_FLAGS: Mapping[str, tuple[Value, str]] = MappingProxyType(
    {
        "intervalRuns": (True, 'intervalRuns(), "who joins now has to wait for partitions"'),
        "resolution": (
            "Scheduled",
            'isResolving(), "the regular expressions are about to be resolved"',
        ),
    }
)
"""By variable, the value of one that is true or false, how it is seen, and what it is called."""
_OF_A_MEMBER: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "memberEpoch": ("describe({}).memberEpoch()", "member epoch of {}"),
        "described": ("partitions(describe({}).assignment())", "partitions of {}, as described"),
        "target": ("partitions(describe({}).targetAssignment())", "target of {}"),
        "memberState": ("member({}).state().toString()", "state of {}"),
        "previousMemberEpoch": ("member({}).previousMemberEpoch()", "epoch of {} before"),
        "assignedPartitions": (
            "numbers(member({}).assignedPartitions())",
            "partitions assigned to {}",
        ),
        "partitionsPendingRevocation": (
            "numbers(member({}).partitionsPendingRevocation())",
            "partitions that {} is to give back",
        ),
    }
)
"""By variable, where it is seen, and what it is called."""
_ASSIGNED = frozenset({"assignedPartitions", "partitionsPendingRevocation"})
_Answer = Callable[[ConsumerGroupScene, Fn, Fn], Iterator[str]]
_ANSWERS: Mapping[str, _Answer] = MappingProxyType(
    {"channel": ConsumerGroupScene._channel, "commit": ConsumerGroupScene._answered_commit}
)
"""By variable, what is asserted of the last answer."""
