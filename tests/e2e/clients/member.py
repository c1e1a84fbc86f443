"""A member of a group in a hundred lines, right or wrong in one way: MISTAKE BOOTSTRAP TOPIC GROUP.

It speaks the protocol itself, so that nothing but the mistake is wrong with it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from impl.errors import Errors
from impl.group.client.buffer import ByteBuffer
from impl.group.client.consumer_protocol import (
    Assignment,
    Subscription,
    deserialize_assignment,
    serialize_assignment,
    serialize_subscription,
)
from impl.group.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from impl.types import TopicPartition
from impl.wire import group_requests, group_responses
from impl.wire.entities import class_of, frame_size, read_response, request_frame

MISTAKE, BOOTSTRAP, TOPIC, GROUP = sys.argv[1:5]
VERSIONS = {"join_group": 7, "sync_group": 5, "heartbeat": 4, "leave_group": 3}
VERSIONS |= {"offset_commit": 7, "find_coordinator": 3}
FORGETS = (Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_INSTANCE_ID)
MOVED = (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE)
ended: list[bool] = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
callbacks = Path(os.environ["KCONFORM_CALLBACKS"]).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115


class Lost(Exception):
    """The connection is gone."""


class Member:
    """A consumer without data: it joins, heartbeats, joins again when it is told to."""

    def __init__(self) -> None:
        self.id, self.generation, self.owned = "", -1, ()
        self.connection: socket.socket | None = None

    def ask(self, message: Any) -> Any:
        try:
            answer = self._ask(message)
            if getattr(answer, "error_code", Errors.NONE) in MOVED and MISTAKE != "looks-never":
                self._ask(FindCoordinatorRequest(GROUP))
            return answer
        except OSError as error:
            self.connection = None
            raise Lost from error

    def _ask(self, message: Any) -> Any:
        if self.connection is None:
            host, _, port = BOOTSTRAP.partition(":")
            self.connection = socket.create_connection((host, int(port)))
        api = group_requests.api_of(message)
        version = VERSIONS[api]
        self.connection.sendall(request_frame(group_requests.to_entity(message, version), 1, "m"))
        frame = self._read(frame_size(self._read(4)))
        _, body = read_response(frame, class_of(api, version, "response"))
        return group_responses.from_entity(api, body, version)

    def _read(self, size: int) -> bytes:
        assert self.connection is not None
        found = b""
        while len(found) < size:
            if not (data := self.connection.recv(size - len(found))):
                raise ConnectionError
            found += data
        return found

    def tell(self, event: str, numbers: tuple[int, ...]) -> None:
        partitions = [[TOPIC, number] for number in numbers]
        callbacks.write(json.dumps({"event": event, "partitions": partitions}) + "\n")

    def give_up(self) -> None:
        if self.owned and MISTAKE != "keeps-partitions":
            self.tell("revoked", self.owned)
            self.owned = ()

    def join(self) -> bool:
        cut = MISTAKE == "cut-subscription"
        data = serialize_subscription(Subscription((TOPIC,)), 1 if cut else 0)
        wish = JoinGroupRequestProtocol("range", data[:-4] if cut else data)
        joins = JoinGroupRequest(GROUP, 6_000, 60_000, self.id, "consumer", (wish,))
        answer = self.ask(joins)
        if answer.error_code is Errors.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
        if answer.error_code in FORGETS and MISTAKE != "keeps-id":
            self.id = ""
        if answer.error_code is not Errors.NONE:
            time.sleep(0.05)
            return False
        self.id, self.generation = answer.member_id, answer.generation_id
        return self.sync([one.member_id for one in answer.members])

    def sync(self, members: list[str]) -> bool:
        members = sorted(members)
        if MISTAKE == "assigns-all-to-one":
            members = members[:1]
        parts = [tuple(range(2))] if len(members) == 1 else [(0,), (1,)]
        given = tuple(
            SyncGroupRequestAssignment(id, serialize_assignment(Assignment(of_topic(numbers))))
            for id, numbers in zip(members, parts, strict=False)
        )
        answer = self.ask(
            SyncGroupRequest(GROUP, self.generation, self.id, None, "consumer", "range", given)
        )
        if answer.error_code is Errors.NONE:
            buffer = ByteBuffer(answer.assignment)
            self.owned = tuple(one.partition for one in deserialize_assignment(buffer).partitions)
            self.tell("assigned", self.owned)
            return True
        self.reset(answer.error_code)
        return False

    def reset(self, error: Errors) -> None:
        if error in FORGETS:
            self.id = ""
        if error in (*FORGETS, Errors.ILLEGAL_GENERATION):
            self.generation = -1

    def heartbeats(self) -> None:
        """Until it has to join again."""
        while not ended:
            if MISTAKE == "heartbeats-never":
                time.sleep(0.1)
                continue
            time.sleep(0.1)
            if MISTAKE == "commits-ahead":
                self.commit(1_000_000)
            generation = self.generation - (MISTAKE == "old-generation" and self.generation > 1)
            error = self.ask(HeartbeatRequest(GROUP, generation, self.id)).error_code
            if error in (Errors.NONE, Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE):
                continue
            if MISTAKE == "ignores-refusals":
                continue
            if MISTAKE == "ignores-rebalance" and error is Errors.REBALANCE_IN_PROGRESS:
                continue
            if MISTAKE == "hangs":
                time.sleep(600)
            self.reset(error)
            return

    def commit(self, offset: int) -> None:
        """Commit it for all that is assigned; what it is answered counts for nothing."""
        entries = tuple(OffsetCommitRequestPartition(one, offset) for one in of_topic(self.owned))
        self.ask(OffsetCommitRequest(GROUP, entries, self.generation, self.id))

    def run(self) -> None:
        if MISTAKE == "needs-fetch-99":
            sys.exit("UnsupportedVersion: no broker supports Fetch 99")
        while not ended:
            try:
                self.give_up()
                while not ended and not self.join():
                    pass
                while not ended:
                    try:
                        self.heartbeats()
                        break
                    except Lost:
                        continue
            except Lost:
                time.sleep(0.05)
        if self.id:
            self.ask(LeaveGroupRequest(GROUP, (MemberIdentity(self.id),)))
        if MISTAKE == "stays":
            time.sleep(600)


def of_topic(numbers: tuple[int, ...]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(TOPIC, number) for number in numbers)


Member().run()
