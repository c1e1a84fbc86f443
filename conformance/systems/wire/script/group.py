"""A finding on groups of the classic protocol, as requests of their members and what is answered.

What the broker shows to nobody is not asserted, and no timer but the initial delay is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.systems.shared.departing import Unsayable, fn
from conformance.systems.shared.group import words
from conformance.systems.shared.group.settings import INITIAL_DELAY_MS
from conformance.systems.wire.script.base import PortScript
from conformance.tla import Action, Fn, Value

_UNSEEN = frozenset(
    {"SendJoinGroup", "SendHeartbeat", "SendOffsetCommit", "CompleteJoin", "LeaveGroup"}
    | {"RequestRejoin", "ChangeProtocols"}
)
"""What a client does by itself."""
_ANSWERS = frozenset({"JoinGroupResponse", "SyncGroupResponse"})


class GroupScript(PortScript):
    """Of a group of the classic protocol."""

    template = "group.py.txt"
    names_answer = False

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to the model."""
        delays = words.prolongations(self.constants)
        twice = self.constants.get("RequireKnownMemberId") == "TRUE" or self._instances
        return {
            "version": str(words.JOINS_TWICE if twice else words.JOINS_ONCE),
            "rebalance": str(INITIAL_DELAY_MS * (delays + 1) // 1_000),
        }

    @property
    def _instances(self) -> Mapping[str, str]:
        return words.instances(self.constants)

    def _start(self) -> Iterator[str]:
        return map(self._process, words.members(self.constants))

    def _process(self, member: str) -> str:
        """A consumer's process begins: it knows nothing, and has new connections."""
        instance = self._instances.get(member)
        arguments = [words.text(member), *([words.text(instance)] if instance else [])]
        return f"{member} = {words.call('Client', *arguments)}"

    # ---- steps -------------------------------------------------------------------------------

    def _step(self, number: int) -> Iterator[str]:
        action = self.scene.action(number)
        if action.name == "ExpireInitialDelay":
            yield from self._wait(number)
        elif action.name.startswith("Handle"):
            yield self._request(number, action)
        elif action.name in ("ProcessJoinGroup", "ProcessSyncGroup"):
            yield f"{action.args[0]}.answer()"
        elif action.name in ("ProcessHeartbeat", "ProcessOffsetCommit"):
            yield f"{action.args[0]}.heartbeat_error()"
        elif action.name == "RestartProcess":
            yield self._process(str(action.args[0]))
        elif action.name == "LoseMessage":
            yield f"{action.args[0]}.reconnect()"
        elif action.name not in _UNSEEN:
            raise Unsayable(f"at a port it cannot be brought about at will: {action}")

    def _wait(self, number: int) -> Iterator[str]:
        """Until those are answered whom the delay kept waiting."""
        for member in words.members(self.constants):
            before, after = (self.scene.of(at, "channel", member) for at in (number - 1, number))
            if fn(before)["type"] == "JoinGroupParked" != fn(after)["type"]:
                yield f"{member}.channel.is_answered(PATIENCE)"

    def _request(self, number: int, action: Action) -> str:
        client = str(action.args[0])
        heartbeats = action.name in ("HandleHeartbeat", "HandleOffsetCommit")
        variable = "heartbeat" if heartbeats else "channel"
        request = fn(self.scene.of(number - 1, variable, client))
        id = _member_id(client, request["memberId" if heartbeats else "sentMemberId"])
        if action.name == "HandleJoinGroup":
            protocols = request["protocols"]
            assert isinstance(protocols, frozenset)
            names = map(words.text, sorted(map(str, protocols)))
            return words.call(f"{client}.join", id, *names)
        if action.name == "HandleSyncGroup":
            assignments = fn(request["assignments"]).items()
            given = {_client(id): words.sorted_numbers(each) for id, each in assignments if each}
            return words.call(f"{client}.sync", id, request["sentGeneration"], given)
        if action.name == "HandleLeaveGroup":
            return words.call(f"{client}.leave", id)
        method = {"HandleHeartbeat": "heartbeat", "HandleOffsetCommit": "commit"}.get(action.name)
        if method is None:
            raise Unsayable(f"it has no words for the step {action}")
        return words.call(f"{client}.{method}", id, request["generation"])

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        for name, expected, actual in self.scene.differing():
            if name == "groupState":
                yield f'assert group_state() == {words.text(expected)}, "state of the group"'
            elif name in ("channel", "heartbeat"):
                for member, wanted in fn(expected).items():
                    seen = fn(actual).get(member)
                    if wanted != seen and seen is not None:
                        say = _answer if name == "channel" else _heartbeat
                        yield from say(str(member), fn(wanted), fn(seen))


def _answer(client: str, wanted: Fn, seen: Fn) -> Iterator[str]:
    """The answer to a join or a sync, of a client that has not taken it: what of it differs."""
    if wanted["type"] not in _ANSWERS:
        if seen["type"] in _ANSWERS:
            yield f'assert not {client}.channel.is_answered(0), "{client} waits for its answer"'
        return
    asserted = list(_fields(client, wanted, seen))
    if asserted:
        yield from (f"answer = {client}.answer()", *asserted)


def _fields(client: str, wanted: Fn, seen: Fn) -> Iterator[str]:
    if (wanted["type"], wanted["error"]) != (seen["type"], seen["error"]):
        error = f"answer.error_code.name.upper() == {words.text(wanted['error'])}"
        yield f'assert {error}, f"{client} is answered {{answer.error_code.name}}"'
    if wanted["error"] != "NONE":
        return
    if wanted["type"] == "SyncGroupResponse" and wanted["assignment"] != seen["assignment"]:
        partitions = words.sorted_numbers(wanted["assignment"])
        yield f'assert list(answer.assignment) == {partitions}, "partitions of {client}"'
    if wanted["type"] != "JoinGroupResponse":
        return
    if wanted["generation"] != seen["generation"]:
        yield f"assert answer.generation_id == {wanted['generation']}, answer"
    if wanted["protocol"] != seen["protocol"]:
        yield f"assert answer.protocol_name == {words.text(wanted['protocol'])}, answer"
    if wanted["leader"] != seen["leader"]:
        yield f"assert client_of(answer.leader) == {words.text(_client(wanted['leader']))}, answer"
    if wanted["members"] != seen["members"]:
        members = wanted["members"]
        assert isinstance(members, frozenset)
        names = sorted(map(_client, members))
        yield f"assert sorted(map(client_of, {client}.members)) == {names}, answer"


def _heartbeat(client: str, wanted: Fn, seen: Fn) -> Iterator[str]:
    if wanted["error"] != seen["error"]:
        about = f"{client}'s heartbeat or commit is answered"
        yield f"error = {client}.heartbeat_error()"
        yield f'assert error == {words.text(wanted["error"])}, f"{about} {{error}}"'


def _member_id(client: str, id: Value) -> str:
    return f"{client}.member_id" if id else '""'


def _client(id: Value) -> str:
    """Whose member id it is in the specification: `m1-2` is m1's second."""
    return str(id).rpartition("-")[0]
