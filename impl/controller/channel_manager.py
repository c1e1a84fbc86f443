"""A queue and a thread for each broker that the controller talks to.

Source: ControllerChannelManager, RequestSendThread, ControllerBrokerStateInfo.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..clock import Clock
from ..concurrency import Concurrency
from ..control_requests import ControlRequest, ControlResponse, UpdateMetadataBroker
from ..fetcher.shutdownable_thread import ShutdownableThread
from .request_batch import ControllerConfig, ResponseCallback
from .state_change_logger import StateChangeLogger

_log = logging.getLogger(__name__)


class ControllerNetworkClient(Protocol):
    """The connection to one broker. Any exception means that no answer came."""

    def is_ready(self) -> bool:
        """Whether the connection is open, not merely being opened (KAFKA-3916)."""
        ...

    def await_ready(self, timeout_ms: int, /) -> bool:
        """Open the connection; False if that took too long."""
        ...

    def send_and_receive(self, request: ControlRequest, /) -> ControlResponse:
        """Send, and wait for the answer."""
        ...

    def close(self) -> None:
        """Drop the connection; the next `await_ready` opens another one."""
        ...


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A request and who is told of its answer."""

    request: ControlRequest
    callback: ResponseCallback


class RequestQueue:
    """First in, first out; `take` waits (LinkedBlockingQueue)."""

    def __init__(self, name: str, concurrency: Concurrency) -> None:
        self._lock = concurrency.lock(f"requests to {name}")
        self._changed = self._lock.new_condition()
        self._items: deque[QueueItem] = deque()
        self._closed = False

    def put(self, item: QueueItem) -> None:
        """Append."""
        with self._lock:
            self._items.append(item)
            self._changed.notify_all()

    def take(self) -> QueueItem | None:
        """The oldest item, removed; None once the queue is closed."""
        with self._lock:
            while not self._items and not self._closed and self._changed.wait():
                pass
            return self._items.popleft() if self._items and not self._closed else None

    def close(self) -> None:
        """Forget what is queued and wake who waits."""
        with self._lock:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()

    def items(self) -> tuple[QueueItem, ...]:
        """What is queued, oldest first."""
        with self._lock:
            return tuple(self._items)


class RequestSendThread(ShutdownableThread):
    """Sends one request after the other, each until it is answered or the broker is removed."""

    def __init__(
        self,
        broker: UpdateMetadataBroker,
        queue: RequestQueue,
        client: ControllerNetworkClient,
        config: ControllerConfig,
        controller_epoch: Callable[[], int],
        clock: Clock,
        concurrency: Concurrency,
        state_change_logger: StateChangeLogger,
    ) -> None:
        super().__init__(
            f"Controller-{config.broker_id}-to-broker-{broker.id}-send-thread", concurrency
        )
        self._broker = broker
        self._queue = queue
        self._client = client
        self._config = config
        self._controller_epoch = controller_epoch
        self._clock = clock
        self._log = state_change_logger

    def do_work(self) -> None:
        """Take a request and see it through."""
        item = self._queue.take()
        if item is None:
            return
        try:
            response = self._send_until_answered(item.request)
            if response is not None:
                self._log.trace(
                    self._controller_epoch(),
                    "Received response %s for request %s sent to broker %s",
                    response,
                    type(item.request).__name__,
                    self._broker,
                )
                item.callback(response)
        except Exception as error:  # noqa: BLE001 - the thread goes on with the next request
            _log.error("cannot process what %s answered", self._broker, exc_info=error)
            self._client.close()

    def _send_until_answered(self, request: ControlRequest) -> ControlResponse | None:
        """The answer; None if the broker was removed. A lost answer too is no success."""
        while self.is_running:
            try:
                if self._broker_ready():
                    return self._client.send_and_receive(request)
            except Exception as error:  # noqa: BLE001 - whatever it was, it is sent again
                _log.warning("no answer of %s, reconnecting", self._broker, exc_info=error)
                self._client.close()
            self._clock.sleep(self._config.retry_back_off_ms)
        return None

    def _broker_ready(self) -> bool:
        try:
            if self._client.is_ready():
                return True
            timeout_ms = self._config.controller_socket_timeout_ms
            if not self._client.await_ready(timeout_ms):
                raise TimeoutError(f"no connection within {timeout_ms} ms")
        except Exception as error:  # noqa: BLE001 - tried again after the back-off
            _log.warning("cannot connect to %s", self._broker, exc_info=error)
            self._client.close()
            return False
        return True


@dataclass(frozen=True, slots=True)
class ControllerBrokerStateInfo:
    """What the controller keeps for one broker."""

    broker: UpdateMetadataBroker
    queue: RequestQueue
    client: ControllerNetworkClient
    thread: RequestSendThread


class ControllerChannelManager:
    """The connections of one controller."""

    def __init__(
        self,
        config: ControllerConfig,
        controller_epoch: Callable[[], int],
        connect: Callable[[UpdateMetadataBroker], ControllerNetworkClient],
        clock: Clock,
        concurrency: Concurrency,
        state_change_logger: StateChangeLogger,
    ) -> None:
        self._config = config
        self._controller_epoch = controller_epoch
        self._connect = connect
        self._clock = clock
        self._concurrency = concurrency
        self._log = state_change_logger
        self._lock = concurrency.lock("broker-state-info")
        self.broker_state_info: dict[int, ControllerBrokerStateInfo] = {}

    def send_request(
        self, broker_id: int, request: ControlRequest, callback: ResponseCallback
    ) -> None:
        """Queue the request; one to a broker that was removed is dropped."""
        with self._lock:
            info = self.broker_state_info.get(broker_id)
            if info is None:
                _log.warning("not sending %s to broker %s: it is offline", request, broker_id)
                return
            info.queue.put(QueueItem(request, callback))

    def add_broker(self, broker: UpdateMetadataBroker) -> None:
        """Begin to talk to the broker, unless that has begun."""
        with self._lock:
            if broker.id in self.broker_state_info:
                return
            queue = RequestQueue(f"broker {broker.id}", self._concurrency)
            client = self._connect(broker)
            thread = RequestSendThread(
                broker,
                queue,
                client,
                self._config,
                self._controller_epoch,
                self._clock,
                self._concurrency,
                self._log,
            )
            info = ControllerBrokerStateInfo(broker, queue, client, thread)
            self.broker_state_info[broker.id] = info
            thread.start()

    def remove_broker(self, broker_id: int) -> None:
        """Stop talking to the broker: what is queued for it is dropped."""
        with self._lock:
            info = self.broker_state_info.pop(broker_id, None)
        if info is not None:
            self._end(info)

    def shutdown(self) -> None:
        """Stop all threads."""
        with self._lock:
            every = list(self.broker_state_info.values())
            self.broker_state_info.clear()
        for info in every:
            self._end(info)

    @staticmethod
    def _end(info: ControllerBrokerStateInfo) -> None:
        info.thread.initiate_shutdown()
        info.client.close()
        info.queue.close()
        info.thread.await_shutdown()
