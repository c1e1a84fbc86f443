"""The one thing a coordinator reads in a consumer's metadata: the topics it subscribes to.

Source: ConsumerProtocol; the version-0 layout is a prefix of every later one.
"""

from __future__ import annotations

import struct

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics of a subscription, or None if the bytes are not one."""
    try:
        (count,) = _INT.unpack_from(metadata, _SHORT.size)
        position = _SHORT.size + _INT.size
        topics = []
        for _ in range(count):
            (length,) = _SHORT.unpack_from(metadata, position)
            position += _SHORT.size
            if length < 0 or position + length > len(metadata):
                return None
            topics.append(metadata[position : position + length].decode())
            position += length
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)
