"""Drives any broker's group coordinator through its port, along GroupMembership.tla's actions.

The members are ours (those of `systems/group`): a step of a member is taken in this process, and
where the specification lets the coordinator handle a request, it goes out on a connection of its
own. Seen are the answers, which requests are parked, and DescribeGroups.

Requests on two connections may overtake one another, and an answer takes its time: so an
observation that the specification does not allow is made again for a while (`patience`).
"""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from kio.schema.errors import ErrorCode

from conformance.errors import UserError
from conformance.kafka.entities import Entity, make, milliseconds, newest
from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.shared.group.exchange import Exchange, error_name, kind_of, partitions
from conformance.systems.shared.group.observation import OF_PROCESSES, GroupObserver
from conformance.systems.shared.group.port_member import PortMember
from conformance.systems.shared.group.settings import NO_INSTANCE, TOPIC, GroupSettings
from conformance.systems.shared.group.steps import (
    OF_A_PROCESS,
    REQUESTS_OF_CHANNEL,
    REQUESTS_OF_HEARTBEAT,
)
from conformance.systems.tolerance import Tolerance
from conformance.systems.wire.address import Address
from conformance.systems.wire.admin import (
    OFFSETS_TOPIC,
    commit,
    delete_group,
    delete_groups,
    delete_topic,
    describe_group,
    fetch_offsets,
    listed_state,
    make_topic,
    refusing_appends,
)
from conformance.systems.wire.connection import Pending
from conformance.systems.wire.failover import fail_over
from conformance.systems.wire.ids import MemberIds
from conformance.systems.wire.leadership import Leaders, beside
from conformance.systems.wire.pace import LONGEST_PAUSE, Pace
from conformance.systems.wire.port import COORDINATOR_SECONDS, Port, Ports, decoded
from conformance.systems.wire.security import Security
from conformance.systems.wire.timers import (
    REBALANCES,
    SESSIONS,
    PathTimers,
    foresight,
    not_drivable,
)
from conformance.systems.wire.turns import Turns, turns_of
from conformance.tla import Action, Value

_HEARTBEATS_PER_SESSION = 4
_STABLE, _DEAD = "Stable", "Dead"
_WITHOUT_MEMBERS = frozenset({_DEAD, "Empty"})
_MOVING = frozenset(
    {
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
    }
)
_REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})
_LAST_ONCE = 3
"""The newest JoinGroup with which a dynamic member joins at once, without MEMBER_ID_REQUIRED."""
_DELETED_AT_ONCE = 100
_LATE_MS = 20
"""How late a timer of a broker may be that nothing shows."""
_LAST_LOOK_SECONDS = 0.02
"""Before the initial delay is over: what is seen until then was true while it ran."""
SPECIFICATION = "GroupMembership"
"""The root module that says what the actions are."""


@dataclass(frozen=True, slots=True)
class MemberSession:
    """What keeps a member's session alive, and when (monotonic clock, s) it last did."""

    heartbeat: Entity
    kept_alive: float


@dataclass(frozen=True, slots=True)
class Demands:
    """What a model asks of a broker besides its groups."""

    commits: bool
    """A topic, whose offsets are committed."""
    fail_overs: bool
    """Another broker, to which the user's command moves the coordinator."""
    store_failures: bool
    """A log that refuses an append."""


def _described(group_id: str, state: str) -> Entity:
    """A group without members, as DescribeGroups would tell of it."""
    return make(
        newest("describe_groups", "response").DescribedGroup,
        error_code=ErrorCode.none,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )


_UNSEEN = _described("", "")
"""Of a broker that describes no groups."""


def _turns(address: Address, security: Security) -> Turns:
    return turns_of(f"{address} {address.fail_over}", partial(fail_over, address, security))


class WireSystem:
    """One group of a broker at a time; a new one for each test."""

    variables = ("groupState", "members", "protocolName", "assignment", *OF_PROCESSES)
    sometimes = frozenset({"groupState", "members", "protocolName", "assignment"})
    """DescribeGroups tells the last two of a Stable group only; a broker may lack it altogether."""

    def __init__(
        self,
        settings: GroupSettings,
        address: Address,
        security: Security,
        demands: Demands,
        tolerance: Tolerance,
    ) -> None:
        self.tolerance = tolerance
        self._settings = settings
        self._address = address
        self._demands = demands
        self._turns = _turns(address, security) if demands.fail_overs else None
        self._in_turn = False
        self._early_fail_over = self._failed_over = False
        self._settled = False
        """Whether a coordinator has answered, and what it writes is replicated: when a broker has
        just started it loads yet, and nobody follows an offsets topic that has just been made."""
        self._observer = GroupObserver(settings)
        self._ports = Ports(address, security)
        self._entry = self._coordinator = self._ports.at(address.host, address.port)
        self._leaders = Leaders(self._entry, OFFSETS_TOPIC)
        self._run = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self._made: list[tuple[Port, str]] = []
        self._topic = self._own_topic() if demands.commits else TOPIC
        self._processes: dict[str, PortMember] = {}
        self._group_id = ""
        self._foresight = PathTimers()
        self._pace = Pace(address)
        self._delayed_since: float | None = None
        self._phase_since = self._pace.seen_at
        self._sessions: dict[str, MemberSession] = {}
        self._asked: dict[str, float] = {}
        self._phase = self._overslept = ""
        self._others: Mapping[str, Callable[[], None]] = {
            "ExpireInitialDelay": self._wait_for_initial_delay,
            "DeleteGroup": self._delete_group,
            "FailOver": self._fail_over,
            **dict.fromkeys(REBALANCES, self._wait_for_rebalance),
        }

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A group id that nobody has used, new processes; what was before is left behind."""
        self._leave_behind()
        self._end_turn()
        if self._turns is not None:
            self._turns.begin(late=self._early_fail_over)
            self._in_turn = True
        group_id = f"kconform-{os.getpid()}-{self._run}-{next(self._numbers)}"
        self._coordinator = self._ports.at(*self._entry.find_coordinator(group_id))
        self._group_id = group_id
        self._ids = MemberIds(self._settings)
        self._processes = {
            name: PortMember(name, self._settings) for name in self._settings.members
        }
        self._waiting: list[tuple[PortMember, Exchange, Pending]] = []
        self._joined_last = ""
        self._new_ids: dict[str, str] = {}
        self._group: Entity | None = None
        self._sessions, self._asked, self._delayed_since = {}, {}, None
        self._phase = ""
        self._overslept = self._listed = ""
        self._failed_over = False
        if self._demands.fail_overs or not self._settled:
            self._await(self._is_coordinated, "after it was found")
        self._leaders.look(again=self._demands.fail_overs)
        if not self._settled:
            self._await(self._replicates, "after it was found")
            self._settled = True
        self._pace.begin()
        self._phase_since = self._pace.seen_at
        self._coordinator.slowest = 0.0

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        name, args = action
        self._pace.step()
        if name in OF_A_PROCESS:
            OF_A_PROCESS[name](self._processes[str(args[0])], args)
        elif name in REQUESTS_OF_CHANNEL:
            process = self._processes[str(args[0])]
            self._submit(process, process.channel)
        elif name in REQUESTS_OF_HEARTBEAT:
            process = self._processes[str(args[0])]
            self._submit(process, process.heartbeat)
        elif name in SESSIONS:
            self._group = None
            self._wait_for_session(str(args[0]), seen=name == "ExpireSession")
        elif name == "FailToStoreAssignment":
            process = self._processes[str(args[0])]
            probe = f"kconform-{os.getpid()}-{self._run}-probe"
            with refusing_appends(self._coordinator, probe):
                self._submit(process, process.channel)
                self._coordinator.await_all()
        elif name in self._others:
            self._group = None
            self._others[name]()
        else:
            raise ActionRefused(f"{name} cannot be brought about through a port")
        self._keep_alive()
        self._pace.window = self.patience

    def observe(self) -> Mapping[str, Value]:
        """What can be seen now; what nothing can have changed is not asked for again."""
        looking = time.monotonic()
        self._take_in()
        if self._group is None:
            self._group = self._describe(self._group_id)
        self._pace.looked_at, self._pace.seen_at = looking, time.monotonic()
        self._park()
        views = tuple([process.view() for process in self._processes.values()])
        return {**self._of_group(self._group), **self._observer.of_processes(views)}

    def foresee(self, actions: Sequence[Action]) -> str:
        """Which timers the next test lets expire; why it cannot be driven, if it cannot."""
        self._foresight = foresight(actions, self._address)
        names = [action.name for action in actions]
        first = names.index("FailOver") if "FailOver" in names else 0
        # While the initial delay runs nothing may be waited for.
        self._early_fail_over = first > 0 and "ExpireInitialDelay" not in names[:first]
        return not_drivable(actions, self._address)

    # ---- LeavesOut, Patient, Limited, Closeable --------------------------------------------

    @property
    def lanes(self) -> int:
        """Groups side by side; one where the whole log is made to refuse appends."""
        return 1 if self._demands.store_failures else self._address.groups

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._pace.be_alone()

    @property
    def patience(self) -> float:
        """Seconds for which it is worth to look again: not beyond the end of an initial delay that
        the path has not come to, for what is seen afterwards says nothing of this step."""
        if self._delayed_since is None:
            return self._pace.patience
        over = self._delayed_since + self._address.initial_delay / 1000
        left = over - _LAST_LOOK_SECONDS - time.monotonic()
        return max(0.0, min(self._pace.patience, left))

    def look_again(self, seconds: float) -> Mapping[str, Value]:
        """Observe when an answer has arrived; at the latest after a pause that doubles each time.

        DescribeGroups may have overtaken a request that is parked now: nothing will arrive then.
        """
        self._keep_alive()
        self._coordinator.receive(min(seconds, self._pace.next_pause()))
        self._group = None
        return self.observe()

    def close(self) -> None:
        """Delete the groups that were made, and close the connections.

        A broker that fails even at that has been told of already, by the test before.
        """
        try:
            with suppress(SystemFailed):
                self._leave_behind()
                self._delete_groups()
                if self._topic != TOPIC:
                    delete_topic(self._entry, self._topic)
        finally:
            self._end_turn()
            for port in self._ports:
                port.close()

    # ---- requests --------------------------------------------------------------------------

    @property
    def late(self) -> str:
        """Which timer of the broker may have run out, although the path had not come to it, when
        it was last looked; that too little time was left for what was looked for; or that the
        coordinator moved by itself."""
        slow = self._pace.slow(self._coordinator.slowest)
        return slow or self._timer_over() or self._overslept or self._moved_by_itself()

    def _moved_by_itself(self) -> str:
        return "" if self._failed_over else self._leaders.changed()

    def _timer_over(self) -> str:
        now, foresight = self._pace.seen_at, self._foresight
        if self._delayed_since is not None:
            over = now - self._delayed_since
            if over * 1000 > self._address.initial_delay:
                return f"the initial delay was over after {over:.2f} s"
        for id, asked in self._asked.items():
            if id not in self._sessions and (now - asked) * 1000 > foresight.sessions[id]:
                return f"the session of {id} was over after {now - asked:.2f} s"
        running = self._phase in _REBALANCING and foresight.rebalance
        if running and (now - self._phase_since) * 1000 > foresight.rebalance:
            return f"the rebalance was over after {now - self._phase_since:.2f} s"
        for id, session in self._sessions.items():
            if (now - session.kept_alive) * 1000 > self._address.session:
                return (
                    f"nothing kept the session of {id} alive for {now - session.kept_alive:.2f} s"
                )
        return ""

    def _submit(self, process: PortMember, exchange: Exchange | None) -> None:
        if exchange is None or not exchange.is_under_way:
            raise ActionRefused(f"no request of {process.name} is under way")
        message = exchange.message
        if kind_of(message) == "JoinGroupRequest":
            self._joined_last = process.name
            self._new_ids.pop(process.name, None)
            id = self._ids.of_the_spec(message.member_id, process.name)
            if self._group is not None and self._group.group_state in _WITHOUT_MEMBERS:
                self._delayed_since = time.monotonic()
            message = self._foresight.asking(message, id)
            if id in self._foresight.sessions:
                self._asked[id] = time.monotonic()
            if self._settings.initial_delays:
                delays = self._settings.initial_delays + 1
                longest = milliseconds(delays * self._address.initial_delay)
                message = replace(message, rebalance_timeout=longest)
        self._group = None
        outgoing = self._ids.outgoing(message, self._group_id, self._topic)
        pending = self._coordinator.submit(outgoing, process.name, process.at_most(message))
        if exchange.abandoned:
            process.channel = None
        else:
            exchange.parked_under = ""  # until it is known
            self._waiting.append((process, exchange, pending))

    def _take_in(self) -> None:
        """The answers that have arrived, those to joins first: they name ids that others use."""
        for port in self._ports:
            port.receive()
        arrived = [pair for pair in self._waiting if pair[2].body is not None]
        if not arrived:
            return
        self._waiting = [pair for pair in self._waiting if pair[2].body is None]
        answers = [(process, exchange, decoded(sent)) for process, exchange, sent in arrived]
        for process, _, answer in answers:
            if kind_of(answer) == "JoinGroupResponse":
                self._learn(answer.member_id, process.name)
                self._begin_session(answer, process.name)
        for process, exchange, answer in answers:
            if kind_of(answer) == "OffsetCommitResponse":
                self._fetch_what_was_committed(exchange, answer)
            if exchange in (process.channel, process.heartbeat):
                exchange.answer(_as_asked(exchange, self._ids.incoming(answer)))

    def _park(self) -> None:
        """Say under which id a request without an answer is parked, once that can be seen."""
        for process, exchange, _ in self._waiting:
            if exchange.parked_under == "":
                request = exchange.message
                member_id = getattr(request, "member_id", "")
                exchange.parked_under = member_id or self._new_id(process.name)

    def _new_id(self, process: str) -> str:
        """Ours for the id under which a process's first JoinGroup is parked: DescribeGroups shows
        it; where there is none, it is the one that comes next."""
        if self._coordinator.offers("describe_groups"):
            return self._new_ids.get(process, "")
        id = self._ids.of_the_spec("", process)
        return self._settings.real_ids().get(id, "")

    def _learn(self, theirs: str, process: str) -> None:
        if theirs and not self._ids.knows(theirs):
            self._ids.give(theirs, process)

    # ---- the group -------------------------------------------------------------------------

    def _describe(self, group_id: str) -> Entity:
        if not self._coordinator.offers("describe_groups"):
            return _UNSEEN
        group = describe_group(self._coordinator, group_id)
        if group.error_code is ErrorCode.group_id_not_found:
            group = _described(group_id, _DEAD)
        if group.error_code is not ErrorCode.none:
            raise SystemFailed(f"DescribeGroups was answered {error_name(group.error_code)}")
        for member in group.members:
            if self._joined_last and not self._ids.knows(member.member_id):
                self._new_ids[self._joined_last] = self._ids.give(
                    member.member_id, self._joined_last
                )
        if group.group_state != self._phase:
            self._listed = self._listed_otherwise(group)
            self._phase_since = self._pace.looked_at  # at the earliest
            self._phase = "" if self._listed else group.group_state
        return self._ids.described(group)

    def _listed_otherwise(self, group: Entity) -> str:
        """What ListGroups says of a Stable group, if that is not what DescribeGroups says.

        Only of Stable groups: it lists those of all tests that run, which takes its time.
        """
        if group.group_state != _STABLE or not self._coordinator.offers("list_groups"):
            return ""
        listed = listed_state(self._coordinator, group.group_id)
        if listed is None:
            return "no such group"
        return "" if listed in ("", group.group_state) else listed

    def _of_group(self, group: Entity) -> dict[str, Value]:
        if group is _UNSEEN:
            return {}
        observer, other = self._observer, self._listed
        state = f"{group.group_state}, and ListGroups says {other}" if other else group.group_state
        seen: dict[str, Value] = {
            "groupState": state,
            "members": observer.id_set(member.member_id for member in group.members),
        }
        if group.group_state == _STABLE:
            seen["protocolName"] = group.protocol_data or NO_INSTANCE
            seen["assignment"] = observer.by_id(
                (member.member_id, partitions(member.member_assignment)) for member in group.members
            )
        return seen

    def _own_topic(self) -> str:
        """A topic whose offsets the members commit; what they call it is theirs."""
        name = f"kconform-{os.getpid()}-{self._run}"
        made = make_topic(self._entry, name, self._settings.partitions)
        return TOPIC if made is None else name

    def _fetch_what_was_committed(self, exchange: Exchange, answer: Entity) -> None:
        """OffsetFetch must give what a commit was told is stored."""
        if not self._coordinator.offers("offset_fetch"):
            return
        (asked,), (report,) = exchange.message.topics, answer.topics
        stored = {
            int(each.partition_index): int(each.committed_offset)
            for each, result in zip(asked.partitions, report.partitions, strict=True)
            if result.error_code is ErrorCode.none
        }
        if not stored:
            return
        error, result = fetch_offsets(self._coordinator, self._group_id, self._topic, stored)
        if result != stored:
            raise SystemFailed(
                f"OffsetCommit of {self._offsets(stored)} was answered NONE, and OffsetFetch gives "
                f"{self._offsets(result)} ({error_name(error)})"
            )

    def _offsets(self, offsets: Mapping[int, int]) -> str:
        named = [f"{self._topic}-{partition}: {offset}" for partition, offset in offsets.items()]
        return ", ".join(named) or "nothing"

    def _end_turn(self) -> None:
        if self._turns is not None and self._in_turn:
            self._in_turn = False
            self._turns.end()

    def _fail_over(self) -> None:
        """Once all tests that run side by side are ready for it."""
        assert self._turns is not None, "FailOver is beyond reach without a command"
        self._failed_over = True
        self._turns.wait()
        for port in self._ports:
            port.renew()
        self._await(lambda: self._is_coordinated() and self._replicates(), "after a fail-over")

    def _await(self, there: Callable[[], bool], since: str) -> None:
        until = time.monotonic() + COORDINATOR_SECONDS
        while not there():
            if time.monotonic() > until:
                raise SystemFailed(f"no coordinator {COORDINATOR_SECONDS:.0f} s {since}")
            time.sleep(0.05)

    def _is_coordinated(self) -> bool:
        """Whether somebody coordinates the group now: who was elected has to load it first."""
        for port in self._ports:
            try:
                self._coordinator = self._ports.at(*port.find_coordinator(self._group_id))
                if not self._coordinator.offers("describe_groups"):
                    return True
                group = describe_group(self._coordinator, self._group_id)
            except (SystemFailed, UserError):
                port.renew()  # that broker is gone: ask another one
                continue
            return group.error_code not in _MOVING
        return False

    def _replicates(self) -> bool:
        """Whether what a new coordinator writes is replicated: until it is, DescribeGroups of the
        rewrite shows what was before (it reads what is committed)."""
        if not self._coordinator.offers("offset_commit"):
            return True
        probe = beside(self._group_id, self._leaders.count)
        error = commit(self._coordinator, probe)
        if error is ErrorCode.none:
            self._made.append((self._coordinator, probe))
        return error not in _MOVING

    def _delete_groups(self) -> None:
        for port in self._ports:
            made = [group for owner, group in self._made if owner is port]
            for start in range(0, len(made), _DELETED_AT_ONCE):
                delete_groups(port, tuple(made[start : start + _DELETED_AT_ONCE]))

    def _delete_group(self) -> None:
        error = delete_group(self._coordinator, self._group_id)
        if error is not ErrorCode.none:
            raise ActionRefused(f"DeleteGroups was answered {error_name(error)}")

    def _leave_behind(self) -> None:
        """Let all members of the last group leave, so that it can be deleted."""
        group_id, self._group_id = self._group_id, ""
        if not group_id:
            return
        self._coordinator.abandon()
        group = self._describe(group_id)
        if group.group_state == _DEAD or group is _UNSEEN:
            return
        if group.members:
            module = newest("leave_group", "request")
            leaving = tuple(
                make(module.MemberIdentity, member_id=self._ids.theirs(member.member_id))
                for member in group.members
            )
            self._coordinator.ask(
                make(module.LeaveGroupRequest, group_id=group_id, members=leaving)
            )
        if delete_group(self._coordinator, group_id) is not ErrorCode.none:
            self._made.append((self._coordinator, group_id))  # again at the end

    # ---- time ------------------------------------------------------------------------------

    def _begin_session(self, answer: Entity, process: str) -> None:
        """Of a member that is to expire later in this test: it is kept alive until then."""
        ours = self._ids.ours(answer.member_id)
        id = self._ids.of_the_spec(ours, process)
        if answer.error_code is ErrorCode.none and id in self._foresight.sessions:
            heartbeat = make(
                newest("heartbeat", "request").HeartbeatRequest,
                group_id=self._group_id,
                generation_id=answer.generation_id,
                member_id=answer.member_id,
                group_instance_id=self._settings.instances[process],
            )
            self._sessions[id] = MemberSession(heartbeat, self._pace.looked_at)  # at the earliest

    def _keep_alive(self) -> None:
        now, often = time.monotonic(), self._address.session / 1000 / _HEARTBEATS_PER_SESSION
        for id, session in self._sessions.items():
            if (now - session.kept_alive) * 1000 > self._address.session:
                self._overslept = f"nothing kept the session of {id} alive for too long"
            if now - session.kept_alive > often:
                self._coordinator.ask(session.heartbeat)
                self._sessions[id] = replace(session, kept_alive=now)

    def _wait_for_session(self, id: str, *, seen: bool) -> None:
        """It expires by itself once nothing keeps it alive. DescribeGroups shows a member go, but
        not one whose id was given and not used yet: there the time is waited out."""
        self._sessions.pop(id, None)
        asked = self._asked.pop(id, 0.0)
        if seen:
            self._pace.wait_for(self._address.session)
        else:
            over = asked + self._foresight.sessions[id] / 1000
            self._wait_out((over - time.monotonic()) * 1000 + _LATE_MS)

    def _wait_for_rebalance(self) -> None:
        self._pace.wait_for(self._foresight.rebalance)
        self._phase_since = time.monotonic() + self._pace.patience  # until then it may run out

    def _wait_for_initial_delay(self) -> None:
        """It is over by itself; each member that joins meanwhile may prolong it once.

        Where the specification counts how often (`initial_delays`), one delay is one step, which
        shows nothing while it is prolonged.
        """
        self._delayed_since = None
        if self._settings.initial_delays:
            self._wait_out(self._address.initial_delay)
        prolonged = len(self._settings.members) + 1
        self._pace.wait_for(prolonged * self._address.initial_delay)

    def _wait_out(self, milliseconds: float) -> None:
        """Let so much time pass; answers that arrive and other members' sessions go on."""
        until = time.monotonic() + milliseconds / 1000
        while (left := until - time.monotonic()) > 0:
            self._keep_alive()
            self._coordinator.receive(min(left, LONGEST_PAUSE))


def _as_asked(exchange: Exchange, answer: Entity) -> Entity:
    """A SyncGroup answer before version 5 does not name the protocol: the request's it is."""
    if (
        kind_of(answer) == "SyncGroupResponse"
        and answer.error_code is ErrorCode.none
        and answer.protocol_name is None
    ):
        return replace(answer, protocol_name=exchange.message.protocol_name)
    return answer
