"""Frames out of a stream, answers paired with requests, record batches by their headers."""

from __future__ import annotations

import json
import struct

import pytest

from conformance.kafka.frames import Conversation, Splitter, batches, framed, plain
from conformance.kafka.schemas import DecodeError
from tests.unit.kafka.small import SMALL


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_frames_come_out_however_the_stream_is_cut(size: int) -> None:
    frames = [b"", b"a", b"bcd" * 50]
    stream = b"".join(map(framed, frames))
    splitter = Splitter()
    found = [
        frame
        for at in range(0, len(stream), size)
        for frame in splitter.feed(stream[at : at + size])
    ]
    assert found == frames


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_a_length_that_cannot_be_is_not_waited_for(size: int) -> None:
    with pytest.raises(DecodeError, match="not Kafka's protocol"):
        list(Splitter().feed(struct.pack(">i", size)))


def test_an_answer_is_decoded_in_the_version_of_its_request() -> None:
    talk = Conversation(SMALL)
    first = talk.request(SMALL.encode_request("Ask", 0, 11, "me", {"text": "x"}))
    second = talk.request(SMALL.encode_request("Ask", 1, 12, "me", {"text": "y", "more": 2}))
    assert (first.api, first.body, second.body) == ("Ask", {"text": "x"}, {"text": "y", "more": 2})
    late = talk.response(SMALL.encode_response("Ask", 1, 12, {"error": 3, "hint": "h"}))
    early = talk.response(SMALL.encode_response("Ask", 0, 11, {"error": 4}))
    assert (late.body, late.client) == ({"error": 3, "hint": "h"}, "me")
    assert early.body == {"error": 4}


def test_what_cannot_be_decoded_is_told_and_its_answer_too() -> None:
    talk = Conversation(SMALL)
    strange = talk.request(struct.pack(">hhi", 99, 4, 5) + b"rest")
    assert strange.body is None
    assert "api key 99 in version 4" in strange.problem
    answer = talk.response(struct.pack(">i", 5) + b"rest")
    assert (answer.api, answer.body) == ("api 99", None)
    stray = talk.response(struct.pack(">i", 6))
    assert "no request" in stray.problem


def batch(base: int, count: int, epoch: int) -> bytes:
    body = struct.pack(">ibIhiqqqhii", epoch, 2, 0, 0, count - 1, 0, 0, 7, 1, 40, count)
    return struct.pack(">qi", base, len(body)) + body


def test_records_are_told_by_the_headers_of_their_batches() -> None:
    records = batch(10, 3, 2) + batch(13, 1, 4)
    found = batches(records + batch(14, 1, 4)[:-5])  # a fetch may cut the last one off
    assert [(one["baseOffset"], one["lastOffset"], one["leaderEpoch"]) for one in found] == [
        (10, 12, 2),
        (13, 13, 4),
    ]
    assert [one["count"] for one in found] == [3, 1]


def test_a_body_becomes_json() -> None:
    body = {"records": batch(0, 1, 0), "key": b"\x00\xff", "list": [{"a": None}]}
    told = plain(body)
    assert told["records"][0]["count"] == 1
    assert told["key"] == "AP8="
    assert json.loads(json.dumps(told)) == told
