"""The system under test: a partition's leader of Kafka's, driven by Reassignment.tla's actions.

ReplicaManager, Partition, Replica and the metadata cache of the leader are Kafka's
(java/reassignment). The controller is played here, and followers are what they send.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec

from conformance.errors import UserError
from conformance.systems.external import CHANNELS, AdapterChannel
from conformance.systems.kafka.reassignment_controller import (
    PlayedController,
    PlayedProposal,
    PlayedRegistration,
)
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.tla import Action, Fn, Value, make_function

_NO_EPOCH = -1
_NO_DELTA = Fn({"partitionEpoch": -1})
_NO_POSITION = Fn({"end": -1, "epoch": _NO_EPOCH, "caughtUp": False, "lastEnd": -1})
_NO_FETCH = Fn({"offset": -1, "brokerEpoch": _NO_EPOCH, "leaderEpoch": _NO_EPOCH})
_NO_ERROR = "NONE"


class _BridgeLeader(msgspec.Struct, frozen=True, array_like=True):
    """The leader as the bridge writes it: Reassignments.java."""

    cache: tuple[tuple[str, int], ...]
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    kind: str
    pending: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    epoch_start: int
    positions: tuple[tuple[int, int, bool, int] | None, ...]
    end: int
    high_watermark: int
    proposal: tuple[int, int, tuple[tuple[int, int], ...]] | None


_as_view = msgspec.json.Decoder(_BridgeLeader).decode
_as_error = msgspec.json.Decoder(str).decode


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A fetch on its way."""

    offset: int
    broker_epoch: int
    leader_epoch: int


class KafkaReassignmentSystem:
    """A leader in a JVM, the controller, and its followers by their requests."""

    variables = (
        "registration", "brokers", "heard", "stopped", "cache", "delta", "view", "positions",
        "end", "hw", "alter", "fetch", "held",
    )  # fmt: skip

    def __init__(self, channel: AdapterChannel, constants: Mapping[str, Value]) -> None:
        self._channel = channel
        self._names = sorted(_names(constants, "Brokers"))
        self._ids = {name: number for number, name in enumerate(self._names, 1)}
        self._leader = self._ids[str(constants["Leader"])]
        self._replicas = self._numbers(_names(constants, "FirstReplicas"))
        self._target = self._numbers(_names(constants, "Target"))
        self._followers = [id_ for id_ in self._ids.values() if id_ != self._leader]
        self._steps: Mapping[str, Callable[..., object]] = MappingProxyType(
            {
                "StartReassignment": lambda: self._controller.start_reassignment(self._target),
                "Fence": lambda b: self._controller.fence(self._ids[b]),
                "Unfence": lambda b: self._controller.unfence(self._ids[b]),
                "Restart": lambda b: self._restart(self._ids[b]),
                "AskToStop": lambda b: self._controller.ask_to_stop(self._ids[b]),
                "GrantStop": lambda b: self._controller.grant_stop(self._ids[b]),
                "HandleAlterPartition": self._handle_alter_partition,
                "HearAlterPartition": self._hear_alter_partition,
                "Publish": self._publish,
                "ApplyDelta": self._apply_delta,
                "AppendRecord": lambda: self._call("append"),
                "SendFetch": lambda f, epoch: self._send_fetch(self._ids[f], epoch),
                "LoseFetch": lambda f: self._fetches.__delitem__(self._ids[f]),
                "HandleFetch": lambda f, error: self._handle_fetch(self._ids[f], error),
                "PassLagTime": lambda: self._call("pass_lag_time"),
                "ShrinkIsr": lambda: self._call("shrink"),
            }
        )

    def _numbers(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset(map(self._ids.__getitem__, names))

    # ---- SystemUnderTest -------------------------------------------------------------------

    @property
    def longest_call(self) -> float:
        """A reset may have to start the JVM again."""
        return self._channel.limits.start + self._channel.limits.call

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """An empty log; all replicas are in sync."""
        self._controller = PlayedController(self._leader, self._replicas, self._ids.values())
        self._fetches: dict[int, _Fetch] = {}
        self._ends = dict.fromkeys(self._followers, 0)
        self._delta: PlayedRegistration | None = None
        self._answer: PlayedRegistration | str | None = None
        self._call(
            "reset",
            leader=self._leader,
            ids=list(self._ids.values()),
            **self._news(self._controller.registration),
        )

    def apply(self, action: Action) -> None:
        """Let the controller, the leader, a follower or the network take one step."""
        step = step_of(self._steps, action)
        step(*action.args)

    def close(self) -> None:
        """Leave the JVM to the next system of this process."""
        CHANNELS.give_back(self._channel)

    def _call(self, command: str, **members: object) -> bytes:
        answer, seen = self._channel.call(
            [
                {"command": f"reassignment_{command}", **members},
                {"command": "reassignment_view"},
            ]
        )
        self._view = _as_view(bytes(seen))
        return bytes(answer)

    # ---- the controller and the leader -----------------------------------------------------

    def _news(self, registration: PlayedRegistration | None) -> Mapping[str, object]:
        brokers = self._controller.brokers
        partition = None
        if registration is not None:
            partition = {
                "replicas": sorted(registration.replicas),
                "adding": sorted(registration.adding),
                "removing": sorted(registration.removing),
                "isr": sorted(registration.isr),
                "leader_epoch": registration.leader_epoch,
                "partition_epoch": registration.partition_epoch,
            }
        return {
            "brokers": [[id_, broker.state, broker.epoch] for id_, broker in brokers.items()],
            "partition": partition,
        }

    def _publish(self) -> None:
        registration = self._controller.registration
        is_news = registration.partition_epoch > self._view.partition_epoch
        self._delta = registration if is_news else None
        self._call("publish", **self._news(self._delta))
        if not is_news:
            self._hear()

    def _apply_delta(self) -> None:
        self._call("apply")
        self._delta = None
        self._hear()

    def _hear(self) -> None:
        """The leader's metadata offset has reached what its cache has."""
        self._controller.hear(dict(zip(self._ids.values(), self._view.cache, strict=True)))

    def _restart(self, broker: int) -> None:
        self._controller.restart(broker)
        self._ends[broker] = 0

    def _handle_alter_partition(self, error: str) -> None:
        sent = self._view.proposal
        if sent is None or self._answer is not None:
            raise ActionRefused("no AlterPartition is on its way")
        leader_epoch, partition_epoch, members = sent
        self._answer = self._controller.alter_partition(
            PlayedProposal(leader_epoch, partition_epoch, dict(members))
        )
        answered = self._answer if isinstance(self._answer, str) else _NO_ERROR
        if answered != error:
            raise ActionRefused(f"AlterPartition is answered {answered}")

    def _hear_alter_partition(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            raise ActionRefused("no answer to AlterPartition is on its way")
        if isinstance(answer, str):
            self._call("complete", error=answer)
            return
        self._call(
            "complete",
            error=_NO_ERROR,
            isr=sorted(answer.isr),
            leader_epoch=answer.leader_epoch,
            partition_epoch=answer.partition_epoch,
        )

    # ---- fetches ---------------------------------------------------------------------------

    def _send_fetch(self, follower: int, leader_epoch: int) -> None:
        epoch = self._controller.brokers[follower].epoch
        self._fetches[follower] = _Fetch(self._ends[follower], epoch, leader_epoch)

    def _handle_fetch(self, follower: int, error: str) -> None:
        sent = self._fetches.pop(follower)
        answered = _as_error(
            self._call(
                "fetch",
                follower=follower,
                offset=sent.offset,
                broker_epoch=sent.broker_epoch,
                leader_epoch=sent.leader_epoch,
            )
        )
        if answered != error:
            raise ActionRefused(f"the fetch is answered {answered}")
        if answered == "NONE" and sent.broker_epoch == self._controller.brokers[follower].epoch:
            self._ends[follower] = self._view.end

    # ---- what is seen ----------------------------------------------------------------------

    def observe(self) -> Observation:
        """All variables: the leader's as its objects have them, the others as they are played."""
        view, controller = self._view, self._controller
        return Observation(
            {
                "registration": self._registration(controller.registration),
                "brokers": self._by_id(
                    {id_: (each.state, each.epoch) for id_, each in controller.brokers.items()}
                ),
                "heard": self._set(controller.heard),
                "stopped": self._set(controller.stopped),
                "cache": self._by_id(dict(zip(self._ids.values(), view.cache, strict=True))),
                "delta": _NO_DELTA if self._delta is None else self._registration(self._delta),
                "view": Fn(
                    {
                        "replicas": self._set(view.replicas),
                        "isr": self._set(view.isr),
                        "pending": Fn({"type": view.kind, "isr": self._set(view.pending)}),
                        "leaderEpoch": view.leader_epoch,
                        "partitionEpoch": view.partition_epoch,
                        "epochStart": view.epoch_start,
                    }
                ),
                "positions": self._by_follower(self._position),
                "end": view.end,
                "hw": view.high_watermark,
                "alter": self._alter(),
                "fetch": self._by_follower(self._fetch),
                "held": self._by_follower(self._ends.__getitem__),
            }
        )

    def _name(self, broker: int) -> str:
        return self._names[broker - 1]

    def _set(self, brokers: Collection[int]) -> Value:
        return frozenset(map(self._name, brokers))

    def _by_id(self, brokers: Mapping[int, tuple[str, int]]) -> Value:
        return make_function(
            {
                self._name(id_): Fn({"state": state, "epoch": epoch})
                for id_, (state, epoch) in brokers.items()
            }
        )

    def _by_follower(self, value: Callable[[int], Value]) -> Value:
        return make_function({self._name(f): value(f) for f in self._followers})

    def _registration(self, registration: PlayedRegistration) -> Value:
        return Fn(
            {
                "replicas": self._set(registration.replicas),
                "adding": self._set(registration.adding),
                "removing": self._set(registration.removing),
                "isr": self._set(registration.isr),
                "leaderEpoch": registration.leader_epoch,
                "partitionEpoch": registration.partition_epoch,
            }
        )

    def _position(self, follower: int) -> Value:
        seen = self._view.positions[follower - 1]
        if seen is None:
            return _NO_POSITION
        return Fn(dict(zip(("end", "epoch", "caughtUp", "lastEnd"), seen, strict=True)))

    def _fetch(self, follower: int) -> Value:
        sent = self._fetches.get(follower)
        if sent is None:
            return _NO_FETCH
        return Fn(
            {
                "offset": sent.offset,
                "brokerEpoch": sent.broker_epoch,
                "leaderEpoch": sent.leader_epoch,
            }
        )

    def _alter(self) -> Value:
        answer, sent = self._answer, self._view.proposal
        nothing = PlayedRegistration(frozenset(), frozenset())
        if isinstance(answer, PlayedRegistration):
            return self._exchange("Answer", answer)
        if answer is not None:
            return self._exchange("Answer", nothing, error=answer)
        if sent is None:
            return self._exchange("None", nothing)
        leader_epoch, partition_epoch, members = sent
        epochs = dict(members)
        content = replace(
            nothing,
            isr=frozenset(epochs),
            leader_epoch=leader_epoch,
            partition_epoch=partition_epoch,
        )
        return self._exchange("Request", content, epochs)

    def _exchange(
        self,
        kind: str,
        content: PlayedRegistration,
        epochs: Mapping[int, int] = MappingProxyType({}),
        error: str = _NO_ERROR,
    ) -> Value:
        return Fn(
            {
                "type": kind,
                "isr": self._set(content.isr),
                "epochs": make_function(
                    {name: epochs.get(id_, _NO_EPOCH) for name, id_ in self._ids.items()}
                ),
                "leaderEpoch": content.leader_epoch,
                "partitionEpoch": content.partition_epoch,
                "error": error,
            }
        )


def _names(constants: Mapping[str, Value], name: str) -> list[str]:
    brokers = constants[name]
    if not isinstance(brokers, frozenset):
        raise UserError(f"{name} must be a set.")
    return list(map(str, brokers))
