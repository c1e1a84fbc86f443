"""FindCoordinator: which broker coordinates a group.

Source: KafkaApis.getCoordinator; any broker answers, from its metadata cache.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import Errors
from ..types import BrokerEndPoint
from .group_metadata_manager import partition_for
from .messages import FindCoordinatorRequest, FindCoordinatorResponse


def find_coordinator(
    request: FindCoordinatorRequest,
    num_partitions: int,
    leader_of: Callable[[int], BrokerEndPoint | None],
) -> FindCoordinatorResponse:
    """The leader of the group's offsets partition; COORDINATOR_NOT_AVAILABLE without one."""
    if not request.key:
        return FindCoordinatorResponse(Errors.INVALID_GROUP_ID)
    leader = leader_of(partition_for(request.key, num_partitions))
    if leader is None:
        return FindCoordinatorResponse(Errors.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(Errors.NONE, leader)
