"""A conversation held against the protocol, and begun again after whatever went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import pytest

from conformance.systems.external.channel import AdapterChannel, AdapterTimeouts, Channels
from conformance.systems.external.transport import AdapterGone, NoAnswer, Rubbish
from conformance.systems.protocol import ActionRefused, SystemFailed, SystemHangs

Reply = Callable[[int], str | Exception]


@dataclass
class Scripted:
    """An adapter whose replies are given, by the number of the line."""

    reply: Reply
    asked: list[tuple[dict[str, object], float]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def exchange(self, line: bytes, seconds: float) -> bytes:
        asked = json.loads(line)
        self.asked.append((asked, seconds))
        answer = self.reply(asked["id"])
        if isinstance(answer, Exception):
            raise answer
        return answer.encode()

    def last_words(self) -> str:
        return "first\nlast"

    def hang_up(self) -> None:
        self.ended.append("hung up")

    def close(self) -> None:
        self.ended.append("closed")

    def kill(self) -> None:
        self.ended.append("killed")


def answered(*answers: object) -> Reply:
    return lambda number: json.dumps({"id": number, "answers": answers})


def channel_of(*replies: Reply) -> tuple[AdapterChannel, list[Scripted]]:
    """Each start of the adapter takes the next script."""
    scripts = iter(replies)
    started: list[Scripted] = []

    def opener() -> Scripted:
        started.append(Scripted(next(scripts)))
        return started[-1]

    return AdapterChannel("exec:it", opener, AdapterTimeouts(start=60.0, call=5.0)), started


LOOK = {"command": "observe"}


def test_several_commands_travel_in_one_line() -> None:
    channel, [*started] = channel_of(answered({"ok": None}, {"ok": {"x": 1}}))
    results = channel.call([{"command": "reset", "initial": {}}, LOOK])
    assert [msgspec.json.decode(result) for result in results] == [None, {"x": 1}]
    assert not started  # nothing runs before it is needed


def test_the_first_line_has_the_time_of_a_start() -> None:
    channel, started = channel_of(answered({"ok": 1}), answered({"ok": 1}))
    channel.call([LOOK])
    channel.call([LOOK])
    channel.restart()
    channel.call([LOOK])
    assert [seconds for _, seconds in started[0].asked] == [60.0, 5.0]
    assert [seconds for _, seconds in started[1].asked] == [60.0]
    assert [asked["id"] for one in started for asked, _ in one.asked] == [1, 2, 3]


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        ({"refused": "closed"}, ActionRefused, "closed"),
        ({"exception": "NPE\n\tat Store.put"}, SystemFailed, "NPE\n\tat Store.put"),
        ({"protocol_error": "no observe"}, SystemFailed, "has not understood: no observe"),
    ],
)
def test_a_failed_command_ends_the_line(
    answer: dict[str, str], kind: type[Exception], told: str
) -> None:
    channel, started = channel_of(answered({"ok": None}, answer))
    with pytest.raises(kind) as raised:
        channel.call([LOOK, LOOK, LOOK])
    assert told in str(raised.value)
    assert started[0].ended == ([] if kind is ActionRefused or "NPE" in told else ["killed"])


RUBBISH: dict[str, tuple[Reply, str]] = {
    "no JSON": (lambda _: "log: started", "wrote what is no answer"),
    "JSON of another kind": (lambda _: "[1]", "wrote what is no answer"),
    "an unknown member": (answered({"OK": 1}), "wrote what is no answer"),
    "nothing in an answer": (answered({}), "not exactly one of"),
    "two in an answer": (answered({"ok": 1, "refused": "no"}), "not exactly one of"),
    "the line before": (
        lambda number: json.dumps({"id": number - 1, "answers": [{"ok": 1}]}),
        "answered line 0 (a second time) where line 1 was asked",
    ),
    "a line not yet asked": (lambda _: '{"id": 9, "answers": [{"ok": 1}]}', "answered line 9"),
    "too few answers": (answered(), "gave 0 answers to 1 commands"),
    "too many answers": (answered({"ok": 1}, {"ok": 2}), "gave 2 answers to 1 commands"),
    "more after a failure": (
        answered({"refused": "no"}, {"ok": 2}),
        "went on after a command that had failed",
    ),
    "its end": (lambda _: AdapterGone("has exited with code 7"), "has exited with code 7"),
    "what nobody asked for": (lambda _: Rubbish("wrote without being asked: 'x'"), "without being"),
}


@pytest.mark.parametrize("name", RUBBISH)
def test_what_is_no_answer_is_told_with_the_last_words(name: str) -> None:
    reply, told = RUBBISH[name]
    channel, started = channel_of(reply, answered({"ok": 1}))
    with pytest.raises(SystemFailed) as raised:
        channel.call([LOOK])
    assert str(raised.value).startswith("The adapter exec:it ")
    assert told in str(raised.value)
    assert str(raised.value).endswith("The end of its standard error:\nfirst\nlast")
    assert started[0].ended == ["killed"]
    assert not channel.ready
    assert channel.ask("observe") == 1, "the next call starts another"


def test_an_answer_that_never_comes_is_no_exception_of_the_adapter() -> None:
    channel, started = channel_of(lambda _: NoAnswer("has not answered after 5 s"))
    with pytest.raises(SystemHangs, match="has not answered after 5 s"):
        channel.call([LOOK])
    assert started[0].ended == ["killed"]


def test_a_call_that_was_interrupted_is_not_taken_for_the_next_ones_answer() -> None:
    class Interrupted(BaseException):
        """As Ctrl-C, or a watch, in the middle of a wait."""

    def reply(_: int) -> str:
        raise Interrupted

    channel, started = channel_of(reply, answered({"ok": 1}))
    with pytest.raises(Interrupted):
        channel.call([LOOK])
    assert channel.ask("observe") == 1
    assert started[0].ended == ["killed"]


def test_channels_are_lent_to_one_at_a_time_and_all_end_together() -> None:
    channels, started = Channels(), list[Scripted]()

    def opener() -> Scripted:
        started.append(Scripted(answered({"ok": 1})))
        return started[-1]

    first = channels.borrow("a", opener)
    second = channels.borrow("a", opener)
    other = channels.borrow("b", opener)
    for channel in (first, second, other):
        channel.ask("observe")
    channels.give_back(first)
    channels.give_back(first)
    assert channels.borrow("a", opener, AdapterTimeouts(call=1.0)) is first
    assert first.limits.call == 1.0
    assert channels.borrow("a", opener) is not first
    channels.close()
    assert [one.ended for one in started] == [["hung up", "closed"]] * 3


def test_an_answer_that_is_nested_too_deep_is_the_adapters_fault() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    channel, _ = channel_of(lambda number: f'{{"id": {number}, "answers": [{{"ok": {deep}}}]}}')
    with pytest.raises(SystemFailed, match="nested too deep"):
        channel.call([LOOK])
