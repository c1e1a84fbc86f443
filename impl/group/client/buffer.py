"""Bytes with a reading position, as a member's assignment is handed over (java.nio.ByteBuffer)."""

from __future__ import annotations

from ...errors import KafkaException


class ByteBuffer:
    """Reading moves the position; `duplicate` shares the bytes and not the position."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data = data
        self._position = position

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._position

    def duplicate(self) -> ByteBuffer:
        """The same bytes from the same position, read independently."""
        return ByteBuffer(self._data, self._position)

    def read(self, size: int | None = None) -> bytes:
        """The next `size` bytes, or all. Raises KafkaException if there are fewer."""
        size = self.remaining if size is None else size
        if size < 0 or size > self.remaining:
            raise KafkaException(f"buffer underflow: {size} bytes asked, {self.remaining} left")
        start, self._position = self._position, self._position + size
        return self._data[start : self._position]
