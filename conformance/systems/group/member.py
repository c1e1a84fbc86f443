"""A member process: a real consumer, its application, and what it has in flight."""

from __future__ import annotations

from conformance.systems.group.application import PollingApplication
from conformance.systems.group.consumer import start_client
from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.group.exchange import Exchange
from conformance.systems.shared.group.settings import SESSION_TIMEOUT_MS, TOPIC, GroupSettings
from impl.concurrency import Concurrency, NoConcurrency
from impl.errors import Errors
from impl.group.client.errors import DisconnectException, FencedInstanceIdException
from impl.group.client.heartbeat_thread import HeartbeatThread
from impl.group.client.network_client import ClientRequest, GroupResponse
from impl.group.client.subscription_state import OffsetAndMetadata
from impl.group.messages import (
    HeartbeatRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from impl.types import TopicPartition

_TURNS = 3
"""Turns of the heartbeat thread at most until its request is out."""
_COMMITTED = {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}
_STEPPED = NoConcurrency()


class Process:
    """One process of the spec, through restarts; `channel` and `heartbeat` are what it sent.

    Its threads are steps of the driver: `concurrency` is for locks at which one may be stopped.
    """

    def __init__(
        self, name: str, settings: GroupSettings, concurrency: Concurrency = _STEPPED
    ) -> None:
        self.name = name
        self._settings = settings
        self._concurrency = concurrency
        self.protocols = settings.protocols_of[name]
        self.channel: Exchange | None = None
        self._start()

    def _start(self) -> None:
        self.heartbeat: Exchange | None = None
        self._commit_errors: list[Exception | None] = []
        client = start_client(self.name, self._settings, self._sent, self._concurrency)
        client.use(self.protocols)
        self._client = client
        self.clock, self.network = client.clock, client.network
        self.consumer, self.subscriptions = client.consumer, client.subscriptions
        self.callbacks = client.callbacks
        self.application = PollingApplication(client)

    def _sent(self, request: ClientRequest) -> None:
        message = request.request
        sent = self.consumer.sent_in(message)
        leaves = isinstance(message, LeaveGroupRequest)
        exchange = Exchange(message, sent, abandoned=leaves, request=request)
        if isinstance(message, HeartbeatRequest | OffsetCommitRequest):
            self.heartbeat = exchange
        else:
            self.channel = exchange

    # ---- the application ---------------------------------------------------------------------

    def send_join_group(self) -> None:
        """AbstractCoordinator.joinGroupIfNeeded up to the request."""
        if self.channel is not None or self.consumer.join_future is not None:
            raise ActionRefused(f"{self.name} is joining already")
        self.application.go_on(may_join=True)
        if self.channel is None:
            raise ActionRefused(f"{self.name} did not join")

    def join_if_delayed(self) -> None:
        """Go on with a join that had to wait for the coordinator to be found again."""
        if self.channel is None and "SendJoinGroup" in self.next_steps():
            self.application.go_on(may_join=True)

    def complete_join(self) -> None:
        """AbstractCoordinator.joinGroupIfNeeded sees the completed future."""
        future = self.consumer.join_future
        if future is None or not future.succeeded:
            raise ActionRefused(f"{self.name} has no completed join")
        self.application.go_on()

    def send_offset_commit(self) -> None:
        """The application commits a position."""
        self._commit_errors = []
        self.consumer.commit_offsets_async(_COMMITTED, self._committed)
        if self.heartbeat is None:
            raise ActionRefused(f"{self.name} did not commit")

    def _committed(self, _offsets: object, error: Exception | None) -> None:
        self._commit_errors.append(error)
        if isinstance(error, FencedInstanceIdException):
            self.application.failed = True

    def leave_group(self) -> None:
        """Unsubscribe, and subscribe again: AbstractCoordinator.maybeLeaveGroup."""
        self.consumer.maybe_leave_group("the consumer unsubscribed")

    def request_rejoin(self) -> None:
        """AbstractCoordinator.requestRejoin."""
        self.consumer.request_rejoin("the application asked for it")

    def change_protocols(self, names: frozenset[str]) -> None:
        """From its next join on the consumer tells of other assignors."""
        self.protocols = names
        self._client.use(names)
        self.consumer.request_rejoin("the assignors have changed")

    @property
    def failed(self) -> bool:
        """Whether a fatal error has ended the application."""
        return self.application.failed

    def end(self) -> None:
        """The process is gone."""
        self.application.end()

    def restart(self) -> None:
        """A new process; what the old one has sent may still arrive."""
        left = self.channel
        if left is not None and left.is_under_way and self._settings.late_requests:
            left.abandoned = True
        if left is not None and not left.abandoned:
            self.channel = None
        self.end()
        self._start()

    # ---- the heartbeat thread ----------------------------------------------------------------

    def send_heartbeat(self) -> None:
        """HeartbeatThread.run, once the interval is over."""
        thread = self.await_heartbeat()
        if not any(self._beat(thread) for _ in range(_TURNS)):
            raise ActionRefused(f"{self.name} sent no heartbeat")

    def await_heartbeat(self) -> HeartbeatThread:
        """Let the interval pass, in which the application polls; the thread that is to beat."""
        thread = self.consumer.heartbeat_thread
        if thread is None or self.heartbeat is not None:
            raise ActionRefused(f"{self.name} sends no heartbeats now")
        # Else it would be taken for dead (max.poll.interval.ms).
        self.consumer.poll_heartbeat(self.clock.milliseconds())
        wait = self.consumer.time_to_next_heartbeat(self.clock.milliseconds())
        if wait > SESSION_TIMEOUT_MS:
            raise ActionRefused(f"{self.name} is in no generation to send heartbeats for")
        self.clock.sleep(wait)
        return thread

    def delay_heartbeat(self) -> None:
        """Let the thread's next turn send none, though time has passed in back-offs."""
        self.consumer.heartbeat.sent_heartbeat(self.clock.milliseconds())

    def _beat(self, thread: HeartbeatThread) -> bool:
        """One turn; whether the heartbeat is out."""
        thread.run_once()
        self.network.poll_no_wakeup()
        return self.heartbeat is not None

    # ---- answers -----------------------------------------------------------------------------

    def process(self, exchange: Exchange | None) -> None:
        """Hand the answer in, and call back."""
        self.hand_in(exchange)
        self.settle()
        if exchange is not None and isinstance(exchange.response, OffsetCommitResponse):
            self._demand_told(exchange.response)

    def _demand_told(self, response: OffsetCommitResponse) -> None:
        """The application is told once what became of its commit, an error if there was one."""
        failed = any(partition.error_code is not Errors.NONE for partition in response.partitions)
        if [error is not None for error in self._commit_errors] != [failed]:
            raise ActionRefused(f"{response} comes to the application as {self._commit_errors}")

    def hand_in(self, exchange: Exchange | None) -> None:
        """The answer arrives; whichever thread polls next calls back."""
        if exchange is None or exchange.response is None:
            raise ActionRefused(f"no answer has arrived at {self.name}")
        self._respond(exchange, exchange.response)

    def lose(self, exchange: Exchange | None) -> None:
        """The request or its answer is lost: the connection broke."""
        if self.disconnect(exchange):
            self.settle()

    def disconnect(self, exchange: Exchange | None) -> bool:
        """The connection of a request breaks; whether the client waits for an answer to it."""
        if exchange is None:
            raise ActionRefused(f"nothing of {self.name} is in flight")
        if exchange.abandoned:
            self.channel = None
            return False
        self._respond(exchange, DisconnectException("the connection broke"))
        return True

    def abandon(self) -> None:
        """The client gives up on its request, which arrives nevertheless."""
        exchange = self.channel
        if exchange is None or not exchange.is_under_way or exchange.abandoned:
            raise ActionRefused(f"{self.name} waits for no request")
        self.lose(exchange)
        exchange.abandoned = True
        self.channel = exchange

    def _respond(self, exchange: Exchange, response: GroupResponse | Exception) -> None:
        if exchange is self.channel:
            self.channel = None
        else:
            self.heartbeat = None
        self.network.respond(exchange.request, response)

    def settle(self) -> None:
        """Both threads go on until each of them waits."""
        self.network.poll_no_wakeup()
        try:
            self.consumer.invoke_completed_offset_commit_callbacks()
        except FencedInstanceIdException as error:
            # A poll raises the fence in place of the callback; it ends the application, once.
            if not self.application.failed:
                self._committed(_COMMITTED, error)
        self.application.see_what_ended()
        self._forget_disconnected()

    def _forget_disconnected(self) -> None:
        """What the client has given up with its connection is not answered any more."""
        waiting = self.network.in_flight()
        if self.heartbeat is not None and self.heartbeat.request not in waiting:
            self.heartbeat = None
        channel = self.channel
        if channel is not None and not channel.abandoned and channel.request not in waiting:
            self.channel = None

    # ---- what it would do --------------------------------------------------------------------

    def next_steps(self) -> list[str]:
        """What the process would do by itself, by the spec's action names; changes nothing."""
        if self.failed:
            return []
        consumer, steps = self.consumer, []
        if consumer.join_future is None:
            if self.channel is None and consumer.wants_to_join():
                steps.append("SendJoinGroup")
        elif consumer.join_future.succeeded:
            steps.append("CompleteJoin")
        thread = consumer.heartbeat_thread
        beats = thread is not None and thread.enabled and not consumer.state.has_not_joined_group
        if beats and self.heartbeat is None and self._settings.heartbeats:
            steps.append("SendHeartbeat")
        return steps
