"""A controller's connection to one broker, which stands still until an action moves it."""

from __future__ import annotations

from greenlet import getcurrent, greenlet

from conformance.systems.protocol import ActionRefused
from impl.control_requests import ControlRequest, ControlResponse
from impl.controller.channel_manager import ControllerBrokerStateInfo


class ControllerConnectionLost(ConnectionError):
    """The request or its answer did not arrive."""


class ControllerConnection:
    """A `ControllerNetworkClient`; the sending thread runs as a greenlet that waits in it."""

    def __init__(self) -> None:
        self.request: ControlRequest | None = None
        """What the thread sees through, sent or about to be sent again."""
        self.is_sent = False
        self.response: ControlResponse | None = None
        self._admitted = self._connected = False
        self._thread: greenlet | None = None

    # ---- ControllerNetworkClient -----------------------------------------------------------

    def is_ready(self) -> bool:
        """Whether the connection is open."""
        return self._connected

    def await_ready(self, _timeout_ms: int, /) -> bool:
        """Wait until an action lets the connection be made."""
        while not self._admitted:
            self._wait()
        self._connected = True
        return True

    def send_and_receive(self, request: ControlRequest, /) -> ControlResponse:
        """The request is on its way; wait until an action says what becomes of it."""
        self.request, self.is_sent = request, True
        answer = self._wait()
        self.is_sent, self.response = False, None
        if answer is None:
            raise ControllerConnectionLost("the connection broke")
        return answer

    def close(self) -> None:
        """The next request needs a new connection."""
        self._connected = False

    @staticmethod
    def _wait() -> ControlResponse | None:
        parent = getcurrent().parent
        if parent is None:
            raise ControllerConnectionLost("nobody steps this thread")
        answer: ControlResponse | None = parent.switch()
        return answer

    # ---- what actions do -------------------------------------------------------------------

    def send(self, info: ControllerBrokerStateInfo) -> None:
        """Let the thread take a request, or connect again, and send."""
        self._admitted = True
        try:
            if self._thread is None:
                self._thread = greenlet(info.thread.do_work)
            self._go_on(None)
        finally:
            self._admitted = False
        if not self.is_sent:
            raise ActionRefused("the thread sends nothing")

    def deliver(self) -> None:
        """The answer arrives."""
        if self.response is None:
            raise ActionRefused("there is no answer")
        self._go_on(self.response)

    def lose(self) -> None:
        """The connection breaks."""
        if self.is_sent:
            self._go_on(None)

    def _go_on(self, answer: ControlResponse | None) -> None:
        if self._thread is None:
            raise ActionRefused("the thread is not at work")
        self._thread.switch(answer) if self._thread else self._thread.switch()
        if self._thread.dead:
            self._thread, self.request = None, None

    @property
    def waits(self) -> bool:
        """Whether the thread stands still in the middle of a turn."""
        return self._thread is not None

    def end(self) -> None:
        """The controller talks to the broker no longer: its thread ends where it waits."""
        if self._thread is not None:
            self._thread.throw()
        self._thread, self.request, self.response = None, None, None
        self.is_sent = False
