"""Which answers the specification allows to a request, and the steps that lead to each of them.

An answer is what a state has in `channel` or `heartbeat` of the client after the coordinator's
step. Others may step before it: timers, fail-overs, our own members. So the answers are looked for
breadth first, from a state in which the request waits; each is found with the fewest moves.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from conformance.client.subject import CLIENT, DOUBLE
from conformance.tla import Action, ActionPattern, Fn, Selection, Spec, State

__all__ = [
    "GOOD",
    "WISHES",
    "ActionStep",
    "AllowedAnswers",
    "AnswerPath",
    "BoundsReached",
    "Lane",
    "Reader",
]

Lane = str
"""`channel` or `heartbeat`: the variable in which a request waits for its answer."""

_OURS = (
    "HandlesJoinGroup",
    "HandlesSyncGroup",
    "HandlesLeaveGroup",
    "HandlesHeartbeat",
    "ReadsAnswer",
    "ProcessesSyncGroup",
    "CompletesJoin",
    "DropsJoin",
)
"""What follows at once when a member of ours has begun something."""
_BEGUN = ("SendsJoinGroup", "ProcessesJoinGroup", "SendsHeartbeat", "LeavesGroup")
"""What a member of ours may begin."""
_TIMERS = (
    "ExpiresSession",
    "ExpiresPendingMember",
    "ExpiresInitialDelay",
    "ExpiresRebalance",
    "ExpiresSync",
    "FailsOver",
    "DeletesGroup",
)
_ANSWERING: Mapping[Lane, tuple[str, ...]] = {
    "channel": (
        "HandlesJoinGroup",
        "HandlesSyncGroup",
        "HandlesLeaveGroup",
        "FailsToStore",
        "RefusesElsewhere",
        "RefusesWhileLoading",
    ),
    "heartbeat": (
        "HandlesHeartbeat",
        "HandlesOffsetCommit",
        "RefusesHeartbeatElsewhere",
        "RefusesHeartbeatWhileLoading",
    ),
}
_MOST_STATES = 60
"""So many states are looked at for the answer to one request."""
_ELSEWHERE = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
_STALE = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID")
WISHES: Mapping[str, tuple[str, ...]] = {
    "JoinGroup": (
        *("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "COORDINATOR_LOAD_IN_PROGRESS"),
        *_ELSEWHERE,
    ),
    "SyncGroup": (*_STALE, "REBALANCE_IN_PROGRESS", *_ELSEWHERE),
    "Heartbeat": (*_STALE, "REBALANCE_IN_PROGRESS", *_ELSEWHERE),
    "OffsetCommit": (
        *_STALE,
        "REBALANCE_IN_PROGRESS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        *_ELSEWHERE,
    ),
    "LeaveGroup": (),
}
"""The errors to look for, by request; whether one may be given the specification says."""
GOOD = (
    *("NONE", "NONE, leader", "NONE, follower", "NONE, leader of others"),
    "MEMBER_ID_REQUIRED",
)
"""Answers with which a client goes on; the last is the first JoinGroup's."""


@dataclass(frozen=True, slots=True)
class ActionStep:
    """A step, and the state after it."""

    action: Action
    state: State


@dataclass(frozen=True, slots=True)
class AnswerPath:
    """Steps that end with an answer: its error, and what the answer makes of the client."""

    outcome: str
    steps: tuple[ActionStep, ...]


class Reader:
    """Reads a state's variables by name."""

    def __init__(self, variables: Sequence[str]) -> None:
        self._positions = {name: number for number, name in enumerate(variables)}

    def of_client(self, state: State, variable: str) -> Fn:
        """What a variable has for the client."""
        return cast("Fn", self.of(state, variable, CLIENT))

    def of(self, state: State, variable: str, process: str) -> object:
        """What a variable has for a process."""
        return cast("Fn", state[self._positions[variable]])[process]

    def whole(self, state: State, variable: str) -> object:
        """A variable's value."""
        return state[self._positions[variable]]

    def static_id(self, state: State) -> str:
        """The member id that has the client's instance id; "" if none has."""
        mapped = cast("Fn", self.whole(state, "staticMembers"))
        return str(mapped.get("instance", ""))

    def waits(self, state: State, lane: Lane) -> bool:
        """Whether the client's request there has no answer yet."""
        kind = str(self.of_client(state, lane)["type"])
        return kind.endswith(("Request", "Parked"))

    def outcome(self, state: State, lane: Lane) -> str:
        """The answer, for whoever counts: the error; of a join that succeeds, who leads."""
        message = self.of_client(state, lane)
        error = str(message["error"])
        if message["type"] != "JoinGroupResponse" or error != "NONE":
            return error
        if message["leader"] != message["memberId"]:
            return "NONE, follower"
        alone = len(cast("frozenset[str]", message["members"])) == 1
        return "NONE, leader" if alone else "NONE, leader of others"


class BoundsReached(Exception):
    """The specification's bounds leave a request without an answer: ids, generations."""


class AllowedAnswers:
    """Answers to the requests of one kind of client; keeps what it found of states."""

    def __init__(self, spec: Spec, others: Sequence[str]) -> None:
        self.reader = Reader(spec.variables)
        self._spec = spec
        self._others = others
        self.has_double = DOUBLE in others
        ours = [ActionPattern(name, (other,)) for other in others for name in _OURS]
        ours += [ActionPattern("TakesUp", (other, 1)) for other in others]
        begun = [ActionPattern(name, (other,)) for other in others for name in _BEGUN]
        self._following = spec.select(ours)
        self._environment = spec.select([*begun, *map(ActionPattern, _TIMERS)])
        self._answering: dict[Lane, Selection] = {
            lane: spec.select([_of_client(name) for name in names])
            for lane, names in _ANSWERING.items()
        }
        self._moves: dict[tuple[State, Lane], tuple[tuple[ActionStep, ...], ...]] = {}

    def way(
        self,
        state: State,
        lane: Lane,
        wishes: Sequence[str],
        draw: random.Random,
        *,
        by_coordinator: bool = False,
    ) -> AnswerPath:
        """The way to the first of these answers that can be given, or to another if none can.

        `by_coordinator`: no broker answers that is not the coordinator.

        BoundsReached if the request cannot be answered at all.
        """
        answer_paths: dict[str, AnswerPath] = {}
        seen = {state}
        ahead: deque[tuple[State, tuple[ActionStep, ...]]] = deque([(state, ())])
        for _ in range(_MOST_STATES):
            if not ahead or (wishes and wishes[0] in answer_paths):
                break
            before, path = ahead.popleft()
            for move in _shuffled(self._moves_of(before, lane), draw):
                after = move[-1].state
                refused = by_coordinator and move[0].action.name.startswith("Refuses")
                if refused or after in seen:
                    continue
                seen.add(after)
                steps = (*path, *move)
                if self.reader.waits(after, lane):
                    ahead.append((after, steps))
                else:
                    outcome = self.reader.outcome(after, lane)
                    answer_paths.setdefault(outcome, AnswerPath(outcome, steps))
        if not answer_paths:
            raise BoundsReached(
                "the specification's bounds (member ids, generations) have no answer left to it"
            )
        return next(
            (answer_paths[wish] for wish in wishes if wish in answer_paths),
            next(iter(answer_paths.values())),
        )

    def prelude(self, state: State, lane: Lane, draw: random.Random) -> tuple[ActionStep, ...]:
        """Something that happens beside the request, and leaves it waiting; () if nothing can."""
        moves = [
            move for move in self._moves_of(state, lane) if self.reader.waits(move[-1].state, lane)
        ]
        return draw.choice(moves) if moves else ()

    def _moves_of(self, state: State, lane: Lane) -> tuple[tuple[ActionStep, ...], ...]:
        known = self._moves.get((state, lane))
        if known is None:
            if len(self._moves) > _REMEMBERED:
                self._moves.clear()
            known = self._moves[state, lane] = tuple(self._found_moves(state, lane))
        return known

    def _found_moves(self, state: State, lane: Lane) -> Iterator[tuple[ActionStep, ...]]:
        firsts: dict[State, Action] = {}
        for selection in (self._answering[lane], self._environment):
            for action, after in self._spec.successors_in(selection, state):
                firsts.setdefault(after, action)  # most choices of the coordinator come to the same
        for after, action in firsts.items():
            yield self._followed(ActionStep(action, after))

    def _followed(self, first: ActionStep) -> tuple[ActionStep, ...]:
        """A step with what members of ours do at once after it."""
        steps = [first]
        for _ in range(_MOST_FOLLOWING):
            state = steps[-1].state
            following = self._spec.successors_in(self._following, state)
            following = following or self._joins_again(state)
            if not following:
                break
            steps.append(ActionStep(*following[0]))
        return tuple(steps)

    def _joins_again(self, state: State) -> list[tuple[Action, State]]:
        """Who was told its member id, or was refused, goes on with it."""
        patterns = []
        for process in self._others:
            channel = cast("Fn", self.reader.of(state, "channel", process))
            if channel["type"] == "JoinGroupResponse" and channel["error"] != "NONE":
                patterns.append(ActionPattern("ProcessesJoinGroup", (process,)))
            elif channel["type"] == "None" and self._knows_its_id(state, process):
                patterns.append(ActionPattern("SendsJoinGroup", (process,)))
        return self._spec.successors_in(self._spec.select(patterns), state) if patterns else []

    def _knows_its_id(self, state: State, process: str) -> bool:
        generation = cast("Fn", self.reader.of(state, "memberGeneration", process))
        joins = self.reader.of(state, "memberState", process) == "PREPARING_REBALANCE"
        return joins and generation["memberId"] != "" and generation["generation"] == -1


_REMEMBERED = 20_000
_MOST_FOLLOWING = 12


def _of_client(name: str) -> ActionPattern:
    """The action of the client; a refusal's error is left open."""
    others = (None,) if name.endswith("Elsewhere") else ()
    return ActionPattern(name, (CLIENT, *others))


def _shuffled(
    moves: Sequence[tuple[ActionStep, ...]], draw: random.Random
) -> Sequence[tuple[ActionStep, ...]]:
    return draw.sample(moves, len(moves))
