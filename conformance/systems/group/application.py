"""The application of a member process: KafkaConsumer.poll in a loop, as far as it is let run."""

from __future__ import annotations

from greenlet import getcurrent, greenlet

from conformance.systems.group.consumer import FOREVER_MS, ConstructedConsumer, stand_still
from impl.errors import ApiException
from impl.group.client.timer import Timer


class PollingApplication:
    """It ends with a fatal error; `failed` says so."""

    def __init__(self, client: ConstructedConsumer) -> None:
        self.failed = False
        self._client = client
        self._thread: greenlet | None = None

    @property
    def waits(self) -> bool:
        """Whether it stands still in the middle of a call."""
        return bool(self._thread)

    def go_on(self, *, may_join: bool = False) -> None:
        """Let it run until it waits, or would join without being told to."""
        self._client.consumer.may_join = may_join
        if self._thread is None:
            self._thread = greenlet(self._run)
        self._thread.parent = getcurrent()
        self._thread.switch()
        self._client.consumer.may_join = False

    def _run(self) -> None:
        try:
            while True:
                self._client.consumer.poll(Timer(self._client.clock, FOREVER_MS))
                stand_still()
        except ApiException:
            self.failed = True

    def see_what_ended(self) -> None:
        """It learns at once what ended the heartbeat thread, or its join."""
        consumer, clock = self._client.consumer, self._client.clock
        try:
            consumer.poll_heartbeat(clock.milliseconds())
        except ApiException:
            self.failed = True
        future = consumer.join_future
        if future is not None and future.failed:
            self.go_on()
        # What either thread does next if the step cost the coordinator; the answer is there.
        consumer.ensure_coordinator_ready(Timer(clock, FOREVER_MS))

    def end(self) -> None:
        """The process is gone. Garbage collection does not see the frames of a suspended greenlet
        (greenlet's documentation): left alone, it would keep all that the consumer holds."""
        if self._thread is not None:
            self._thread.throw()
