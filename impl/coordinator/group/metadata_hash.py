"""A hash of the topics that a group reads: another one whenever one has come, gone or grown.

Source: ModernGroup.computeMetadataHash (KAFKA-17747). The number is another one than Kafka's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from .assignors import TopicsImage
from .member import ConsumerGroupMember
from .regular_expressions import ResolvedRegularExpressions, names_read_by


def metadata_hash(
    members: Iterable[ConsumerGroupMember],
    resolved: ResolvedRegularExpressions,
    topics: TopicsImage,
) -> int:
    """0 if none of the topics exists."""
    names = frozenset().union(*(names_read_by(member, resolved) for member in members))
    read = [
        f"{name} {topic_id} {topics.num_partitions(topic_id)}"
        for name in sorted(names)
        if (topic_id := topics.topic_id(name)) is not None
    ]
    if not read:
        return 0
    digest = hashlib.blake2b("\n".join(read).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
