"""The system under test: a consumer's commits, driven by ConsumerCommits.tla's actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.systems.positions.client import (
    BACKOFF_MS,
    BROKER,
    CALL_TIMEOUT_MS,
    INTERVAL_MS,
    PARTITION,
    REBALANCE_TIMEOUT_MS,
    TOPIC,
    Client,
)
from conformance.systems.positions.commits_view import (
    NO_OFFSET,
    OF_CONSUMER,
    VARIABLES,
    CallbackOutcome,
)
from conformance.systems.protocol import ActionRefused, Observation, step_of
from conformance.systems.rewinding import Rewinder, RewindingSystem, Snapshot
from conformance.systems.threads import (
    InterruptibleThreads,
    StartedThreads,
    WholeSections,
    interrupted,
    take_two_threads,
)
from conformance.tla import Action, Value
from impl.errors import Errors, KafkaException
from impl.group.client.consumer_coordinator import Offsets
from impl.group.client.errors import (
    AuthenticationException,
    DisconnectException,
    TopicAuthorizationException,
)
from impl.group.client.network_client import GroupResponse
from impl.group.client.subscription_state import OffsetAndMetadata
from impl.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
)

MEMBER_ID = "member"
_FAILURES: dict[str, KafkaException] = {
    "authentication": AuthenticationException("who the client is cannot be proved any more"),
    "metadata": TopicAuthorizationException(TOPIC),
}


@dataclass(frozen=True, slots=True)
class UserCallback:
    """OffsetCommitCallback of a call of commitAsync."""

    id: int
    outcomes: list[CallbackOutcome]

    def __call__(self, offsets: Offsets, error: Exception | None) -> None:
        """Note how the commit ended."""
        self.outcomes.append(CallbackOutcome(self.id, offsets, error))


class AnsweringGroup:
    """The group's coordinator as the consumer meets it, and the heartbeat thread."""

    def __init__(self, client: Client) -> None:
        self.committed = NO_OFFSET
        self._generation = 0
        self._client = client

    def _come(self) -> None:
        """What has come is called back in the heartbeat thread; the application sees it then."""
        self._client.network.poll_no_wakeup()
        self._client.go_on()

    def _answer(self, kind: type[object], response: GroupResponse | Exception) -> None:
        request, _ = self._client.oldest(kind)
        self._client.network.respond(request, response)
        self._come()

    def answer_lookup(self, succeeds: bool) -> None:
        """FindCoordinator is answered."""
        if succeeds:
            response = FindCoordinatorResponse(Errors.NONE, BROKER)
        else:
            response = FindCoordinatorResponse(Errors.COORDINATOR_NOT_AVAILABLE)
        self._answer(FindCoordinatorRequest, response)

    def _take(self) -> OffsetCommitRequest:
        _, commit = self._client.oldest(OffsetCommitRequest)
        if commit.generation_id not in (-1, self._generation):
            raise ActionRefused(f"the commit is of generation {commit.generation_id}")
        self.committed = commit.partitions[0].committed_offset
        return commit

    def answer_commit(self, error: str) -> None:
        """The oldest commit is answered, with an error or NONE."""
        code = Errors[error]
        if code is Errors.NONE:
            self._take()
        partition = OffsetCommitResponsePartition(PARTITION, code)
        self._answer(OffsetCommitRequest, OffsetCommitResponse((partition,)))

    def disconnect(self, is_taken: bool) -> None:
        """The connection breaks; the oldest commit may have been taken."""
        if is_taken:
            self._take()
        network, coordinator = self._client.network, self._client.coordinator
        for request in network.in_flight():
            if not isinstance(request.request, FindCoordinatorRequest):
                network.respond(request, DisconnectException("the connection broke"))
        if not coordinator.coordinator_unknown():
            coordinator.mark_coordinator_unknown("the connection broke", is_disconnected=True)
        self._come()

    def answer_join(self) -> None:
        """The group has a new generation."""
        self._generation += 1
        self._answer(
            JoinGroupRequest,
            JoinGroupResponse(
                Errors.NONE, MEMBER_ID, self._generation, "consumer", "range", "another"
            ),
        )

    def hear(self, error: Errors) -> None:
        """A heartbeat is sent and answered."""
        self._client.coordinator.send_heartbeat_request()
        self._client.network.poll_no_wakeup()
        self._answer(HeartbeatRequest, HeartbeatResponse(error))

    def hear_end(self) -> None:
        """The member was put out meanwhile."""
        self._generation += 1
        self.hear(Errors.UNKNOWN_MEMBER_ID)

    def overrun(self) -> None:
        """The heartbeat thread sees that the application does not poll."""
        self._generation += 1
        self._client.clock.sleep(REBALANCE_TIMEOUT_MS)
        thread = self._client.coordinator.heartbeat_thread
        if thread is None or not thread.enabled:
            raise ActionRefused("no heartbeat thread watches the application")
        thread.run_once()

    def end_heartbeat_thread(self, failure: str) -> None:
        """Metadata comes with an error, and the heartbeat thread is the one that polls next."""
        thread = self._client.coordinator.heartbeat_thread
        if thread is None or not thread.enabled or thread.has_failed:
            raise ActionRefused("no heartbeat thread polls the network")
        self._client.network.metadata_failed(_FAILURES[failure])
        if thread.run_once():
            raise ActionRefused(f"the thread goes on after {failure}")


class CommitsSystem(WholeSections, RewindingSystem):
    """One consumer; an environment that does what the actions say."""

    variables = VARIABLES
    repeatable = True
    client: Client
    group: AnsweringGroup

    def __init__(self, *, auto_commit: bool) -> None:
        self.commits_automatically = auto_commit
        self._interruptible = False
        self._concurrency: StartedThreads | InterruptibleThreads = StartedThreads()
        self._actions: dict[str, Callable[..., None]] = {
            "Subscribe": lambda: self.client.consumer.subscribe([TOPIC]),
            "Assign": lambda: self.client.consumer.assign([PARTITION]),
            "Poll": self._poll,
            "Begin": self._begin,
            "Consume": self._consume,
            "CallCommitAsync": self._commit_async,
            "CallCommitSync": self._commit_sync,
            "Unsubscribe": lambda: self.client.consumer.unsubscribe(),
            "Close": self._close,
            "Wakeup": self._wakeup,
            "PassInterval": lambda: self._pass(INTERVAL_MS),
            "PassBackoff": lambda: self._pass(BACKOFF_MS),
            "PassRebalanceTimeout": lambda: self._pass(REBALANCE_TIMEOUT_MS),
            "PassCallTimeout": self._pass_call_timeout,
            "AnswerLookup": lambda succeeds: self.group.answer_lookup(succeeds),
            "AnswerCommit": lambda error: self.group.answer_commit(error),
            "Disconnect": lambda is_taken: self.group.disconnect(is_taken),
            "AnswerJoin": lambda: self.group.answer_join(),
            "HearRebalance": lambda: self.group.hear(Errors.REBALANCE_IN_PROGRESS),
            "HearEnd": lambda: self.group.hear_end(),
            "OverrunPollInterval": lambda: self.group.overrun(),
            "EndHeartbeatThread": lambda failure: self.group.end_heartbeat_thread(failure),
        }
        self._rewinder = Rewinder(self, apart=(self._actions,))
        self.client = Client(self._concurrency, auto_commit=auto_commit)

    # ---- SystemUnderTest -------------------------------------------------------------------

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """A consumer that was just constructed. There is one initial state."""
        self._rewinder.forget()
        self.client.end()
        if self._interruptible:
            self._concurrency = InterruptibleThreads()
        self.client = Client(self._concurrency, auto_commit=self.commits_automatically)
        self.call: tuple[str, int] = ("none", NO_OFFSET)
        self.is_closed = False
        self.outcomes: list[CallbackOutcome] = []
        self.group = AnsweringGroup(self.client)

    def apply(self, action: Action) -> None:
        """Take one step. Raises ActionRefused if the implementation cannot."""
        step = step_of(self._actions, action)
        step(*action.args)
        if not self.client.is_waiting():
            self.is_closed = self.is_closed or self.call[0] == "close"
            self.call = ("none", NO_OFFSET)

    def observe(self) -> Observation:
        """The observed variables as the objects have them now."""
        self._concurrency.demand_started()
        return Observation({name: value(self) for name, value in OF_CONSUMER.items()})

    # ---- Snapshots ----------------------------------------------------------------------------

    def restore(self, snapshot: Snapshot) -> None:
        """All as it was; a call that stands still ends before."""
        self.client.end()
        super().restore(snapshot)

    # ---- Interruptible ---------------------------------------------------------------------

    def make_interruptible(self) -> bool:
        """From the next reset on the consumer has locks at which its steps can be stopped."""
        self._interruptible = True
        return True

    def concurrent(self, running: Action, between: Action) -> bool:
        """Whether the application takes one and the heartbeat thread the other.

        A poll, an unsubscribe, and what finds or loses the coordinator beside a commit are several
        sections, and a step of the spec each: another thread may come between two of them, and
        nothing is wrong. So they are not interrupted. Nor is what ends the heartbeat thread: a
        failure of the metadata is raised in whichever thread polls first.
        """
        if self.client.is_waiting() or running.name == "EndHeartbeatThread":
            return False
        if _NOT_COORDINATOR in (running.args, between.args):
            return False
        return take_two_threads(_THREADS, running, between)

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        """Let one thread of the consumer stand still while another takes its action."""
        return interrupted(self._concurrency, self.apply, running, point, between)

    # ---- the application -------------------------------------------------------------------

    def _poll(self) -> None:
        consumer = self.client.consumer
        thread = self.client.coordinator.heartbeat_thread
        if self.client.network.is_woken or (thread is not None and thread.has_failed):
            self.client.call(lambda: consumer.poll(self.client.timer(0)))
        else:
            consumer.poll(self.client.timer(0))

    def _begin(self) -> None:
        self.client.subscriptions.seek(PARTITION, max(self.group.committed, 0))

    def _consume(self) -> None:
        subscriptions = self.client.subscriptions
        if not subscriptions.is_fetchable(PARTITION):
            raise ActionRefused("nothing is handed out of the partition")
        subscriptions.seek(PARTITION, self._position() + 1)

    def _position(self) -> int:
        position = self.client.subscriptions.all_consumed().get(PARTITION)
        return NO_OFFSET if position is None else position.offset

    def _offsets(self, metadata: str) -> Offsets:
        consumed = self.client.subscriptions.all_consumed()
        return {
            tp: OffsetAndMetadata(each.offset, metadata=metadata) for tp, each in consumed.items()
        }

    def _commit_async(self, number: int) -> None:
        self.client.consumer.commit_async(
            self._offsets(f"async {number}"), UserCallback(number, self.outcomes)
        )

    def _commit_sync(self) -> None:
        self.call = ("sync", self._position())
        timer = self.client.timer(CALL_TIMEOUT_MS)
        offsets = self._offsets("sync")
        self.client.call(lambda: self.client.consumer.commit_sync(offsets, timer))

    def _close(self) -> None:
        self.call = ("close", self._position() if self.commits_automatically else NO_OFFSET)
        self.client.call(lambda: self.client.consumer.close(self.client.timer(CALL_TIMEOUT_MS)))

    def _wakeup(self) -> None:
        self.client.consumer.wakeup()
        self.client.go_on()

    # ---- time ------------------------------------------------------------------------------

    def _pass(self, duration_ms: int) -> None:
        self.client.clock.sleep(duration_ms)

    def _pass_call_timeout(self) -> None:
        self._pass(CALL_TIMEOUT_MS)
        self.client.go_on()


_NOT_COORDINATOR = ("NOT_COORDINATOR",)
_THREADS = (
    frozenset({"CallCommitAsync", "Begin", "Consume"}),
    frozenset({"AnswerCommit", "HearRebalance", "HearEnd", "EndHeartbeatThread"}),
    frozenset({"OverrunPollInterval"}),
)
"""Which actions one thread takes: the application's, the heartbeat thread's."""
