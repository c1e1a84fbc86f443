"""A broker's handlers of what the controller sends (KafkaApis, as far as the controller asks)."""

from __future__ import annotations

from .control_requests import (
    ControlRequest,
    ControlResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from .metadata_cache import ZkMetadataCache
from .replica_manager import ReplicaManager


class ControlPlane:
    """One broker."""

    def __init__(self, replica_manager: ReplicaManager, metadata_cache: ZkMetadataCache) -> None:
        self.replica_manager = replica_manager
        self.metadata_cache = metadata_cache

    def handle(self, request: ControlRequest) -> ControlResponse:
        """Answer the request; that it is too old is an answer too."""
        match request:
            case UpdateMetadataRequest():
                return self.replica_manager.maybe_update_metadata_cache(
                    request, self.metadata_cache
                )
            case StopReplicaRequest():
                return self.replica_manager.handle_stop_replica(request)
            case _:
                return self.replica_manager.become_leader_or_follower(request)
