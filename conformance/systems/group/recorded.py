"""A recording of a real coordinator as events of GroupMembership, for the judge.

The coordinator's variables are observed, by the agent, after each step that changed them; what
members send is seen by the tap; the rest of the members' side is hidden. Source of the atomic
steps: GroupMetadata.inLock (up to 3.9), GroupMetadataManager's event loop (since 4.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.errors import DataError

JsonObject = dict[str, Any]

_SENT = {
    # The tap sees a SyncGroup when the JoinGroup's answer has been processed: one step of the spec.
    "JoinGroup": "SendJoinGroup",
    "SyncGroup": "ProcessJoinGroup",
    "LeaveGroup": "LeaveGroup",
}
_BESIDE = ("Heartbeat", "OffsetCommit")
"""Requests that matter when they are answered with an error: else neither side changes."""
_HANDLERS = {
    "handleJoinGroup": "HandleJoinGroup",
    "classicGroupJoin": "HandleJoinGroup",
    "handleSyncGroup": "HandleSyncGroup",
    "classicGroupSync": "HandleSyncGroup",
    "handleLeaveGroup": "HandleLeaveGroup",
    "classicGroupLeave": "HandleLeaveGroup",
}
SILENT = ("HandleHeartbeat", "HandleOffsetCommit", "ProcessJoinGroup", "ProcessSyncGroup")
"""Steps that nobody sees, besides CompleteJoin: members' side, and what changes no group."""

_FREE = {
    "InitialDelays": "1",
    "RequireKnownMemberId": "TRUE",
    "ProtocolSets": "{}",
    "Commits": "TRUE",
    "Heartbeats": "TRUE",
    "Timeouts": "TRUE",
    "Losses": "FALSE",
    "LateRequests": "TRUE",
    "Restarts": "TRUE",
    "Leaves": "TRUE",
    "Rejoins": "TRUE",
    "FailOvers": "TRUE",
    "StoreFailures": "FALSE",
    "Deletes": "TRUE",
    "FailureLimit": "-1",
}
"""What may happen in a real cluster: all that the recording can show, as often as it likes."""

_TIMERS = (
    {"name": "ExpireSession"},
    {"name": "ExpireNewMember"},
    {"name": "ExpirePendingMember"},
    {"name": "ExpireInitialDelay", "args": []},
    {"name": "ExpireRebalance", "args": []},
    {"name": "ExpireSync", "args": []},
)
"""What a change that no request made may be."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the agent's or the tap's file."""

    time: int
    source: str
    node: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class GroupTrace:
    """The events of one group and what the mapping has to declare of it."""

    events: tuple[JsonObject, ...]
    constants: Mapping[str, str]

    @property
    def ndjson(self) -> str:
        """The events, one a line (docs/traces.md)."""
        return "".join(json.dumps(event) + "\n" for event in self.events)

    @property
    def mapping(self) -> str:
        """The mapping that goes with them, as TOML (docs/mapping.md)."""
        silent = ", ".join(f'"{name}"' for name in (*SILENT, "CompleteJoin"))
        lines = ["schema = 1", 'order = "total"', "", "[silent]", f"actions = [{silent}]"]
        lines += ["steps = 3", "", "[constants]"]
        # JSON's texts are TOML's.
        pairs = {**_FREE, **self.constants}
        lines += [f"{name} = {json.dumps(value)}" for name, value in pairs.items()]
        return "\n".join(lines) + "\n"


def groups_in(recording: Path) -> list[str]:
    """The groups that the agent saw. Raises DataError if the folder is no recording."""
    if not (recording / "recording.json").is_file():
        raise DataError(
            f"{recording} is no recording: it has no recording.json. `kconform cluster record` "
            "writes one."
        )
    paths = recording.glob("node*/agent.ndjson")
    lines = (line for path in paths for _, line in _lines(path))
    return sorted({line["group"] for line in lines if "group" in line})


def group_trace(recording: Path, group: str) -> GroupTrace:
    """The events of `group` in a recording's folder, in their order by the one clock.

    Raises DataError if the folder is no recording or has nothing of the group.
    """
    observed = list(_observed(recording, group))
    sent = list(_sent(recording, group))
    if not observed:
        raise DataError(
            f"The agent saw nothing of group {group!r} in {recording}: record it with "
            "`agent = true` and a consumer of that group."
        )
    names = _Names.of(observed)
    events = [*_steps(observed, names), *_sends(sent, names)]
    # An answer leaves before the agent's stamp at the section's exit: the entry is what orders.
    events.sort(key=lambda event: event["time"])
    ordered = [{**event, "time": event["time"] / 1e9} for event in events]
    return GroupTrace(tuple(ordered), _constants(observed, names))


def _lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield number, json.loads(line)
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is no part of a recording: {error}") from error


def _observed(recording: Path, group: str) -> Iterator[Seen]:
    for path in sorted(recording.glob("node*/agent.ndjson")):
        for number, line in _lines(path):
            if line.get("group") == group:
                place = f"{path.relative_to(recording)}:{number}"
                yield Seen(line["entered"], place, line["node"], line)


def _sent(recording: Path, group: str) -> Iterator[Seen]:
    """What members sent, and both ends of each Heartbeat and OffsetCommit that was refused."""
    path = recording / "tap.ndjson"
    asked: dict[tuple[int, int], Seen] = {}
    for number, line in _lines(path) if path.is_file() else ():
        body = line.get("body")
        if not body or "api" not in line or line.get("rule") == "drop":
            continue
        seen = Seen(line["time"], f"tap.ndjson:{number}", line["link"], line)
        key = (line["connection"], line["correlation"])
        if line["direction"] == "request" and body.get("groupId") == group:
            if line["api"] in _SENT:
                yield seen
            elif line["api"] in _BESIDE:
                asked[key] = seen
        elif line["direction"] == "response" and key in asked:
            request = asked.pop(key)
            if _refused(body):
                yield request
                yield seen


def _refused(body: JsonObject) -> bool:
    if "errorCode" in body:
        return bool(body["errorCode"])
    errors = [part["errorCode"] for topic in body["topics"] for part in topic["partitions"]]
    return any(errors)


@dataclass(frozen=True, slots=True)
class _Names:
    """Member ids by the specification's names: `m1-1` is the first id of client `m1`."""

    ids: Mapping[str, str]
    instances: Mapping[str, str]
    """Client id -> group.instance.id, or `none`."""

    @classmethod
    def of(cls, observed: Iterable[Seen]) -> _Names:
        """Numbered in the order in which the coordinator came to know them."""
        ids: dict[str, str] = {}
        instances: dict[str, str] = {}
        counts: dict[str, int] = {}
        for seen in sorted(observed, key=lambda one: one.time):
            state = seen.body["state"] or {"members": {}, "pendingMembers": []}
            members: Mapping[str, JsonObject] = state["members"]
            for real in [*state["pendingMembers"], *members]:
                known = members.get(real)
                client = known["clientId"] if known else _client_of(real)
                if known and known["groupInstanceId"]:
                    instances[client] = known["groupInstanceId"]
                if real not in ids:
                    counts[client] = counts.get(client, 0) + 1
                    ids[real] = f"{client}-{counts[client]}"
        clients = sorted(counts)
        return cls(ids, {client: instances.get(client, "none") for client in clients})

    def client(self, real: str) -> str | None:
        """The process that a member id belongs to."""
        name = self.ids.get(real)
        return None if name is None else name.rpartition("-")[0]

    def set_of(self, real: Iterable[str]) -> JsonObject:
        """A set of ids as ITF writes it."""
        return {"#set": sorted(self.ids[one] for one in real)}


def _client_of(member_id: str) -> str:
    """The coordinator makes a dynamic member's id of its client id and a uuid."""
    return re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "", member_id)


def _steps(observed: Iterable[Seen], names: _Names) -> Iterator[JsonObject]:
    """One event per observation: the coordinator's variables after a step, and which it may be."""
    before: tuple[str, JsonObject] | None = None
    for seen in sorted(observed, key=lambda one: one.time):
        operation = seen.body["operation"]
        if operation.startswith(("onGroupUnloaded", "onUnloaded", "onResignation")):
            continue  # the old coordinator forgets; the step is the new one's loading
        state = _state(_settled(seen.body["state"]), names)
        if before == (seen.node, state):
            continue  # the leader's SyncGroup came: it counts when its record is stored
        moved = before is not None and before[0] != seen.node
        before = (seen.node, state)
        yield {
            "trace": seen.body["group"],
            "time": seen.time,
            "source": seen.source,
            "action": {"name": "FailOver", "args": []} if moved else _action(operation, names),
            "state": state,
        }


def _settled(state: JsonObject | None) -> JsonObject | None:
    """The state without a SyncGroup of the leader whose record is not stored yet.

    The specification handles it in one step, at the moment at which the group becomes stable; Kafka
    notes it first and goes on in the append's callback.
    """
    leader = state["leader"] if state else None
    if not state or state["state"] != "CompletingRebalance" or leader not in state["members"]:
        return state
    member = state["members"][leader]
    if not member["awaitingSync"]:
        return state
    return {
        **state,
        "members": {**state["members"], leader: {**member, "awaitingSync": False}},
        "pendingSyncMembers": sorted({*state["pendingSyncMembers"], leader}),
    }


def _action(operation: str, names: _Names) -> JsonObject | list[JsonObject]:
    """The action of a section: of the request that it is part of, else one of the timers'."""
    name, _, arguments = operation.partition(" ")
    if name not in _HANDLERS:
        handled = [{"name": action} for action in sorted(set(_HANDLERS.values()))]
        return [*handled, *_TIMERS, {"name": "DeleteGroup", "args": []}]
    told = json.loads(arguments) if arguments else []
    process = next(filter(None, (_process(value, names) for value in told)), None)
    args: list[str | None] = [process]
    return {"name": _HANDLERS[name], "args": args}


def _process(value: object, names: _Names) -> str | None:
    """The process that an argument tells of: by its member id or its client id."""
    if isinstance(value, dict):
        found = (_process(value.get(key), names) for key in ("memberId", "clientId"))
        return next(filter(None, found), None)
    if not isinstance(value, str):
        return None
    return names.client(value) or (value if value in names.instances else None)


def _sends(sent: Iterable[Seen], names: _Names) -> Iterator[JsonObject]:
    group = ""
    for seen in sent:
        line = seen.body
        group = line["body"].get("groupId", group)
        if line["client"] in names.instances:
            step = "Send" if line["direction"] == "request" else "Process"
            name = _SENT.get(line["api"], f"{step}{line['api']}")
            yield {
                "trace": group,
                "time": seen.time,
                "source": seen.source,
                "action": {"name": name, "args": [line["client"]]},
            }


def _state(state: JsonObject | None, names: _Names) -> JsonObject:
    """The coordinator's variables; a group that is not there is described as Dead."""
    if state is None:
        return {"groupState": "Dead"}
    members: Mapping[str, JsonObject] = state["members"]

    def those(flag: str) -> JsonObject:
        return names.set_of(real for real, member in members.items() if member[flag])

    return {
        "groupState": state["state"],
        "generation": state["generation"],
        "protocolName": state["protocol"] or "none",
        "leader": names.ids.get(state["leader"] or "", ""),
        "members": names.set_of(members),
        "pendingMembers": names.set_of(state["pendingMembers"]),
        "staticMembers": {
            "#map": [
                [instance, names.ids.get(state["staticMembers"].get(instance, ""), "")]
                for instance in sorted(set(names.instances.values()))
            ]
        },
        "supported": {
            "#map": [
                [name, {"#set": sorted(members[real]["protocols"]) if real in members else []}]
                for real, name in sorted(names.ids.items(), key=lambda pair: pair[1])
            ]
        },
        "awaitingJoin": those("awaitingJoin"),
        "awaitingSync": those("awaitingSync"),
        "newMembers": those("isNew"),
        "pendingSync": names.set_of(
            real for real in state["pendingSyncMembers"] if real in names.ids
        ),
    }


def _constants(observed: Iterable[Seen], names: _Names) -> dict[str, str]:
    """GroupMembership's constants: what the recording names, and everything may happen."""
    states = [seen.body["state"] for seen in observed if seen.body["state"]]
    members = [member for state in states for member in state["members"].values()]
    protocols = sorted({name for member in members for name in member["protocols"]})
    by_client = {member["clientId"]: sorted(member["protocols"]) for member in members}
    last = max(state["generation"] for state in states)
    clients = sorted(names.instances)
    ids = [
        f'[id |-> "{name}", member |-> "{names.client(real)}"]'
        for real, name in sorted(names.ids.items())
    ]
    return {
        "Members": _set(clients),
        "InstanceOf": _cases({client: f'"{names.instances[client]}"' for client in clients}),
        "MemberIds": f"<<{', '.join(_in_turn(ids, names))}>>",
        "Generations": f"0..{last + 1}",
        "Partitions": "0..0",
        "Protocols": _set(protocols),
        "MaxSize": str(len(names.ids) + 1),
        "ProtocolsOf": _cases({name: _set(by_client.get(name, protocols)) for name in clients}),
    }


def _in_turn(ids: list[str], names: _Names) -> list[str]:
    """Assignors sort by the real ids; a process's own are given out from first to last."""
    order = {name: index for index, name in enumerate(names.ids.values())}
    return sorted(ids, key=lambda text: order[text.split('"')[1]])


def _set(texts: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{text}"' for text in texts) + "}"


def _cases(values: Mapping[str, str]) -> str:
    """A function as TLA+ writes it: `"m1" :> 1 @@ "m2" :> 2` without the TLC module."""
    cases = " [] ".join(f'p = "{key}" -> {value}' for key, value in values.items())
    return f"[p \\in {_set(values)} |-> CASE {cases}]"
