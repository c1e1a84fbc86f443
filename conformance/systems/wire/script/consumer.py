"""A finding on groups of KIP-848, as requests of their members and what is answered and described.

What members do by themselves is not in it, and no timer is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from conformance.systems.shared.departing import Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.wire.script.base import PortScript
from conformance.tla import Action, Fn, Value

_HEARTBEATS = frozenset({"HandleHeartbeat", "RefuseHeartbeat", "HandleLeave", "HandleStaticLeave"})
_UNSEEN = frozenset(
    {"Join", "SendHeartbeat", "Revoke", "Assign", "Abandon", "Leave", "ReceiveAnswer"}
    | {"SendCommit", "ReceiveCommit", "LoseMessage", "LoseCommit"}
)
"""What a member does by itself, and what is lost: nobody reads that answer."""
_OF_THE_GROUP: Mapping[str, str] = MappingProxyType(
    {"groupEpoch": "group_epoch", "assignmentEpoch": "assignment_epoch"}
)
_OF_A_MEMBER: Mapping[str, str] = MappingProxyType(
    {
        "memberEpoch": "{}.member_epoch",
        "described": "partitions_of({}.assignment)",
        "target": "partitions_of({}.target_assignment)",
    }
)
"""By variable, where ConsumerGroupDescribe shows it."""
_NONE = "NONE"
_NO_REGEXES = "<<>>"


class ConsumerGroupScript(PortScript):
    """Of a group of KIP-848."""

    template = "consumer.py.txt"
    names_answer = True

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to the model. Unsayable of a group with a limit, of
        several assignors, of an assignment interval, and of more than one topic to subscribe to."""
        if self.constants.get("MaxSize", "").isdigit():
            raise Unsayable("its group is full, and the limit is the broker's")
        if words.is_of_assignors_or_interval(self.constants):
            raise Unsayable("it has several assignors, or an assignment interval")
        has_regexes = self.constants.get("Matches", _NO_REGEXES) != _NO_REGEXES
        if has_regexes or len(words.names_in(self.constants.get("Reads", ""))) > 1:
            raise Unsayable("its members read several topics, or a regular expression")
        return {"partitions": words.partitions_of(self.constants)}

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> Iterator[str]:
        action = self.scene.action(number)
        if action.name in _UNSEEN:
            return
        if action.name not in (*_HEARTBEATS, "HandleCommit"):
            raise Unsayable(f"at a port it cannot be brought about at will: {action}")
        member = action.args[0]
        instance = words.instances(self.constants).get(str(member))
        named = [f"instance={words.text(instance)}"] if instance else []
        ask = self._commit if action.name == "HandleCommit" else self._heartbeat
        before, epoch = (self.scene.value(at, "groupEpoch") for at in (number - 1, number))
        is_first = not before and epoch and number < len(self.scene) - 1
        asked = ask(number, member, named)
        yield f"group.begins_with({epoch}, {asked})" if is_first else asked

    def _heartbeat(self, number: int, member: Value, named: list[str]) -> str:
        request = fn(self.scene.of(number - 1, "channel", member))
        owned = [_set(request["owned"])] if request["named"] else []
        arguments = (words.text(member), request["epoch"], *owned, *named)
        return words.call("group.heartbeat", *arguments)

    def _commit(self, number: int, member: Value, named: list[str]) -> str:
        request = fn(self.scene.of(number - 1, "commit", member))
        arguments = (words.text(member), request["epoch"], _set(request["partitions"]), *named)
        return words.call("group.commit", *arguments)

    # ---- the end -----------------------------------------------------------------------------

    @property
    def _last(self) -> Action:
        return self.scene.action(len(self.scene) - 1)

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name in _OF_THE_GROUP:
                asked = f"group.described().{_OF_THE_GROUP[name]}"
                yield f"assert {asked} == {_epoch(expected)}, group.described()"
            elif name in _OF_A_MEMBER:
                yield from self._of_members(name, fn(expected), fn(actual))
            elif name == "channel":
                yield from self._answer(
                    *(fn(fn(each)[self._last.args[0]]) for each in (expected, actual))
                )
            elif name == "commit" and self._last.name == "HandleCommit":
                yield self._answered_commit(fn(fn(expected)[self._last.args[0]]))

    def _of_members(self, name: str, expected: Fn, actual: Fn) -> Iterator[str]:
        for member, wanted in expected.items():
            if wanted != actual.get(member):
                asked = f"group.member({words.text(member)})"
                value = _set(wanted) if isinstance(wanted, frozenset) else _epoch(wanted)
                yield f"assert {_OF_A_MEMBER[name].format(asked)} == {value}, {asked}"

    @staticmethod
    def _answer(wanted: Fn, seen: Fn) -> Iterator[str]:
        if wanted["error"] != seen["error"]:
            yield f'assert answer["error"] == {words.text(wanted["error"])}, answer'
            return
        if wanted["epoch"] != seen["epoch"]:
            yield f'assert answer["epoch"] == {_epoch(wanted["epoch"])}, answer'
        if (wanted["told"], wanted["given"]) != (seen["told"], seen["given"]):
            given = _set(wanted["given"]) if wanted["told"] else "None"
            yield f'assert answer["given"] == {given}, answer'

    def _answered_commit(self, wanted: Fn) -> str:
        before = fn(self.scene.of(len(self.scene) - 2, "commit", self._last.args[0]))
        accepted = words.sorted_numbers(wanted["partitions"])
        answers = {
            partition: _NONE if partition in accepted else str(wanted["error"])
            for partition in words.sorted_numbers(before["partitions"])
        }
        return f"assert answer == {answers}, answer"


def _epoch(number: Value) -> str:
    return f"group.epoch({number})"


def _set(numbers: Value) -> str:
    partitions = words.sorted_numbers(numbers)
    return "{" + ", ".join(map(str, partitions)) + "}" if partitions else "set()"
