"""The system under test: the coordinator of KIP-848 in `impl`, and members that are ours."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.consumer.coordinator import GROUP, DrivenCoordinator
from conformance.systems.consumer.observation import group_inside
from conformance.systems.protocol import ActionRefused
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.systems.wire.consumer.inner_steps import (
    PAUSES_MS,
    RUN_RESOLUTION,
    WRITE_RESOLUTION,
)
from conformance.systems.wire.consumer.inside import CoordinatorInside, GroupInside
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    ConsumerProcess,
    Heartbeat,
    HeartbeatAnswer,
    is_of_a_member,
)
from conformance.systems.wire.consumer.reach import ConsumerSettings
from conformance.tla import Action, Value
from impl.coordinator.group.consumer_group_manager import (
    rebalance_timeout_key,
    session_timeout_key,
)

_TIMERS = {"ExpireSession": session_timeout_key, "ExpireRebalance": rebalance_timeout_key}
"""The key of a member's timer, by the action that lets it run out."""
_OF_COMMITS = frozenset({"SendCommit", "ReceiveCommit", "LoseCommit"})
"""Steps of a member that change what is read of `impl` (`keptSince`)."""


class ConsumerSystem(RewindingSystem, CoordinatorInside):
    """One coordinator whose log has no followers, and the members of one group."""

    repeatable = True
    offerable = frozenset(_TIMERS)

    def __init__(self, settings: ConsumerSettings, constants: Mapping[str, Value]) -> None:
        super().__init__(
            settings, lambda topic, size: self._coordinator.change_topic(topic.key, size)
        )
        epochs = constants["Epochs"] if constants["Expiries"] is True else frozenset()
        assert isinstance(epochs, frozenset), "a set of numbers"
        self._expiring = epochs
        """The group epochs in which the model lets timers run out."""
        self._rewinder = Rewinder(self, apart=(self._known,))

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log, a coordinator that has loaded it, new members."""
        self._rewinder.forget()
        self._begin()
        self._coordinator = DrivenCoordinator(self._settings)
        self._seen: GroupInside | None = None

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the coordinator or a member cannot."""
        super().apply(action)
        if action.name in _OF_COMMITS or not is_of_a_member(action):
            self._seen = None

    # ---- CoordinatorInside -----------------------------------------------------------------

    def _heartbeat(self, member: ConsumerProcess, sent: Heartbeat) -> HeartbeatAnswer:
        return self._coordinator.heartbeat(member.name, member.instance, sent)

    def _commit(self, member: ConsumerProcess, sent: Commit, offset: int) -> CommitAnswer:
        return self._coordinator.commit(member.name, member.instance, sent, offset)

    def _go_on(self, step: str, member: ConsumerProcess | None) -> None:
        if step in PAUSES_MS:
            self._coordinator.sleep(PAUSES_MS[step])
        elif step == RUN_RESOLUTION:
            self._coordinator.executor.run()
        elif step == WRITE_RESOLUTION:
            self._coordinator.executor.release()
        elif member is not None and step in _TIMERS:
            self._coordinator.expire(_TIMERS[step](GROUP, member.name))
        else:
            raise ActionRefused(f"the adapter knows no action {step}")

    def _choose(self, target: Mapping[str, frozenset[int]] | None) -> None:
        self._coordinator.choice.chosen = target

    def _group(self) -> GroupInside:
        if self._seen is None:
            self._seen = group_inside(self._coordinator, self.members)
        return self._seen

    # ---- Offers ----------------------------------------------------------------------------

    def offers(self) -> frozenset[Action]:
        """The members' timers that run: time alone lets them run out.

        Where the model's bounds let nobody expire, only the timers of members that are gone: they
        must not run anywhere. Those of a static member whose place another has taken run on, and
        find nobody.
        """
        group, running = self._coordinator.group, self._coordinator.timers
        present = frozenset() if group is None else frozenset(group.members())
        bounded = group is None or group.group_epoch not in self._expiring
        return frozenset(
            Action(name, (member,))
            for name, key_of in _TIMERS.items()
            for member, process in self.members.items()
            if key_of(GROUP, member) in running
            and (not bounded if member in present else process.instance is None)
        )
