"""A recording of a real coordinator as events of GroupMembership, for the judge.

The coordinator's variables are observed, by the agent, after each step that changed them; what
members send is seen by the tap; the rest of the members' side is hidden. Source of the atomic
steps: GroupMetadata.inLock (up to 3.9), GroupMetadataManager's event loop (since 4.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.recordings.folder import (
    RecordedLine,
    RecordedTrace,
    agents_lines,
    manifest,
    read_lines,
)
from conformance.recordings.lines import JsonObject, check_taps_line
from conformance.recordings.terms import GroupObservation, Terms, terms

MODEL = "group/recorded-2m"
"""Names the specification and what holds of it; every constant is in the mapping."""
REWRITTEN = "group/recorded-rewrite-2m"
"""The same for the coordinator that was rewritten for 4.0, with what is known of it."""

_SENT = {
    # The tap sees a SyncGroup when the JoinGroup's answer has been processed: one step of the spec.
    "JoinGroup": "SendJoinGroup",
    "SyncGroup": "ProcessJoinGroup",
    "LeaveGroup": "LeaveGroup",
}
_BESIDE = ("Heartbeat", "OffsetCommit")
"""Requests that matter when they are answered with an error: else neither side changes."""
_LATE = {"HandleJoinGroup": "HandleLateJoinGroup"}
"""What is a step of its own if the member has given its request up."""
_ELSEWHERE = {14, 15, 16}
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR: no group saw it."""
_HANDLERS = {
    "handleJoinGroup": "HandleJoinGroup",
    "classicGroupJoin": "HandleJoinGroup",
    "handleSyncGroup": "HandleSyncGroup",
    "classicGroupSync": "HandleSyncGroup",
    "handleLeaveGroup": "HandleLeaveGroup",
    "classicGroupLeave": "HandleLeaveGroup",
}
SILENT = (
    "HandleHeartbeat",
    "HandleOffsetCommit",
    "HandleJoinGroup",
    "HandleSyncGroup",
    "ProcessJoinGroup",
    "ProcessSyncGroup",
    "CompleteJoin",
    "RequestRejoin",
    "ExpireInitialDelay",
)
"""Steps that nobody sees: members' side, and what changes nothing that is observed, such as the
JoinGroup of a member that is told the generation that it is in, or a longer initial delay."""
_FORGETS = {22, 25, 82}
"""ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID: the member gives up its generation."""
_COST_THE_ID = {25, 82}
"""Those of them after which it no longer has its id either."""

_FREE = {
    "RequireKnownMemberId": "TRUE",
    "ProtocolSets": "{}",
    "Commits": "TRUE",
    "Heartbeats": "TRUE",
    "Timeouts": "TRUE",
    "Losses": "TRUE",
    "LateRequests": "TRUE",
    "Restarts": "TRUE",
    "Leaves": "TRUE",
    "Rejoins": "TRUE",
    "FailOvers": "TRUE",
    "StoreFailures": "TRUE",
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


def group_traces(recording: Path) -> Iterator[RecordedTrace]:
    """The events of each group that the agent saw, in their order by the one clock.

    Raises DataError if the folder is no recording.
    """
    report = manifest(recording)
    observed: dict[str, list[RecordedLine]] = {}
    for seen in agents_lines(recording):
        if "group" in seen.body:
            of_group = observed.setdefault(seen.body["group"], [])
            of_group.append(replace(seen, time=seen.body["entered"]))
    exchanges = _exchanges(recording)
    for group in sorted(observed):
        coordinators = terms(observed[group], report)
        if any(observation.seen.body["state"] for observation in coordinators.observations):
            yield _trace(report, group, coordinators, exchanges.get(group, []))


def _trace(
    report: JsonObject, group: str, of_group: Terms, all_exchanges: Sequence[_Exchange]
) -> RecordedTrace:
    observed = [observation.seen for observation in of_group.observations]
    names = _MemberIdNames.of(observed)
    exchanges = list(_of_the_group(all_exchanges, of_group, names))
    crashes = list(_crashes(report, exchanges, names))
    restarts = [*crashes, *_forgetful(exchanges, names, crashes)]
    events = [
        *_steps(of_group.observations, exchanges, names),
        *_sends(exchanges, names, restarts),
    ]
    # An answer leaves before the agent's stamp at the section's exit: the entry is what orders.
    events.sort(key=lambda event: event["time"])
    ordered = [{"trace": group, **event, "time": event["time"] / 1e9} for event in events]
    constants = {**_FREE, **_constants(observed, exchanges, names)}
    model = REWRITTEN if int(str(report.get("kafka", "0")).partition(".")[0]) >= 4 else MODEL
    return RecordedTrace(group, model, tuple(ordered), constants, SILENT, steps=4)


def _of_the_group(
    exchanges: Iterable[_Exchange], of_group: Terms, names: _MemberIdNames
) -> Iterator[_Exchange]:
    """The requests that the group's coordinator had to do with, or nobody.

    Not what only a broker saw that is none any longer, nor what a member says under an id that such
    a one has given it, or after such a one has taken its id. What the coordinator was asked and
    another one answered is not answered. Nor is what the group has handled, and was told that it
    had moved: who waits for a join when its coordinator resigns is answered NOT_COORDINATOR.
    """
    handled = list(_handled(of_group.observations, names))
    for exchange in exchanges:
        member = exchange.request.body["body"].get("memberId")
        beside = exchange.api in _BESIDE
        stranger = member not in names.ids if member else member == "" and beside
        if stranger or of_group.of_a_zombie(exchange.node, exchange.request.time):
            continue
        moved = bool(exchange.errors & _ELSEWHERE) and any(map(exchange.may_be, handled))
        if not (
            moved
            or of_group.answered_by_a_zombie(
                exchange.node, exchange.request.time, exchange.answered
            )
        ):
            yield exchange
        elif not beside:
            yield _Exchange(exchange.request)


@dataclass(frozen=True, slots=True)
class _HandledRequest:
    """What a request did to a group: at which broker, when, of which kind, whose."""

    node: str
    time: int
    step: str
    process: str


def _handled(
    observations: Iterable[GroupObservation], names: _MemberIdNames
) -> Iterator[_HandledRequest]:
    for observation in observations:
        operation, _, arguments = observation.seen.body["operation"].partition(" ")
        process = _whose(arguments, names)
        if operation in _HANDLERS and process is not None:
            yield _HandledRequest(
                observation.seen.node, observation.seen.time, _HANDLERS[operation], process
            )


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A member's request and the answer, if one came."""

    request: RecordedLine
    response: RecordedLine | None = None

    @property
    def node(self) -> str:
        """Which broker was asked."""
        return self.request.node.rpartition("->")[2]

    @property
    def api(self) -> str:
        """What was asked."""
        result: str = self.request.body["api"]
        return result

    @property
    def client(self) -> str:
        """The client id of who asked."""
        result: str = self.request.body["client"]
        return result

    def waits(self, time: int) -> bool:
        """Whether it has no answer by then."""
        return self.response is None or time < self.answered

    def may_be(self, handled: _HandledRequest) -> bool:
        """Whether this is the request that was handled: at its broker, before it was answered."""
        asked = (self.node, f"Handle{self.api}", self.client)
        in_time = self.request.time <= handled.time <= self.answered
        return in_time and asked == (handled.node, handled.step, handled.process)

    @property
    def member(self) -> str:
        """Under which id it was asked."""
        result: str = self.request.body["body"].get("memberId") or ""
        return result

    @property
    def answered(self) -> int:
        """When; of what was not answered, when it was asked."""
        return (self.response or self.request).time

    @property
    def errors(self) -> set[int]:
        """What the answer said was wrong."""
        body = self.response.body["body"] if self.response else {}
        if "errorCode" in body:
            return {body["errorCode"]} - {0}
        parts = [part for topic in body.get("topics", ()) for part in topic["partitions"]]
        return {part["errorCode"] for part in parts} - {0}


def _exchanges(recording: Path) -> dict[str, list[_Exchange]]:
    """Each group's requests at the tap, in their order."""
    path = recording / "tap.ndjson"
    result: dict[tuple[int, int], _Exchange] = {}
    for number, line in read_lines(path) if path.is_file() else ():
        body = line.get("body")
        if not body or line.get("api") not in (*_SENT, *_BESIDE):
            continue
        check_taps_line(f"{path}:{number}", line)
        seen = RecordedLine(line["time"], f"tap.ndjson:{number}", line["link"], line)
        key = (line["connection"], line["correlation"])
        if line["direction"] == "request":
            result[key] = _Exchange(seen)
        elif line["direction"] == "response" and key in result:
            result[key] = _Exchange(result[key].request, seen)
    groups: dict[str, list[_Exchange]] = {}
    for item in sorted(result.values(), key=lambda item: item.request.time):
        groups.setdefault(item.request.body["body"].get("groupId", ""), []).append(item)
    return groups


@dataclass(frozen=True, slots=True)
class _MemberIdNames:
    """Member ids by the specification's names: `m1-1` is the first id of client `m1`."""

    ids: Mapping[str, str]
    instances: Mapping[str, str]
    """Client id -> group.instance.id, or `none`."""

    @classmethod
    def of(cls, observed: Iterable[RecordedLine]) -> _MemberIdNames:
        """Numbered in the order in which the coordinator came to know them."""
        ids: dict[str, str] = {}
        instances: dict[str, str] = {}
        counts: dict[str, int] = {}
        for seen in sorted(observed, key=lambda item: item.time):
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
        return {"#set": sorted(self.ids[item] for item in real)}


def _client_of(member_id: str) -> str:
    """The coordinator makes a dynamic member's id of its client id and a uuid."""
    return re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "", member_id)


def _steps(
    observations: Sequence[GroupObservation], exchanges: Sequence[_Exchange], names: _MemberIdNames
) -> Iterator[JsonObject]:
    """One event per observation: the coordinator's variables after a step, and which it may be."""
    before: JsonObject | None = None
    last = 0
    for observation in observations:
        seen = observation.seen
        state = _state(_settled(seen.body["state"]), names)
        if observation.takes_over:
            before = state if observation.loaded else _state(None, names)
            yield _fail_over(observation, before, last, exchanges)
        last = seen.time
        if before == state:
            continue  # the leader's SyncGroup came: it counts when its record is stored
        before = state
        action = _action(seen.body["operation"], names)
        yield {"time": seen.time, "source": seen.source, "action": action, "state": state}


def _fail_over(
    item: GroupObservation, state: JsonObject, last: int, exchanges: Iterable[_Exchange]
) -> JsonObject:
    """Another coordinator. One that finds nothing in the log shows it with its first answer."""
    time = item.seen.time
    if not item.loaded:
        asked = (
            exchange.request.time - 1
            for exchange in exchanges
            if exchange.response is not None
            and exchange.node == item.seen.node
            and exchange.request.time > last
            and not exchange.errors & _ELSEWHERE
        )
        time = min([time, *asked])
    return {
        "time": time,
        "source": item.seen.source,
        "action": {"name": "FailOver", "args": []},
        "state": state,
    }


def _settled(state: JsonObject | None) -> JsonObject | None:
    """The state without what waits only for the group's record to be stored.

    That is a SyncGroup of the leader, and the JoinGroup of a static member that takes its place
    again in a stable group. The specification handles each in one step; Kafka notes it first and
    answers in the append's callback.
    """
    if state and state["state"] == "Stable":
        members = state["members"].items()
        return {
            **state,
            "members": {real: {**item, "awaitingJoin": False} for real, item in members},
        }
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


def _action(operation: str, names: _MemberIdNames) -> JsonObject | list[JsonObject]:
    """The action of a section: of the request that it is part of, else one of the timers', or of
    the append of an assignment that is refused, as when the offsets partition has another leader.
    """
    name, _, arguments = operation.partition(" ")
    if name not in _HANDLERS:
        handled = [{"name": item} for item in sorted({*_HANDLERS.values(), *_LATE.values()})]
        refused = {"name": "FailToStoreAssignment"}
        return [*handled, *_TIMERS, refused, {"name": "DeleteGroup", "args": []}]
    process = _whose(arguments, names)
    handled_as = [_HANDLERS[name], *filter(None, [_LATE.get(_HANDLERS[name])])]
    return [{"name": item, "args": [process]} for item in handled_as]


def _whose(arguments: str, names: _MemberIdNames) -> str | None:
    """The process that the arguments of an operation tell of, a JSON list, or nothing."""
    report = json.loads(arguments) if arguments else []
    return next(filter(None, (_process(value, names) for value in report)), None)


def _process(value: object, names: _MemberIdNames) -> str | None:
    """The process that an argument tells of: by its member id or its client id."""
    if isinstance(value, dict):
        result = (_process(value.get(key), names) for key in ("memberId", "clientId"))
        return next(filter(None, result), None)
    if not isinstance(value, str):
        return None
    return names.client(value) or (value if value in names.instances else None)


def _sends(
    exchanges: Sequence[_Exchange], names: _MemberIdNames, restarts: Sequence[JsonObject]
) -> Iterator[JsonObject]:
    """What members did, as far as the tap tells; what no coordinator took is left out."""
    step = [
        exchange
        for exchange in exchanges
        if exchange.client in names.instances and not exchange.errors & _ELSEWHERE
    ]
    yield from _in_turn([item for item in step if item.api not in _BESIDE], restarts)
    moments = [(restart["action"]["args"][0], restart["time"]) for restart in restarts]
    for item in _first_refused(exchanges):
        # Who restarts waits for no answer any longer.
        gone = _between(moments, item.client, item.request.time, item.answered)
        if item in step and item.response is not None and not gone:
            yield _step(item.request, f"Send{item.api}", item.client)
            processed = replace(item.response, time=_processed(item, step))
            yield _step(processed, f"Process{item.api}", item.client)


def _processed(refused: _Exchange, exchanges: Iterable[_Exchange]) -> int:
    """When a member has processed an answer: while it asks under its id, nothing has cost it that.

    kafka-python sends commits and JoinGroup from two threads: the answer may come in between.
    """
    if not refused.errors & _COST_THE_ID:
        return refused.answered
    joins = (
        exchange.request.time + 1
        for exchange in exchanges
        if (exchange.api, exchange.client, exchange.member)
        == ("JoinGroup", refused.client, refused.member)
    )
    return max([refused.answered, *joins])


def _in_turn(
    exchanges: Iterable[_Exchange], restarts: Iterable[JsonObject]
) -> Iterator[JsonObject]:
    """Requests of which a member has one under way: what it gave up before the next one is told."""
    # Who joins without its id has restarted just before that request.
    moments: list[tuple[int, int, JsonObject | _Exchange]] = [
        *((restart["time"], 0, restart) for restart in restarts),
        *((exchange.request.time, 1, exchange) for exchange in exchanges),
    ]
    last: dict[str, _Exchange] = {}
    for time, _, moment in sorted(moments, key=lambda item: item[:2]):
        if isinstance(moment, _Exchange):
            before = last.get(moment.client)
            if before is not None and (before.api, moment.api) == ("LeaveGroup", "SyncGroup"):
                continue  # a Java consumer was closed, and its JoinGroup answered after that
            if before is not None and _is_given_up(before, moment):
                yield _giving_up(before, time, moment.request.source)
            last[moment.client] = moment
            yield _step(moment.request, _SENT[moment.api], moment.client)
        else:
            before = last.pop(moment["action"]["args"][0], None)
            if before is not None and before.api == "JoinGroup" and before.waits(time):
                yield _giving_up(before, time, moment["source"])
            yield moment


def _is_given_up(before: _Exchange, after: _Exchange) -> bool:
    """Whether a member waits no longer for what it has asked, as it asks for something else.

    A JoinGroup that succeeds is followed by a SyncGroup; if not, its answer came to nobody.
    """
    if before.api == "LeaveGroup" or after.api == "SyncGroup":
        return False
    in_vain = before.api == "JoinGroup" and not before.errors
    return in_vain or before.waits(after.request.time)


def _giving_up(given_up: _Exchange, time: int, source: str) -> JsonObject:
    """Request or answer may be lost; a JoinGroup may also be handled later on."""
    names = ["LoseMessage", *(["GiveUpJoinGroup"] if given_up.api == "JoinGroup" else [])]
    actions = [{"name": name, "args": [given_up.client]} for name in names]
    return {"time": time, "source": source, "action": actions}


def _between(moments: Iterable[tuple[str, int]], client: str, since: int, until: int) -> bool:
    return any(item == client and since <= time <= until for item, time in moments)


def _first_refused(exchanges: Sequence[_Exchange]) -> list[_Exchange]:
    """Refused heartbeats and commits, without those that say what was said already.

    The specification lets a member have one of them in flight, clients have several: of two at once
    the one that the group answers first counts. Once a member has to join again, what it is refused
    before it asks to changes nothing.
    """
    joins: dict[str, list[int]] = {}
    for exchange in exchanges:
        if exchange.api == "JoinGroup":
            joins.setdefault(exchange.client, []).append(exchange.request.time)
    beside = (exchange for exchange in exchanges if exchange.api in _BESIDE)
    result: list[_Exchange] = []
    last: dict[str, _Exchange] = {}
    for exchange in sorted(beside, key=lambda item: item.answered):
        client = exchange.client
        refused = exchange.errors - _ELSEWHERE
        if refused and not _is_known(last.get(client), exchange, joins.get(client, [])):
            last[client] = exchange
            result.append(exchange)
    return result


def _is_known(before: _Exchange | None, after: _Exchange, joins: Iterable[int]) -> bool:
    """Whether the member knows already; not if it has asked to join since, and only then asked.

    kafka-python's heartbeat thread sends what it has begun, under an id that the answer to a
    commit has just cost its member; the JoinGroup without an id is sent meanwhile.
    """
    if before is None:
        return False
    if after.request.time <= before.answered:
        return True
    if before.errors & _COST_THE_ID and before.member == after.member:
        return True
    joined = any(before.answered < join < after.request.time for join in joins)
    return not joined and bool(before.errors & _FORGETS or after.errors == before.errors)


def _step(seen: RecordedLine, name: str, process: str) -> JsonObject:
    return {
        "time": seen.time,
        "source": seen.source,
        "action": {"name": name, "args": [process]},
    }


def _crashes(
    report: JsonObject, exchanges: Sequence[_Exchange], names: _MemberIdNames
) -> Iterator[JsonObject]:
    """Members that the recording's faults killed: they forget all, started again or not.

    Who has not asked to join, or has left since, has nothing to forget.
    """
    asked = [exchange for exchange in exchanges if not exchange.errors & _ELSEWHERE]
    for fault in report.get("faults", []):
        if fault["action"] != "kill-client" or fault.get("client") not in names.instances:
            continue
        client, time = fault["client"], fault["time"]
        sent = [item.api for item in asked if item.client == client and item.request.time < time]
        if "JoinGroup" in sent and sent[-1] != "LeaveGroup":
            action = {"name": "RestartProcess", "args": [client]}
            yield {"time": time, "source": "recording.json", "action": action}


def _forgetful(
    exchanges: Iterable[_Exchange], names: _MemberIdNames, crashes: Iterable[JsonObject]
) -> Iterator[JsonObject]:
    """Members that join without the id that they had, though nobody refused it.

    librdkafka does so when it has heard nothing of a coordinator for its session timeout; a static
    member that was closed in order, when it is started again.
    """
    holding: set[str] = set()
    left: set[str] = set()
    moments: list[tuple[int, str, _Exchange | None]] = [
        (crash["time"], crash["action"]["args"][0], None) for crash in crashes
    ]
    for item in exchanges:
        moments.append((item.request.time, item.client, item))
    for _, client, exchange in sorted(moments, key=lambda moment: moment[0]):
        if exchange is None or exchange.errors & _FORGETS:
            holding.discard(client)
            continue
        body = exchange.request.body["body"]
        if exchange.api == "LeaveGroup":
            holding.discard(client)
            left.add(client)
        elif client in left and exchange.api != "JoinGroup":
            continue  # a Java consumer was closed, and its JoinGroup answered after that
        elif client in holding and not body.get("memberId", ""):
            holding.discard(client)
            yield _step(exchange.request, "RestartProcess", client)
        elif body.get("memberId") and client in names.instances:
            holding.add(client)
        if exchange.api == "JoinGroup":
            left.discard(client)


def _state(state: JsonObject | None, names: _MemberIdNames) -> JsonObject:
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


def _constants(
    observed: Iterable[RecordedLine], exchanges: Iterable[_Exchange], names: _MemberIdNames
) -> dict[str, str]:
    """GroupMembership's constants: what the recording names.

    Member ids come in the order in which they were given out. Assignors sort by the real ones; but
    assignments are not observed, and one partition is as good as several.
    """
    states = [seen.body["state"] for seen in observed if seen.body["state"]]
    by_client = _protocols(states, exchanges)
    protocols = sorted(set().union(*by_client.values()))
    last = max(state["generation"] for state in states)
    clients = sorted(names.instances)
    ids = [
        f'[id |-> "{name}", member |-> "{names.client(real)}"]' for real, name in names.ids.items()
    ]
    return {
        "Members": _set(clients),
        "GivenUp": _cases({client: f'"given up by {client}"' for client in clients}),
        "InstanceOf": _cases({client: f'"{names.instances[client]}"' for client in clients}),
        "MemberIds": f"<<{', '.join(ids)}>>",
        "Generations": f"0..{last + 1}",
        "InitialDelays": str(len(names.ids)),
        "Partitions": "0..0",
        "Protocols": _set(protocols),
        "MaxSize": str(len(names.ids) + 1),
        "ProtocolsOf": _cases(
            {name: _set(sorted(by_client.get(name) or protocols)) for name in clients}
        ),
    }


def _protocols(states: Iterable[JsonObject], exchanges: Iterable[_Exchange]) -> dict[str, set[str]]:
    """The protocols of each client, by what it asked with, and what the coordinator knows of it.

    Of a group that was loaded from the log, members have the selected protocol only; who was no
    member yet has none.
    """
    result: dict[str, set[str]] = {}
    for state in states:
        for member in state["members"].values():
            result.setdefault(member["clientId"], set()).update(member["protocols"])
    for exchange in exchanges:
        report: Sequence[JsonObject] = exchange.request.body["body"].get("protocols", ())
        result.setdefault(exchange.client, set()).update(protocol["name"] for protocol in report)
    return result


def _set(texts: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{text}"' for text in texts) + "}"


def _cases(values: Mapping[str, str]) -> str:
    """A function as TLA+ writes it: `"m1" :> 1 @@ "m2" :> 2` without the TLC module."""
    cases = " [] ".join(f'p = "{key}" -> {value}' for key, value in values.items())
    return f"[p \\in {_set(values)} |-> CASE {cases}]"
