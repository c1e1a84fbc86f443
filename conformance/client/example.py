"""One example: a fresh client process, a coordinator that is free within the specification.

All that is drawn depends on the seed and the example's number; what the client does, and when, is
its own. So an example shows the same again as far as the client does.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from conformance.client.answers import ActionStep, AllowedAnswers, BoundsReached, Lane
from conformance.client.breaches import Breach, unreadable_parts
from conformance.client.clock import BEAT, LoopClock
from conformance.client.duties import (
    DISCONNECTS,
    FATAL,
    REPEATED,
    Act,
    Duties,
    DutyKind,
    duty_kind,
)
from conformance.client.given import GivenAnswers
from conformance.client.messages import (
    SENDS,
    Messages,
    assigned_event,
    closed_event,
    given_up_event,
    has_read_event,
    lane_of,
    lost_behind_event,
    lost_event,
    step_event,
)
from conformance.client.process import (
    CALLBACKS,
    Callback,
    CallbackPipe,
    ClientProcess,
    arguments,
    python_first,
)
from conformance.client.requests import MemberRequest
from conformance.client.server import ClientLink, Server, narrower
from conformance.client.subject import GROUP, TOPIC, JoiningClient, MemberNames, subject_of
from conformance.client.wishes import LOST_ANSWER, LOST_REQUEST, Wishes
from conformance.errors import UserError
from conformance.judge.budget import JudgeLimits, LimitReached
from conformance.judge.events import Event
from conformance.judge.follow import FollowedRecording
from conformance.kafka.entities import Entity, Received, in_milliseconds
from conformance.tla import Action, ActionPattern, Spec, State, Value

__all__ = [
    "LIMITS",
    "OWES_CALLBACK",
    "OWES_REQUEST",
    "QUIET",
    "ClientKind",
    "Ending",
    "ExamplePlan",
    "ExampleResult",
    "has_instance",
    "run_example",
    "silent",
]

QUIET = 0
"""The number of the example to which nothing is done: it shows whether the client joins at all."""
OWES_REQUEST, OWES_CALLBACK = "ClientOwesRequest", "ClientOwesCallback"
"""The state formulas that say whether the client has to send, or to tell its user, something."""
LIMITS = JudgeLimits(silent=5, candidates=5_000, seconds=300.0)
"""For following an example. The seconds are those of a process that serves other examples too."""


@dataclass(frozen=True, slots=True)
class ExamplePlan:
    """What all examples have in common. Times are in seconds, by the example's clock."""

    command: str
    seed: int
    requests: int = 15
    """Of the client, its commits not counted, after which nothing more is done to it."""
    start: float = 60.0
    """So long it may take to join."""
    patience: float = 8.0
    """So long it may owe a request."""
    read: float = 1.5
    """After so long it must have read an answer."""
    length: float = 60.0
    """After so long in the group nothing more is done to it; after twice that it is ended."""


@dataclass(frozen=True, slots=True)
class ClientKind:
    """The specification bound for one kind of client, and the answers that it allows."""

    spec: Spec
    answers: AllowedAnswers


Kinds = Callable[[JoiningClient], ClientKind]


def silent(*, is_told: bool) -> tuple[ActionPattern, ...]:
    """The client's steps that nobody sees; with callbacks, those that have none."""
    names = ["ProcessesJoinGroup", "ProcessesSyncGroup", "DropsJoin", "ReadsAnswer"]
    names += ["SetsAside", "ReadsAside", "ResumesSync", "StopsResending", "RequestsRejoin"]
    names += [] if is_told else ["CompletesJoin"]
    return tuple(ActionPattern(name, ("m1",)) for name in names)


class Ending(StrEnum):
    """How an example came to its end."""

    WHOLE = "whole"
    ABSENT = "the client did not join"
    FATAL = "the client ended with an error that the specification makes fatal"
    DEPARTED = "nothing explains what the client did"
    OWING = "the client owes a request and sends none"
    DIED = "the client ended by itself"
    STAYED = "the client did not end after SIGTERM"
    RESTLESS = "the client was not settled in its group when the time was over"
    LIMITED = "the loop does not serve what the client needs"
    UNJUDGED = "the judge came to no verdict"


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """What came of an example; `events` are for the judge, `story` for people."""

    number: int
    ending: Ending
    detail: str
    subject: JoiningClient | None
    events: tuple[Event, ...]
    story: tuple[str, ...]
    given: Mapping[tuple[str, str], int]
    """How often each answer was given, by request and answer."""
    told: bool
    """Whether the client told of callbacks."""
    seconds: float
    last_lines: str = ""
    instead: tuple[str, ...] = ()
    """What the client might have sent in place of what nothing explains."""
    late_by: float = 0.0
    """Seconds for which this process did nothing, at worst, though it had to."""
    breaches: tuple[Breach, ...] = ()
    """Requests that no state allows; they end no example."""
    owed: Mapping[DutyKind, int] = field(default_factory=dict)
    """How often an answer made the client owe something."""
    done: Mapping[DutyKind, int] = field(default_factory=dict)
    """How often it did it."""
    seen: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How often each request came, by its API and the state of the group."""


def has_instance(number: int) -> bool:
    """Whether an example gives its client a `group.instance.id`."""
    return number % 2 == 0


async def run_example(
    plan: ExamplePlan, number: int, kinds: Kinds, *, is_told: bool
) -> ExampleResult:
    """Start a client, answer it, end it. `told`: the client tells of its callbacks.

    UserError for a client that cannot be judged.
    """
    with tempfile.TemporaryDirectory(prefix="kconform-client-") as folder:
        example = _Example(plan, number, kinds, is_told, Path(folder))
        return await example.run()


@dataclass(frozen=True, slots=True)
class _JoinedExample:
    """What there is from the first JoinGroup on."""

    kind: ClientKind
    following: FollowedRecording
    messages: Messages
    at: float
    """By the example's clock."""


@dataclass(slots=True)
class _Example:
    """An example while it runs. No task sees half of a step: each is taken without waiting."""

    plan: ExamplePlan
    number: int
    kinds: Kinds
    told: bool
    folder: Path
    story: list[str] = field(default_factory=list)
    ending: Ending | None = None
    detail: str = ""
    subject: JoiningClient | None = None
    began: float = field(default_factory=time.monotonic)
    clock: LoopClock = field(default_factory=LoopClock)
    callbacks_seen: int = 0
    _problem: BaseException | None = None
    _joined: _JoinedExample | None = None
    _unread: float | None = None
    """When the client was told something last that it has perhaps not read."""
    _unread_channel: bool = False
    """Whether it was told it in the channel, and has not to answer it at once."""
    _owes_since: float | None = None
    _looked_up_at: float = -math.inf
    """When the client asked for its coordinator last."""
    _told_at: dict[Value, float] = field(default_factory=dict)
    """When each answer to a heartbeat or commit, as the specification has it, was given last."""
    _duties: Duties = field(init=False)
    _given: GivenAnswers = field(init=False)
    _breaches: dict[str, Breach] = field(default_factory=dict)
    """The first of each title."""
    _limits: list[str] = field(default_factory=list)
    """What the client asked for that the loop does not serve."""
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _calm: bool = False
    """Nothing more is done to the client."""
    _settled: bool = False
    _session_ms: int = 0
    """session.timeout.ms, as the last JoinGroup had it."""
    _closing: bool = False
    _ticks: int = 0
    _heard_at: list[tuple[int, Callback]] = field(default_factory=list)
    """Callbacks that have come, with the tick, and are no events yet."""
    _answered_on: ClientLink | None = None
    """Where a JoinGroup, SyncGroup or LeaveGroup was answered last."""
    _channel_waits: bool = False
    """Whether a JoinGroup, SyncGroup or LeaveGroup has come, and is not over."""
    _behind: list[MemberRequest] = field(default_factory=list)
    """The heartbeats and commits that have come, and are not taken up yet."""
    _replaced: str = ""
    """The member id that a static client has replaced."""
    _lanes: dict[Lane, asyncio.Lock] = field(
        default_factory=lambda: {"channel": asyncio.Lock(), "heartbeat": asyncio.Lock()}
    )
    _draw: random.Random = field(init=False)
    _wishes: Wishes = field(init=False)
    _callbacks: CallbackPipe = field(init=False)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        seed = f"{self.plan.seed}-{self.number}"
        self._draw = random.Random(seed)
        self._callbacks = CallbackPipe(self.folder)
        self._duties = Duties(self.clock)
        self._wishes = Wishes(seed, self.plan.requests, self._duties, self._draw)
        self._given = GivenAnswers(self.clock)

    # ---- the whole of it -------------------------------------------------------------------

    async def run(self) -> ExampleResult:
        async with Server(self) as server:
            self._given.logs = server.logs
            client = await self._started(server.port)
            beats = asyncio.create_task(self._keep_time())
            try:
                await self._watched(client)
                if self.ending is None:
                    await self._closed(client)
            finally:
                beats.cancel()
                await client.end()
                self._callbacks.close()
        if self._problem is not None:
            raise self._problem
        if self.ending is Ending.FATAL:
            self._duties.meet(Act.END)
        if self._limits and self.ending in _PERHAPS_LIMITED:
            self.ending, self.detail = Ending.LIMITED, "; ".join(self._limits)
        events = self._joined.following.events if self._joined else []
        return ExampleResult(
            self.number,
            self.ending or Ending.WHOLE,
            self.detail,
            self.subject,
            tuple(events),
            tuple(self.story),
            dict(self._wishes.given),
            self.callbacks_seen > 0,
            time.monotonic() - self.began,
            client.last_lines(),
            self._instead(),
            self.clock.late_by,
            tuple(self._breaches.values()),
            dict(self._duties.made),
            dict(self._duties.done),
            dict(self._seen),
        )

    async def _keep_time(self) -> None:
        """Note how late the loop of all examples comes to what is due."""
        while True:
            await asyncio.sleep(BEAT)
            self.clock.beat()

    def _instead(self) -> tuple[str, ...]:
        if self.ending is not Ending.DEPARTED or self._joined is None:
            return ()
        reader = self._at.kind.answers.reader
        steps = self._at.following.instead(SENDS)
        texts = (self._at.messages.may_send(action.name, state, reader) for action, state in steps)
        return tuple(sorted({text for text in texts if text}))

    async def _started(self, port: int) -> ClientProcess:
        instance = f"instance-{self.number}" if has_instance(self.number) else ""
        values = {
            "bootstrap": f"127.0.0.1:{port}",
            "topic": TOPIC,
            "group": GROUP,
            "instance": instance,
        }
        words = python_first(arguments(self.plan.command, values))
        further = {CALLBACKS: str(self._callbacks.path)}
        return await ClientProcess.start(words, further, self.folder / "output")

    async def _watched(self, client: ClientProcess) -> None:
        """Until the client has been asked enough, or something ends the example."""
        while self.ending is None and not self._settled:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), BEAT)
            if self.ending is None and self._problem is None:
                self._tick(client)
            if self._problem is not None:
                return

    def _tick(self, client: ClientProcess) -> None:
        try:
            self._ticks += 1
            self._heard()
            self._callbacks_before(self._ticks - 1)  # what was sent before them has come by now
            self._settle_answers()
            if client.exit_status is not None:
                self._died(client)
            elif self._joined is None:
                self._not_joined(client)
            else:
                self._owing()
                self._in_time()
        except UserError as error:
            self._problem = error

    async def _closed(self, client: ClientProcess) -> None:
        """The client leaves in order; what it sends until then is still judged."""
        self._closing = True
        self._say("the client is asked to end (SIGTERM)")
        if not await client.ask_to_end():
            self._end(Ending.STAYED, "it still runs, so its leaving was not judged")

    def _end(self, ending: Ending, detail: str = "") -> None:
        if self.ending is None:
            self.ending, self.detail = ending, detail
            self._over.set()

    @property
    def _at(self) -> _JoinedExample:
        assert self._joined is not None, "the client has not joined"
        return self._joined

    # ---- what there is to see --------------------------------------------------------------

    def _see(self, event: Event) -> bool:
        """Take an event; False, and the example is over, if nothing explains it or time is up."""
        if self.ending is not None:
            return False
        try:
            if self._at.following.see(event):
                return True
            self._end(Ending.DEPARTED, event.source)
        except LimitReached as error:
            self._end(Ending.LIMITED, str(error))
        return False

    def _say(self, text: str) -> None:
        self.story.append(f"{time.monotonic() - self.began:7.3f} s  {text}")

    def _heard(self) -> None:
        """The callbacks that have come; what they are in the order of things shows later."""
        for callback in self._callbacks.read():
            self.callbacks_seen += 1
            closes = self._closing and callback.kind != "assigned"
            if self.told and self._joined is not None and not closes:
                self._heard_at.append((self._ticks, callback))

    def _callbacks_before(self, tick: int | None = None) -> None:
        """Take the callbacks as events, those that came before a tick; all, if none is named."""
        while self._heard_at and self._going_on:
            came, callback = self._heard_at[0]
            if tick is not None and came >= tick:
                return
            del self._heard_at[0]
            shown = ", ".join(map(str, sorted(callback.partitions))) or "nothing"
            text = f"client: callback {callback.kind} ({shown})"
            self._say(text)
            event = assigned_event if callback.kind == "assigned" else given_up_event
            self._see(event(callback.partitions, text))

    def _settle_answers(self) -> None:
        """Of what was told long ago, the client has read all."""
        since = self._unread
        if since is None or self.clock.now() - since < self.plan.read:
            return
        if self._busy:
            return
        channel, self._unread, self._unread_channel = self._unread_channel, None, False
        text = f"{self.plan.read:g} s after it was told something last"
        self._see(has_read_event(text, channel=channel))

    def _owing(self) -> None:
        """Whether the client is late with what it owes in every state that is possible."""
        now, duty = self.clock.now(), self._duties.overdue()
        if duty is not None:
            kind = duty.kind
            self._owes(
                f"for {now - duty.at:.0f} s after {kind.api} was answered {kind.answer} the client "
                f"owes {kind.owes}"
            )
        elif self._busy or self._unread is not None or not self._what_is_owed():
            self._owes_since = None
        elif self._owes_since is None:
            self._owes_since = now
        elif now - self._owes_since > self.plan.patience:
            self._owes(f"for {self.plan.patience:g} s the client owes {self._what_is_owed()}")

    def _owes(self, text: str) -> None:
        self._say(text)
        self._end(Ending.OWING, text)

    @property
    def _busy(self) -> bool:
        """Whether a request waits for the coordinator."""
        return (
            bool(self._behind)
            or self._channel_waits
            or any(lock.locked() for lock in self._lanes.values())
        )

    def _in_time(self) -> None:
        """End what has come to its end, though the client's process may go on for ever."""
        assert self._joined is not None
        states = self._at.following.states
        read = not self._busy and self._unread is None
        if read and states and all(map(self._told_fatal, states)):
            self._end(Ending.FATAL, "it still runs")
        seconds = self.clock.now() - self._joined.at
        self._calm = self._calm or seconds > self.plan.length
        if seconds > 2 * self.plan.length:
            self._end(Ending.RESTLESS, f"after {seconds:.0f} s")

    def _what_is_owed(self) -> str:
        """By every state that is possible; "" if by some nothing is."""
        formulas = {"a request": OWES_REQUEST}
        formulas |= {"the callback of its assignment": OWES_CALLBACK} if self.told else {}
        for what, name in formulas.items():
            if self._holds(name, self._at.following.states):
                return what
        return ""

    def _holds(self, formula: str, states: Sequence[State]) -> bool:
        return all(map(self._at.kind.spec.state_formula(formula), states))

    def _owe(self, api: str, answer: str) -> None:
        """Keep what the answer makes the client owe, once it has read all that it was told.

        The specification takes a duty to join back with the client's next JoinGroup only, so a
        later answer does not put it off, but one after which a request is sent again.
        """
        if answer in REPEATED:
            self._duties.put_off(Act.JOIN)
        kind = duty_kind(api, answer)
        if kind is None or (kind.owes is not Act.LOOK_UP and self._duties.owes(kind.owes)):
            return
        if kind.owes is Act.LOOK_UP and self._may_look_up():
            return
        if kind.owes in _AT_ONCE or self._owes_by_specification(kind.owes):
            self._duties.owe(kind, self._bound_of(kind.owes))

    def _may_look_up(self) -> bool:
        """Whether the client perhaps still waits for its coordinator's address.

        Who reads then that a broker is not the coordinator does not ask a second time
        (AbstractCoordinator.lookupCoordinator; franz-go: deleteStaleCoordinator).
        """
        return self.clock.now() - self._looked_up_at < self.plan.read

    def _owes_by_specification(self, act: Act) -> bool:
        """Whether the client owes a request, or has to end, when it has read all it was told."""
        all_read = has_read_event("", channel=False)
        read = self._at.following.states_after(all_read, self._reads_in_time)
        if act is Act.END:
            return bool(read) and all(map(self._told_fatal, read))
        return bool(read) and self._holds(OWES_REQUEST, read)

    def _bound_of(self, act: Act) -> float:
        """Seconds for a duty; an end has its own time, and a heartbeat keeps the session."""
        patience = self.plan.read + self.plan.patience
        session = self._session_ms / 1000
        return {Act.END: math.inf, Act.HEARTBEAT: max(patience, session)}.get(act, patience)

    def _reads_in_time(self, state: State) -> bool:
        """Whether a state leaves no answer unread that was given too long ago."""
        unread = self._at.kind.answers.reader.of(state, "aside", "m1")
        assert isinstance(unread, frozenset), "a set of answers"
        latest = self.clock.now() - self.plan.read
        return all(self._told_at.get(item, -math.inf) > latest for item in unread)

    def _forget_unread(self) -> None:
        """A connection has ended: an answer that was given a moment ago may never be read, and a
        request is perhaps sent again."""
        self._duties.forget(self.plan.read)
        self._duties.put_off(Act.JOIN)

    def _died(self, client: ClientProcess) -> None:
        status = client.exit_status
        self._note_version(client)
        if self._joined is None:
            self._died_early(client)
            return
        self._say(f"the client ends by itself, exit status {status}")
        failed = any(self._told_fatal(state) for state in self._at.following.states)
        self._end(Ending.FATAL if failed else Ending.DIED, f"exit status {status}")

    def _note_version(self, client: ClientProcess) -> None:
        """A client may end because it needs a version that it was not offered, and say so."""
        says = next(filter(_VERSION.search, client.last_lines().splitlines()), "")
        if says:
            self.limited(f"the client says {says.strip()!r}; the loop serves {narrower()}")

    def _died_early(self, client: ClientProcess) -> None:
        """A command that has never joined is its user's mistake; this one has (QUIET)."""
        text = f"exit status {client.exit_status}"
        lines = client.last_lines()
        if self.number == QUIET and not self._limits:
            raise UserError(
                f"The client ended ({text}) before it had joined the group. Its last lines:\n"
                f"{lines or '(none)'}"
            )
        self._end(Ending.ABSENT, f"{text}: {lines.rpartition(chr(10))[2]}")

    def _told_fatal(self, state: State) -> bool:
        """Whether the user was, or is about to be, thrown an error."""
        reader = self._at.kind.answers.reader
        if reader.of(state, "failed", "m1") is True:
            return True
        errors = {reader.of_client(state, lane)["error"] for lane in self._lanes}
        return bool(errors & FATAL)

    def _not_joined(self, client: ClientProcess) -> None:
        if self.clock.now() <= self.plan.start:
            return
        if self.number != QUIET or self._limits:  # QUIET has joined, with the same command
            self._end(Ending.ABSENT, f"after {self.plan.start:g} s")
        else:
            raise UserError(
                f"The client has not joined a group within {self.plan.start:g} s. Let it subscribe "
                "to {topic} at {bootstrap} with the group {group}. Its last lines:\n"
                f"{client.last_lines() or '(none)'}"
            )

    def breach(self, breach: Breach) -> None:
        """As of `server.Handler`."""
        if breach.title not in self._breaches:
            self._say(f"client: {breach.title}: {breach.evidence}")
            self._breaches[breach.title] = breach

    def no_request(self, text: str) -> None:
        """As of `server.Handler`."""
        if self._joined is None and self.number == QUIET:
            self._fail(
                UserError(f"The client sends what is no request of Kafka's protocol: {text}.")
            )

    def limited(self, text: str) -> None:
        """As of `server.Handler`."""
        self._say(f"the loop's limit: {text}")
        if text not in self._limits:
            self._limits.append(text)

    def passed(self, received: Received) -> None:
        """As of `server.Handler`."""
        if received.api == "find_coordinator":
            self._duties.meet(Act.LOOK_UP)
            self._looked_up_at = self.clock.now()
        elif received.api == "fetch" and self._going_on:
            for breach in self._given.fetched(received.body, self.plan.read):
                self.breach(breach)

    # ---- requests --------------------------------------------------------------------------

    def arrived(self, request: MemberRequest) -> None:
        """As of `server.Handler`."""
        try:
            if self._going_on:
                if self._joined is None:
                    self._begin(request)
                self._heard()
                self._sent(request)
        except Exception as error:  # noqa: BLE001  whatever it is, it ends the example
            self._stop(error)

    def dropped(self, requests: Sequence[MemberRequest], link: ClientLink) -> None:
        """As of `server.Handler`."""
        self._forget_unread()
        if link is self._answered_on and self._going_on:
            self._answered_on = None
            self._given.forget()
            self._see(closed_event("a connection of the client is closed"))
        for request in requests:
            if not self._going_on:
                return
            text = f"    {request.name} is lost with its connection"
            self._say(text)
            if lane_of(request) == "heartbeat":
                self._see(lost_behind_event(self._no_longer_behind(request), text))
            else:
                self._channel_waits = False
                self._see(lost_event("channel", text))

    async def exchange(self, request: MemberRequest, link: ClientLink) -> Entity | None:
        """As of `server.Handler`."""
        try:
            async with self._lanes[lane_of(request)]:
                answer = await self._taken(request, link)
                if lane_of(request) == "channel":
                    self._channel_waits = False
                    self._answered_on = None if answer is None else link
                return answer
        except Exception as error:  # noqa: BLE001  as above
            self._stop(error)
            return None

    def _no_longer_behind(self, request: MemberRequest) -> int:
        """Take a request out of those that wait; its number among them, from 1."""
        index = next(n for n, item in enumerate(self._behind) if item is request)
        del self._behind[index]
        return index + 1

    @property
    def _going_on(self) -> bool:
        return self.ending is None and self._problem is None

    def _stop(self, error: Exception) -> None:
        """A bound of the loop's own says nothing of the client; all else is the loop's fault."""
        if isinstance(error, BoundsReached | LimitReached):
            self._end(Ending.LIMITED, str(error))
        else:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._problem = self._problem or error
        self._over.set()

    async def _taken(self, request: MemberRequest, link: ClientLink) -> Entity | None:
        if not self._going_on:
            return None
        lane = lane_of(request)
        if lane == "heartbeat":
            number = self._no_longer_behind(request)
            self._see(self._at.messages.taken_up(request, number, "the coordinator's side"))
        if not await self._held(link):
            self._lost(lane, f"{request.name}: the client ends the connection")
            return None
        return await self._answered(request, lane, link) if self._going_on else None

    def _begin(self, request: MemberRequest) -> None:
        if request.api != "join_group":
            raise UserError(
                f"The client sends {request.name} before it has joined. Only members of a "
                "group are judged: let it subscribe to {topic}, and not assign partitions itself."
            )
        self.subject = subject_of(request)
        self._wishes.aim_at(self.number, is_static=self.subject.instance is not None)
        kind = self.kinds(self.subject)
        salt = f"{random.Random(f'{self.plan.seed}-{self.number}-ids').getrandbits(64):016x}"
        self._joined = _JoinedExample(
            kind,
            FollowedRecording(kind.spec, silent(is_told=self.told), LIMITS),
            Messages(self.subject, MemberNames(salt), self.told),
            self.clock.now(),
        )

    def _sent(self, request: MemberRequest) -> bool:
        """The client has sent it: whether anything explains that."""
        text = f"client: {self._at.messages.said(request)}"
        events = self._at.messages.events(request, text, len(self._behind))
        # Callbacks come another way. Who joins has returned from them; a heartbeat or a commit may
        # have been sent before those that have come since.
        if lane_of(request) == "channel" or not self._at.following.explains(events[0]):
            self._callbacks_before()
        self._say(text)
        if lane_of(request) == "heartbeat":
            self._behind.append(request)
        else:
            self._channel_waits, self._unread_channel = True, False
        explained = all(self._see(event) for event in events)
        self._note_seen(request)
        return explained

    def _note_seen(self, request: MemberRequest) -> None:
        """Count the request, see what it breaks, and what it was owed for."""
        api = request.name
        states = self._at.following.states
        if states:
            group = str(self._at.kind.answers.reader.whole(states[0], "groupState"))
            self._seen[api, group] += 1
            self._wishes.has_committed |= api == "OffsetCommit"
        breaches = (*unreadable_parts(request), *self._given.committed(request))
        for breach in breaches:
            self.breach(breach)
        if request.api == "join_group":
            self._session_ms = in_milliseconds(request.body.session_timeout)
            self._given.forget()
        if lane_of(request) == "channel":
            self._meet_by_channel()
        elif api == "Heartbeat" and request.generation_id == self._given.generation:
            self._duties.meet(Act.HEARTBEAT)

    def _meet_by_channel(self) -> None:
        """What the client owed it has sent, if by all that is possible it has read why."""
        owed = [duty for duty in self._duties.open if duty.kind.owes in (Act.JOIN, Act.SYNC)]
        if (
            any(duty.kind.api in ("Heartbeat", "OffsetCommit") for duty in owed)
            and self._may_be_unread()
        ):
            self._duties.release(Act.JOIN)
        self._duties.meet(Act.JOIN, Act.SYNC)
        self._duties.release(Act.HEARTBEAT, Act.END)

    def _may_be_unread(self) -> bool:
        """Whether an answer to a heartbeat or a commit is perhaps still to be read."""
        reader = self._at.kind.answers.reader
        return any(reader.of(state, "aside", "m1") for state in self._at.following.states)

    def _lost(self, lane: Lane, text: str) -> None:
        """The exchange ends without an answer."""
        self._forget_unread()
        if lane == "channel":
            self._given.forget()
        self._say(text)
        self._see(lost_event(lane, text))

    async def _held(self, link: ClientLink) -> bool:
        """Let time pass before the answer is decided; False if the client gives up meanwhile."""
        late = not self._calm and self._draw.random() < _LATE
        return await _waited(link, self._draw.uniform(*(_LONG if late else _SHORT)))

    async def _answered(
        self, request: MemberRequest, lane: Lane, link: ClientLink
    ) -> Entity | None:
        api, reader = request.name, self._at.kind.answers.reader
        self._wishes.answered += api != "OffsetCommit"
        self._calm = self._calm or self._wishes.answered > self.plan.requests
        outcome = ""
        while reader.waits(self._now(lane), lane):
            outcome = self._decided(api, lane)
            if outcome == LOST_REQUEST:
                self._wishes.given[api, LOST_REQUEST] += 1
                self._lost(lane, f"coordinator: cuts the connection, {api} is lost")
                return None
            if not reader.waits(self._now(lane), lane):
                break
            if not await _waited(link, self._draw.uniform(*_LONG)):
                self._lost(lane, f"{api}: the client ends the connection")
                return None
            if self.ending is not None:
                return None
        state = self._now(lane)
        text = f"coordinator: {api}: {self._at.messages.told_of(request, state, reader)}"
        if outcome == LOST_ANSWER:
            self._wishes.given[api, LOST_ANSWER] += 1
            self._lost(lane, f"{text}, which is lost: the connection is cut")
            return None
        self._wishes.given[api, reader.outcome(state, lane)] += 1
        self._say(text)
        if lane == "heartbeat":
            self._told_at[reader.of_client(state, lane)] = self.clock.now()
        self._note_unread(api, lane, str(reader.of_client(state, lane)["error"]))
        self._owe(api, reader.outcome(state, lane))
        answer = self._at.messages.answer(request, state, reader, self._replaced)
        self._given.note(request, answer)
        self._settled = self._calm and self._is_settled(state, lane)
        return answer

    def _note_unread(self, api: str, lane: Lane, error: str) -> None:
        """Of a success a heartbeat or commit makes nothing, and a join's calls for a SyncGroup."""
        if lane == "channel":
            self._unread_channel = api != "JoinGroup" or error != "NONE"
        elif error == "NONE":
            return
        elif error in DISCONNECTS:
            self._forget_unread()
        self._unread = self.clock.now()

    def _is_settled(self, state: State, lane: Lane) -> bool:
        """Whether the client is a member again, which is told so."""
        reader = self._at.kind.answers.reader
        if self._unread is not None or self._duties.open:
            return False
        if lane != "heartbeat" or reader.of_client(state, lane)["error"] != "NONE":
            return False
        return any(
            reader.of(state, "memberState", "m1") == "STABLE"
            and reader.of_client(state, "joinFuture")["state"] == "None"
            and not self._holds(OWES_REQUEST, (state,))
            for state in self._at.following.states
        )

    def _now(self, lane: Lane) -> State:
        """A state that is possible: one in which the request there is not yet over."""
        reader = self._at.kind.answers.reader
        for state in self._at.following.states:
            if str(reader.of_client(state, lane)["type"]) != "None":
                return state
        return self._at.following.states[0]

    # ---- decisions -------------------------------------------------------------------------

    def _decided(self, api: str, lane: Lane) -> str:
        """Choose an answer and take the steps that lead to it, or to where it is parked."""
        answers = self._at.kind.answers
        calm = self._calm or api == "LeaveGroup" or self._wishes.awaits
        if not calm and self._draw.random() < _PRELUDE:
            self._take(answers.prelude(self._now(lane), lane, self._draw), lane)
        wishes = self._wishes.answers(api, calm=calm)
        if wishes[0] == LOST_REQUEST:
            return LOST_REQUEST
        possible = [wish for wish in wishes if wish not in (LOST_REQUEST, LOST_ANSWER)]
        now = self._now(lane)
        way = answers.way(now, lane, possible, self._draw, by_coordinator=calm)
        self._take(way.steps, lane, may_park=not calm)
        return LOST_ANSWER if wishes[0] == LOST_ANSWER else way.outcome

    def _take(self, steps: Sequence[ActionStep], lane: Lane, *, may_park: bool = False) -> None:
        """Take the steps; where a request is parked, perhaps let it be for a while."""
        reader = self._at.kind.answers.reader
        parks = may_park and self._draw.random() < _PARKED
        before = self._now(lane)
        for step in steps:
            event = step_event(before, step, reader)
            if not self._at.following.see(event):
                raise AssertionError(f"the coordinator took a step that nothing explains: {event}")
            self._note_replaced(before, step)
            before = step.state
            self._tell_step(str(step.action))
            if parks and str(reader.of_client(before, lane)["type"]).endswith("Parked"):
                return

    def _note_replaced(self, before: State, step: ActionStep) -> None:
        """Keep the id of a static member whose place the client takes."""
        if step.action == Action("HandlesJoinGroup", ("m1",)) and self._at.kind.answers.has_double:
            self._replaced = self._at.kind.answers.reader.static_id(before)

    def _tell_step(self, action: str) -> None:
        name = action.partition("(")[0]
        if not name.startswith(("Handles", "Refuses")) or '"m1"' not in action:
            self._say(f"    {action}")


_VERSION = re.compile(
    r"(?i)unsupported.?version|version\b.{0,60}\b(not|un)\W?support|"
    r"(not|un)\W?support.{0,60}\bversion|(no|does not have a) (usable|compatible|common) version"
)
"""What clients say where a broker lacks a version: Kafka's error, and the words of libraries."""
_AT_ONCE = frozenset({Act.SYNC, Act.HEARTBEAT, Act.LOOK_UP})
"""What an answer calls for, whatever else the client has to read."""
_LATE, _SHORT, _LONG = 0.15, (0.0, 0.02), (0.1, 0.5)
_PRELUDE, _PARKED = 0.25, 0.3
_PERHAPS_LIMITED = frozenset({Ending.ABSENT, Ending.OWING, Ending.DIED, Ending.RESTLESS})
"""What a client may come to for want of something that the loop does not serve."""


async def _waited(link: ClientLink, seconds: float) -> bool:
    """Let time pass; False if the client ends the connection meanwhile."""
    try:
        await asyncio.wait_for(link.ended.wait(), seconds)
    except TimeoutError:
        return True
    return False
