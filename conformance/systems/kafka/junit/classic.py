"""A finding on groups of the classic protocol as a test of one GroupCoordinatorShard.

The members' requests are in the test, as the path has them; the member ids are the coordinator's.
What members do by themselves is not seen by the coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit import groups
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.shared.group.settings import INITIAL_DELAY_MS
from conformance.systems.shared.group.threads import SESSIONS
from conformance.systems.shared.group.words import call, text
from conformance.tla import Action, Fn, Value

_TIMERS = MappingProxyType(
    {"ExpireInitialDelay": "join", "ExpireRebalance": "join", "ExpireSync": "sync"}
)
_HEARTBEATS = ("HandleHeartbeat", "HandleOffsetCommit")
_REQUESTS = ("HandleJoinGroup", "HandleSyncGroup", "HandleLeaveGroup", *_HEARTBEATS)
_OF_CLIENTS = frozenset(
    {"SendJoinGroup", "ProcessJoinGroup", "ProcessSyncGroup", "CompleteJoin", "LeaveGroup"}
    | {"SendHeartbeat", "ProcessHeartbeat", "SendOffsetCommit", "ProcessOffsetCommit"}
    | {"RequestRejoin", "ChangeProtocols"}
)
"""Steps that the coordinator does not see, and that lead to none that it misses."""
_SEEN_LATE = MappingProxyType(
    {
        "RestartProcess": "The process of {} starts again.",
        "LoseMessage": "What is under way between {} and the coordinator is lost.",
    }
)
_NOBODY = ""


@dataclass(slots=True)
class ClassicGroupScene(JUnitScene):
    """A group, as its coordinator sees it."""

    template = groups.TEMPLATE
    calls = MappingProxyType(
        {
            **groups.CALLS,
            "join(": {"classic"},
            "sync(": {"syncs"},
            "heartbeat(": {"heartbeats"},
            "leave(": {"leaves"},
            "groupState(": {"states"},
            "stored(": {"stored"},
        }
    )
    constants: Mapping[str, str]
    ids: set[str] = field(default_factory=set)
    """Member ids that the test has a variable for."""

    @classmethod
    def of(cls, behaviour: Behaviour, constants: Mapping[str, str]) -> ClassicGroupScene:
        """The scene of the coordinator."""
        return cls(DepartingPath(behaviour), constants)

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a group of the classic protocol."""
        delays = words.prolongations(self.constants)
        instances = words.instances(self.constants)
        joins_twice = self.constants.get("RequireKnownMemberId") == "TRUE"
        return {
            "partitions": words.partitions_of(self.constants),
            "topics": text("topic"),
            "instances": groups.map_of({name: text(id) for name, id in instances.items()}),
            "size": self.constants.get("MaxSize", "Integer.MAX_VALUE"),
            "delay": str(INITIAL_DELAY_MS),
            "rebalance": str(INITIAL_DELAY_MS * (delays + 1)),
            "version": str(words.JOINS_TWICE if joins_twice else words.JOINS_ONCE),
        }

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        if action.name in _REQUESTS:
            self._request(number, action)
        elif action.name in _TIMERS:
            self.lines.add(f'expire("{_TIMERS[action.name]}-group");')
        elif action.name in SESSIONS:
            self.lines.add(f'expire("heartbeat-group-" + {self._id(action.args[0])});')
        elif action.name == "FailOver":
            self.lines.add("failOver();")
        elif action.name in _SEEN_LATE:
            self.lines.comment(_SEEN_LATE[action.name].format(action.args[0]))
        elif action.name not in _OF_CLIENTS:
            raise Unsayable(f"it has no words for the step {action}")

    def _request(self, number: int, action: Action) -> None:
        client = action.args[0]
        variable = "heartbeat" if action.name in _HEARTBEATS else "channel"
        request = fn(self.scene.of(number - 1, variable, client))
        self.lines.add(_REQUEST_OF[action.name](self, number, client, request) + ";")

    def _join(self, number: int, client: Value, request: Fn) -> str:
        member = request["sentMemberId"]
        protocols = request["protocols"]
        assert isinstance(protocols, frozenset)
        names = map(text, sorted(map(str, protocols)))
        asked = call("join", text(client), self._id(member), *names)
        new = next(iter(self._new_ids(number)), "") if member == _NOBODY else ""
        if not new:
            return asked
        self.ids.add(new)
        return f"String {self._id(new)} = {asked}"

    def _new_ids(self, number: int) -> list[str]:
        """Member ids that are in the group, or known to it, since this step."""

        def known(at: int) -> frozenset[Value]:
            members, pending = (
                self.scene.value(at, each) for each in ("members", "pendingMembers")
            )
            assert isinstance(members, frozenset)
            assert isinstance(pending, frozenset)
            return members | pending

        return sorted(map(str, known(number) - known(number - 1)))

    def _sync(self, _number: int, client: Value, request: Fn) -> str:
        generation, member = request["sentGeneration"], request["sentMemberId"]
        assignments = ", ".join(
            f"{self._id(other)}, {text(', '.join(map(str, words.sorted_numbers(given))))}"
            for other, given in fn(request["assignments"]).items()
            if given
        )
        return call("sync", text(client), self._id(member), generation, f"Map.of({assignments})")

    def _heartbeat(self, number: int, client: Value, request: Fn) -> str:
        asked = call(
            "heartbeat", text(client), self._id(request["memberId"]), request["generation"]
        )
        return f"Errors answer = {asked}" if self._is_asserted(number) else asked

    def _commit(self, number: int, client: Value, request: Fn) -> str:
        asked = call(
            "commit", text(client), self._id(request["memberId"]), request["generation"], 0
        )
        return f"Errors answer = {asked}.get(0)" if self._is_asserted(number) else asked

    def _leave(self, _number: int, client: Value, request: Fn) -> str:
        return call("leave", text(client), self._id(request["sentMemberId"]))

    def _is_asserted(self, number: int) -> bool:
        """Whether the answer to this request is."""
        differing = {name for name, _, _ in self.scene.differing()}
        return number == len(self.scene) - 1 and "heartbeat" in differing

    def _id(self, member: Value) -> str:
        """A member id as the test has it."""
        if member == _NOBODY:
            return '""'
        if str(member) not in self.ids and self.ids:
            raise Unsayable(f"it does not say how {member} became a member id")
        return str(member).replace("-", "_")

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name in _ASSERTED:
                yield from _ASSERTED[name](self, expected, actual)

    def _state(self, expected: Value, _actual: Value) -> Iterator[str]:
        yield f'assertEquals({text(expected)}, groupState(), "state of the group");'

    def _generation(self, expected: Value, _actual: Value) -> Iterator[str]:
        yield f'assertEquals({expected}, group().generationId(), "generation of the group");'

    def _new_member_added(self, expected: Value, _actual: Value) -> Iterator[str]:
        assertion = "assertTrue" if expected is True else "assertFalse"
        words = "a new member prolongs the initial delay"
        yield f"{assertion}(group().newMemberAdded(), {text(words)});"

    def _new_members(self, expected: Value, actual: Value) -> Iterator[str]:
        assert isinstance(expected, frozenset)
        assert isinstance(actual, frozenset)
        for member in sorted(map(str, expected ^ actual)):
            assertion = "assertTrue" if member in expected else "assertFalse"
            seen = f"group().member({self._id(member)}).isNew()"
            yield f"{assertion}({seen}, {text(f'{member} is a new member')});"

    def _join_timer(self, expected: Value, actual: Value) -> Iterator[str]:
        if "None" in (expected, actual):
            assertion = "assertFalse" if expected == "None" else "assertTrue"
            words = "the group waits for members to join"
            yield f'{assertion}(timers.containsKey("join-group"), {text(words)});'

    def _record(self, expected: Value, actual: Value) -> Iterator[str]:
        wanted, seen = fn(expected), fn(actual)
        if not wanted["present"]:
            yield 'assertNull(stored(), "record of the group");'
        elif wanted["generation"] != seen["generation"]:
            generation = wanted["generation"]
            words = "generation in the log"
            yield f"assertEquals({generation}, stored().generation(), {text(words)});"

    def _answer(self, expected: Value, actual: Value) -> Iterator[str]:
        client = self.scene.action(len(self.scene) - 1).args[0]
        wanted, seen = (fn(fn(each)[client])["error"] for each in (expected, actual))
        if wanted != seen:
            yield f'assertEquals(Errors.{wanted}, answer, "the answer");'


_Request = Callable[[ClassicGroupScene, int, Value, Fn], str]
_REQUEST_OF: Mapping[str, _Request] = MappingProxyType(
    {
        "HandleJoinGroup": ClassicGroupScene._join,
        "HandleSyncGroup": ClassicGroupScene._sync,
        "HandleHeartbeat": ClassicGroupScene._heartbeat,
        "HandleOffsetCommit": ClassicGroupScene._commit,
        "HandleLeaveGroup": ClassicGroupScene._leave,
    }
)
_Assert = Callable[[ClassicGroupScene, Value, Value], Iterator[str]]
_ASSERTED: Mapping[str, _Assert] = MappingProxyType(
    {
        "groupState": ClassicGroupScene._state,
        "generation": ClassicGroupScene._generation,
        "newMemberAdded": ClassicGroupScene._new_member_added,
        "newMembers": ClassicGroupScene._new_members,
        "joinTimer": ClassicGroupScene._join_timer,
        "groupRecord": ClassicGroupScene._record,
        "heartbeat": ClassicGroupScene._answer,
    }
)
"""By variable, what is asserted of it."""
