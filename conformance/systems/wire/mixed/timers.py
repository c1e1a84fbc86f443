"""Whose session a path lets run out, and how long sessions must be so that just these do.

The session of a member of KIP-848 is a setting of its group: it is made short for the one heartbeat
after which nothing more is heard of the member. That of a classic member is its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.systems.wire.address import Address
from conformance.systems.wire.consumer.sessions import RunningSessions
from conformance.systems.wire.consumer.settings import SESSION_MS, GroupSession
from conformance.systems.wire.pace import Pace
from conformance.tla import Action

EXPIRY = "ExpireSession"
_HEARTBEATS = frozenset({"ConsumerJoin", "ConsumerHeartbeat"})


@dataclass(frozen=True, slots=True)
class MixedTimers:
    """Lengths in ms of sessions that expire. `heartbeats`: by number of the path's step that begins
    one of KIP-848; `members`: of classic members."""

    heartbeats: Mapping[int, int] = field(default_factory=dict)
    members: Mapping[str, int] = field(default_factory=dict)


def foresight(actions: Sequence[Action], classic: Collection[str], address: Address) -> MixedTimers:
    """Sessions that run out in the path's order."""
    heartbeats: dict[int, int] = {}
    members: dict[str, int] = {}
    for at, action in enumerate(actions):
        if action.name != EXPIRY:
            continue
        name = str(action.args[0])
        if name in classic:
            # It may have begun before all that is waited for.
            members[name] = address.session * (1 + _expiries(actions[:at]))
            continue
        begun = _last_heartbeat(actions[:at], name)
        heartbeats[begun] = address.session * (1 + _expiries(actions[begun:at]))
    return MixedTimers(heartbeats, members)


def _expiries(actions: Sequence[Action]) -> int:
    return sum(action.name == EXPIRY for action in actions)


def _last_heartbeat(actions: Sequence[Action], name: str) -> int:
    """The number of a member's last one; -1: its first was before the path."""
    numbers = [
        number
        for number, action in enumerate(actions)
        if action.name in _HEARTBEATS and action.args[0] == name
    ]
    return max(numbers, default=-1)


class RunningMixedTimers:
    """The sessions of one group while a test runs, whose path lets those of `path` expire."""

    def __init__(self, path: MixedTimers, session: GroupSession, pace: Pace) -> None:
        self._path = path
        self._session = session
        self._sessions = RunningSessions(pace)
        self._step = -1
        self._mistimed = ""

    def step(self) -> None:
        """The path's next step begins."""
        self._step += 1

    def session_of(self, name: str) -> int:
        """The session timeout (ms) that a classic member asks for."""
        return self._path.members.get(name, SESSION_MS)

    def set_session(self) -> None:
        """Give the group the session timeout that this step's heartbeat is to begin."""
        self._session.set(self._path.heartbeats.get(self._step, SESSION_MS))

    def of_848(self, name: str, interval_ms: int, asked: float) -> None:
        """A heartbeat that was sent at `asked` (monotonic, s), or later, has been answered."""
        self._mistimed = self._mistimed or self._session.mistimed(interval_ms)
        self._sessions.begin(name, self._path.heartbeats.get(self._step, 0), asked)

    def of_classic(self, name: str, asked: float) -> None:
        """The same of any request of a classic member."""
        self._sessions.begin(name, self._path.members.get(name, 0), asked)

    def left(self, name: str) -> None:
        """The member has left, and its session with it."""
        self._sessions.forget(name)

    def wait_for(self, name: str) -> None:
        """The member's session runs out by itself; descriptions show the member go."""
        self._sessions.wait_until(self._sessions.forget(name))

    @property
    def over(self) -> str:
        """Which session may be over although the path has not come to it; empty if none."""
        return self._mistimed or self._sessions.over
