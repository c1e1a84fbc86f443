"""A broker's cache of fetch sessions along FetchSessionCache.tla's actions, at a port or in this
process.

A cache in shards gives each new session to the next shard in turn. So each client has as many
sessions as there are shards, one in each, and all of them must fare alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from conformance.systems.protocol import Observation, step_of
from conformance.systems.wire.data.requests import DataRequests
from conformance.systems.wire.data.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    SessionAnswer,
    fetch,
)
from conformance.systems.wire.transaction.requests import NONE
from conformance.tla import Action, Fn, Value

SPECIFICATION = "FetchSessionCache"
SIGN = "Slots"
"""A constant that its models have, and others at a port have not."""
VARIABLES = ("answer",)
_CONSUMER, _FOLLOWER = -1, 1_000_000
"""The replica that asks: the follower is none of the broker's, but its sessions are privileged."""
_NO_ANSWER: Mapping[Value, Value] = {
    "request": "none",
    "client": "none",
    "error": NONE,
    "isOpen": False,
}


def partitions_of(constants: Mapping[str, Value]) -> int:
    """How many partitions the largest session of a model has."""
    sizes = constants["Sizes"]
    assert isinstance(sizes, Mapping), "a function of clients in every model"
    of_clients = [each for each in sizes.values() if isinstance(each, frozenset)]
    return max(size for each in of_clients for size in each if isinstance(size, int))


class CacheClient:
    """A client's sessions, one in each shard: ids, and the next epoch of all."""

    def __init__(self, replica_id: int, shards: int) -> None:
        self.replica_id = replica_id
        self.ids = [NO_SESSION] * shards
        self.epoch = 1
        self.size = 0


class DrivenCache:
    """Clients of a broker whose cache is empty. `partitions` are those of a session, of one topic;
    `let_time_pass` lets sessions become old."""

    def __init__(
        self,
        partitions: Sequence[DataRequests],
        constants: Mapping[str, Value],
        shards: int,
        let_time_pass: Callable[[], None],
    ) -> None:
        clients, followers = constants["Clients"], constants["Followers"]
        assert isinstance(clients, frozenset), "a set of names in every model"
        assert isinstance(followers, frozenset), "a set of names in every model"
        self._partitions = partitions
        self._clients = {
            name: CacheClient(_FOLLOWER if name in followers else _CONSUMER, shards)
            for name in clients
        }
        self._answer: Mapping[Value, Value] = _NO_ANSWER
        self._steps: Mapping[str, Callable[..., None]] = {
            "OpenSession": self._open,
            "Continue": self._continue,
            "Close": self._close,
            "LetEvictionTimePass": let_time_pass,
            "TakeAnswer": self._take_answer,
        }

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if it cannot be taken, SystemFailed for a broker
        that breaks the protocol."""
        step_of(self._steps, action)(*action.args)

    def observe(self) -> Observation:
        """The last answer, until it is taken."""
        return Observation({"answer": Fn(dict(self._answer))})

    def leave(self) -> None:
        """Close all sessions: others need the slots."""
        for client in self._clients.values():
            self._ask(client, FINAL_EPOCH, range(0))

    def _open(self, name: str, size: int) -> None:
        client = self._clients[name]
        answers = self._ask(client, INITIAL_EPOCH, range(size))
        self._answered("Open", name, answers)
        client.ids = [answer.session_id for answer in answers]
        client.epoch, client.size = 1, size

    def _continue(self, name: str, size: int) -> None:
        client = self._clients[name]
        answers = self._ask(
            client, client.epoch, range(client.size, size), range(size, client.size)
        )
        self._answered("Continue", name, answers)
        if any(answer.error != NONE for answer in answers):
            client.ids = [NO_SESSION for _ in client.ids]
        client.epoch, client.size = client.epoch + 1, size

    def _close(self, name: str) -> None:
        client = self._clients[name]
        self._answered("Close", name, self._ask(client, FINAL_EPOCH, range(0)))
        client.ids = [NO_SESSION for _ in client.ids]

    def _ask(
        self, client: CacheClient, epoch: int, changed: range, forgotten: range = range(0)
    ) -> list[SessionAnswer]:
        return [
            fetch(
                self._partitions[0],
                (session, epoch),
                {self._partitions[place].index: 0 for place in changed},
                frozenset(self._partitions[place].index for place in forgotten),
                client.replica_id,
            )
            for session in client.ids
            if session != NO_SESSION or epoch == INITIAL_EPOCH
        ]

    def _answered(self, request: str, name: str, answers: Sequence[SessionAnswer]) -> None:
        errors = {answer.error for answer in answers}
        opened = {answer.session_id != NO_SESSION for answer in answers}
        self._answer = {
            "request": request,
            "client": name,
            "error": " and ".join(sorted(errors)),
            "isOpen": opened.pop() if len(opened) == 1 else "in some shards",
        }

    def _take_answer(self) -> None:
        self._answer = _NO_ANSWER
