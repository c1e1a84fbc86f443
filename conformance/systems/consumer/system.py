"""The system under test: the coordinator of KIP-848 in `impl`, and members that are ours."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.consumer.coordinator import GROUP, DrivenCoordinator
from conformance.systems.consumer.observation import (
    OF_MEMBER,
    ObservedGroup,
    group_values,
    observed_group,
)
from conformance.systems.protocol import ActionRefused, Observation
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.wire.consumer.member import (
    OF_A_MEMBER,
    REQUESTS,
    Commit,
    Heartbeat,
    WireMember,
)
from conformance.systems.wire.consumer.observation import member_values
from conformance.systems.wire.consumer.reach import ConsumerSettings
from conformance.tla import Action, Fn, Value
from impl.coordinator.group.consumer_group_manager import (
    rebalance_timeout_key,
    session_timeout_key,
)

_TIMERS = {"ExpireSession": session_timeout_key, "ExpireRebalance": rebalance_timeout_key}
"""The key of a member's timer, by the action that lets it run out."""
_OF_MEMBERS_ALONE = frozenset(OF_A_MEMBER) - {"SendCommit", "ReceiveCommit", "LoseCommit"}
"""Steps that call nothing of `impl`, and change nothing that is read of it (`keptSince`)."""


class ConsumerSystem(RewindingSystem):
    """One coordinator whose log has no followers, and the members of one group."""

    variables = ("groupEpoch", "assignmentEpoch", *OF_MEMBER, "consumer", "channel", "commit")
    repeatable = True

    def __init__(self, settings: ConsumerSettings, constants: Mapping[str, Value]) -> None:
        self._settings = settings
        self._epochs = constants["Epochs"]
        self.offerable = frozenset(_TIMERS if constants["Expiries"] is True else ())
        self._members: dict[str, WireMember] = {}
        self._known: dict[object, Observation] = {}
        self._rewinder = Rewinder(self, apart=(self._known,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, a coordinator that has loaded it, new members."""
        self._rewinder.forget()
        names = self._settings.names_while_reconciling
        self._members = {
            name: WireMember(name, instance, names_while_reconciling=names)
            for name, instance in self._settings.instances.items()
        }
        self._commits = 0
        self._coordinator = DrivenCoordinator(self._settings)
        self._group: ObservedGroup | None = None

    def choose(self, wanted: Mapping[str, Value]) -> None:
        """The target that the next heartbeat is to lead to, if it leads to a new one."""
        target = wanted["target"]
        assert isinstance(target, Fn), "a function of the members"
        self._coordinator.assignor.chosen = {
            str(name): _numbers(given) for name, given in target.items()
        }

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the coordinator or a member cannot."""
        name, member = action.name, self._members[str(action.args[0])]
        if name in OF_A_MEMBER:
            OF_A_MEMBER[name](member)
        elif name in REQUESTS:
            self._handle_heartbeat(member)
        elif name == "HandleCommit":
            self._handle_commit(member)
        elif name in _TIMERS:
            self._coordinator.expire(_TIMERS[name](GROUP, member.name))
        else:
            raise ActionRefused(f"the adapter knows no action {name}")
        self._coordinator.assignor.chosen = None
        if name not in _OF_MEMBERS_ALONE:
            self._group = None

    def _handle_heartbeat(self, member: WireMember) -> None:
        sent = member.channel
        if not isinstance(sent, Heartbeat):
            raise ActionRefused(f"no request of {member.name} is under way")
        member.channel = self._coordinator.heartbeat(member.name, member.instance, sent)

    def _handle_commit(self, member: WireMember) -> None:
        """What is committed is this commit's number, so that the offsets tell which it was."""
        sent = member.commit
        if not isinstance(sent, Commit):
            raise ActionRefused(f"no commit of {member.name} is under way")
        self._commits += 1
        offset = self._commits
        member.commit = self._coordinator.commit(member.name, member.instance, sent, offset)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now; the same object for the same."""
        members = tuple(self._members.values())
        group = self._group or observed_group(self._coordinator, self._members)
        self._group = group
        state = (group, *((member.consumer, member.channel, member.commit) for member in members))
        known = self._known.get(state)
        if known is None:
            values = {**group_values(group, self._members), **member_values(members)}
            known = self._known[state] = Observation(values)
        return known

    # ---- Offers ----------------------------------------------------------------------------

    def offers(self) -> frozenset[Action]:
        """The members' timers that run: time alone lets them run out."""
        group, running = self._coordinator.group, self._coordinator.timers
        assert isinstance(self._epochs, frozenset), "a set of numbers"
        if group is None or not self.offerable or group.group_epoch not in self._epochs:
            return frozenset()  # the model's bounds end here
        return frozenset(
            Action(name, (member,))
            for name, key_of in _TIMERS.items()
            for member in self._members
            if key_of(GROUP, member) in running
        )


def _numbers(value: Value) -> frozenset[int]:
    assert isinstance(value, frozenset), "partitions are numbers"
    return frozenset(number for number in value if isinstance(number, int))
