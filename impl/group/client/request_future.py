"""The answer to a request that may still be in flight (RequestFuture)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, cast

from ...errors import Errors, IllegalStateException
from .errors import exception_of, is_retriable

T = TypeVar("T")
U = TypeVar("U")


class RequestFuture(Generic[T]):
    """Completed once, with a value or an exception; listeners run in the completing thread.

    The lock inside covers a few instructions and no callback, so it is no scheduling point.
    """

    __slots__ = ("_error", "_is_done", "_listeners", "_lock", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._listeners: list[Callable[[RequestFuture[T]], None]] = []

    @classmethod
    def of(cls, value: T) -> RequestFuture[T]:
        """A future that has succeeded."""
        future: RequestFuture[T] = cls()
        future.complete(value)
        return future

    @classmethod
    def failure(cls, error: Exception) -> RequestFuture[T]:
        """A future that has failed."""
        future: RequestFuture[T] = cls()
        future.fail(error)
        return future

    @property
    def is_done(self) -> bool:
        """Whether the answer, or the failure, is there."""
        return self._is_done

    @property
    def succeeded(self) -> bool:
        """Whether there is a value."""
        return self._is_done and self._error is None

    @property
    def failed(self) -> bool:
        """Whether there is an exception."""
        return self._error is not None

    @property
    def is_retriable(self) -> bool:
        """Whether the same request may succeed later. Raises unless failed."""
        return is_retriable(self.exception)

    @property
    def value(self) -> T:
        """The value. Raises IllegalStateException unless succeeded."""
        if not self.succeeded:
            raise IllegalStateException("the request has not succeeded")
        return cast(T, self._value)

    @property
    def exception(self) -> Exception:
        """The exception. Raises IllegalStateException unless failed."""
        if self._error is None:
            raise IllegalStateException("the request has not failed")
        return self._error

    def complete(self, value: T) -> None:
        """Succeed. Raises IllegalStateException if already done."""
        self._finish(value, None)

    def fail(self, error: Exception) -> None:
        """Fail with an exception. Raises IllegalStateException if already done."""
        self._finish(None, error)

    def raise_error(self, error: Errors) -> None:
        """Fail with the exception of an error code."""
        self.fail(exception_of(error))

    def add_listener(self, listener: Callable[[RequestFuture[T]], None]) -> None:
        """Call `listener` with this future when it is done: at once if it is."""
        with self._lock:
            if not self._is_done:
                self._listeners.append(listener)
                return
        listener(self)

    def compose(
        self,
        handle: Callable[[T, RequestFuture[U]], None],
        on_failure: Callable[[Exception, RequestFuture[U]], None],
    ) -> RequestFuture[U]:
        """A future that `handle` completes with what it makes of this one's value."""
        composed: RequestFuture[U] = RequestFuture()

        def adapt(done: RequestFuture[T]) -> None:
            if done.failed:
                on_failure(done.exception, composed)
            else:
                handle(done.value, composed)

        self.add_listener(adapt)
        return composed

    def chain(self, other: RequestFuture[T]) -> None:
        """Complete `other` as this one completes."""

        def forward(done: RequestFuture[T]) -> None:
            if done.failed:
                other.fail(done.exception)
            else:
                other.complete(done.value)

        self.add_listener(forward)

    def _finish(self, value: T | None, error: Exception | None) -> None:
        with self._lock:
            if self._is_done:
                raise IllegalStateException("a request completes once")
            self._value, self._error, self._is_done = value, error, True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(self)
