"""The system under test: the controller and a leader; followers are what they send.

Fetches, answers and the controller's news arrive when an action says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.errors import UserError
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.reassignment.leader import LeaderBroker, SentFetch
from conformance.systems.reassignment.observation import (
    alter_of,
    brokers_of,
    delta_of,
    fetch_of,
    heard_of,
    names,
    position_of,
    registration_of,
    view_of,
)
from conformance.systems.rewinding import Rewinder, RewindingSystem
from conformance.tla import Action, Value, make_function
from impl.concurrency import NoConcurrency
from impl.controller.replication_control_manager import (
    PartitionRegistration,
    ReplicationControlManager,
)


class ReassignmentSystem(RewindingSystem):
    """One partition, its leader, its followers by their requests, and the controller."""

    variables = (
        "registration", "brokers", "heard", "stopped", "cache", "delta", "view", "positions",
        "end", "hw", "alter", "fetch", "held",
    )  # fmt: skip
    repeatable = True

    def __init__(self, constants: Mapping[str, Value]) -> None:
        self._names = sorted(_names(constants, "Brokers"))
        self._ids = {name: number for number, name in enumerate(self._names, 1)}
        self._leader_id = self._ids[str(constants["Leader"])]
        self._replicas = frozenset(map(self._ids.__getitem__, _names(constants, "FirstReplicas")))
        self._target = frozenset(map(self._ids.__getitem__, _names(constants, "Target")))
        self._followers = [id_ for id_ in self._ids.values() if id_ != self._leader_id]
        self._actions: dict[str, Callable[..., None]] = {
            "StartReassignment": lambda: self._controller.alter_partition_reassignments(
                self._target
            ),
            "Fence": lambda b: self._controller.handle_broker_fenced(self._ids[b]),
            "Unfence": lambda b: self._controller.handle_broker_unfenced(self._ids[b]),
            "Restart": lambda b: self._restart(self._ids[b]),
            "AskToStop": lambda b: self._controller.handle_broker_in_controlled_shutdown(
                self._ids[b]
            ),
            "GrantStop": lambda b: self._grant_stop(self._ids[b]),
            "HandleAlterPartition": self._handle_alter_partition,
            "HearAlterPartition": lambda: self._leader.hear_decision(),
            "Publish": lambda: self._leader.publish(),
            "ApplyDelta": lambda: self._leader.apply_delta(),
            "AppendRecord": lambda: self._leader.append(),
            "SendFetch": lambda f, epoch: self._send_fetch(self._ids[f], epoch),
            "LoseFetch": lambda f: self._fetches.__delitem__(self._ids[f]),
            "HandleFetch": lambda f, error: self._handle_fetch(self._ids[f], error),
            "PassLagTime": lambda: self._leader.pass_lag_time(),
            "ShrinkIsr": lambda: self._leader.shrink_isr(),
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log; all replicas are in sync."""
        self._rewinder.forget()
        partition = PartitionRegistration(self._leader_id, self._replicas, self._replicas)
        self._controller = ReplicationControlManager(partition, self._ids.values())
        self._leader = LeaderBroker(self._leader_id, self._controller, NoConcurrency())
        self._fetches: dict[int, SentFetch] = {}
        self._ends = dict.fromkeys(self._followers, 0)
        self._stopped: frozenset[int] = frozenset()

    def apply(self, action: Action) -> None:
        """Let the controller, the leader, a follower or the network take one step."""
        step = step_of(self._actions, action)
        step(*action.args)

    def observe(self) -> Observation:
        """All variables as the objects have them now."""
        partition = self._leader.partition
        log = partition.local_log_or_exception()
        ids = list(self._ids.values())
        return Observation(
            {
                "registration": registration_of(self._name, self._controller.partition),
                "brokers": brokers_of(self._name, self._controller.brokers),
                "heard": heard_of(self._name, self._controller),
                "stopped": names(self._name, self._stopped),
                "cache": brokers_of(self._name, self._leader.cache.brokers),
                "delta": delta_of(self._name, self._leader),
                "view": view_of(self._name, self._leader),
                "positions": self._by_follower(lambda f: position_of(self._leader, f)),
                "end": log.log_end_offset,
                "hw": log.high_watermark,
                "alter": alter_of(self._name, self._leader, ids),
                "fetch": self._by_follower(lambda f: fetch_of(self._fetches.get(f))),
                "held": self._by_follower(self._ends.__getitem__),
            }
        )

    def _name(self, broker_id: int) -> str:
        return self._names[broker_id - 1]

    def _by_follower(self, value: Callable[[int], Value]) -> Value:
        return make_function({self._name(f): value(f) for f in self._followers})

    # ---- brokers ---------------------------------------------------------------------------

    def _restart(self, broker_id: int) -> None:
        self._controller.register_broker(broker_id)
        self._ends[broker_id] = 0
        self._stopped -= {broker_id}

    def _grant_stop(self, broker_id: int) -> None:
        if not self._controller.may_shut_down(broker_id):
            raise ActionRefused("the leader has not heard that the broker stops")
        self._controller.shut_down(broker_id)
        self._stopped |= {broker_id}

    def _handle_alter_partition(self, error: str) -> None:
        answered = self._leader.decide().name
        if answered != error:
            raise ActionRefused(f"AlterPartition is answered {answered}")

    # ---- fetches ---------------------------------------------------------------------------

    def _send_fetch(self, follower: int, leader_epoch: int) -> None:
        life = self._controller.brokers[follower].epoch
        self._fetches[follower] = SentFetch(self._ends[follower], life, leader_epoch)

    def _handle_fetch(self, follower: int, error: str) -> None:
        sent = self._fetches.pop(follower)
        answered = self._leader.handle_fetch(follower, sent).name
        if answered != error:
            raise ActionRefused(f"the fetch is answered {answered}")
        if answered == "NONE" and sent.broker_epoch == self._controller.brokers[follower].epoch:
            log = self._leader.partition.local_log_or_exception()
            self._ends[follower] = log.log_end_offset


def _names(constants: Mapping[str, Value], name: str) -> list[str]:
    brokers = constants[name]
    if not isinstance(brokers, frozenset):
        raise UserError(f"{name} must be a set.")
    return list(map(str, brokers))


def create(constants: Mapping[str, Value]) -> ReassignmentSystem:
    """The system for a model's constants."""
    return ReassignmentSystem(constants)
