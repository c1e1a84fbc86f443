"""A finding on replicas as a test of one broker: its partition, its log, its fetcher are Kafka's.

Only the broker that departs is there. What others send it is in the test, as the path has it: a
follower's fetch, an answer of the leader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from conformance.story.behaviour import Behaviour
from conformance.systems.kafka.junit.steps import JUnitScene
from conformance.systems.shared.departing import DepartingPath, Unsayable, fn
from conformance.tla import Action, Fn, Value

_NONE = -1
_ASKED = ("LatestRequest", "EarliestRequest")
_PARTS = MappingProxyType(
    {
        "append(": {"leads"},
        "handleFetchOf(": {"leads"},
        "betweenReadAndCount(": {"leads", "interrupted"},
        "becomeFollower(": {"follows"},
        "work(": {"fetches", "follows"},
        "fetcher.": {"fetches", "follows"},
        "record(": {"records"},
        "offset(": {"offsets"},
        "highWatermark(": {"highWatermark"},
        "logEndOffsetOf(": {"followerState"},
        "epochsOfTheLog(": {"log"},
    }
)


@dataclass(slots=True)
class ReplicaScene(JUnitScene):
    """A replica, as the broker that departs sees it."""

    template = "replica.java.txt"
    calls = _PARTS
    broker: str

    @classmethod
    def of(cls, behaviour: Behaviour) -> ReplicaScene:
        """The scene of the broker whose values are not as the specification has them."""
        scene = DepartingPath(behaviour)
        for name, expected, actual in scene.differing():
            if isinstance(expected, Fn) and isinstance(actual, Fn) and name in _ASSERTED:
                for broker in expected:
                    if expected[broker] != actual.get(broker):
                        return cls(scene, str(broker))
        raise Unsayable("no broker's log, watermark or fetcher differs at its end")

    @property
    def placeholders(self) -> Mapping[str, str]:
        """The template's values that belong to a replica."""
        replicas = self.scene.value(0, "online")
        assert isinstance(replicas, Fn)
        return {
            "broker": _id(self.broker),
            "replicas": ", ".join(sorted(_id(broker) for broker in replicas)),
        }

    # ---- steps -------------------------------------------------------------------------------

    def _start(self) -> Iterable[str]:
        leader, epoch = self._own(0, "leader"), self._own(0, "leaderEpoch")
        if leader == self.broker:
            return (f"becomeLeader({epoch}, {self._members(self._own(0, 'isr'))});",)
        return (f"becomeFollower({epoch}, {_id(leader)});",)

    def _step(self, number: int) -> None:
        action = self.scene.action(number)
        say = _OWN.get(action.name) if self.broker in action.args else None
        if say is not None and say(self, number, action):
            return
        if self.broker in action.args[:1] and action.name not in _ELSEWHERE:
            raise Unsayable(f"it has no words for the step {action}")
        self.lines.comment(_comment(action))

    def _become_leader(self, number: int, action: Action) -> bool:
        if action.args[0] != self.broker:
            return False
        epoch = self._own(number, "leaderEpoch")
        self.lines.add(f"becomeLeader({epoch}, {self._members(self._own(number, 'isr'))});")
        return True

    def _become_follower(self, number: int, action: Action) -> bool:
        if action.args[0] != self.broker:
            return False
        epoch, leader = self._own(number, "leaderEpoch"), self._own(number, "leader")
        self.lines.add(f"becomeFollower({epoch}, {_id(leader)});")
        return True

    def _append(self, _number: int, _action: Action) -> bool:
        self.lines.add("append();")
        return True

    def _round_trip(self, number: int, action: Action) -> bool:
        leader, follower = action.args
        if leader == self.broker:
            cache = self.scene.of(number - 1, "epochCache", follower)
            assert isinstance(cache, tuple)
            self.lines.add(
                _fetch_of(
                    follower,
                    self.scene.of(number - 1, "fetchOffset", follower),
                    self.scene.of(number - 1, "leaderEpoch", follower),
                    fn(cache[-1])["epoch"] if cache else _NONE,
                )
            )
            return True
        before, after = (self._own(at, "log") for at in (number - 1, number))
        assert isinstance(before, tuple)
        assert isinstance(after, tuple)
        records = after[len(before) :]
        words = self._records(records, len(before))
        self.lines.add(f"answers.add(() -> answer(fetched(Errors.NONE){words}));")
        self._do_work()
        return True

    def _handle_fetch(self, number: int, action: Action) -> bool:
        leader, follower = action.args
        if leader != self.broker:
            self.lines.comment(f"Broker {_id(leader)} answers.")
            return True
        self.lines.add(self._asked_by(number, follower))
        return True

    def _asked_by(self, number: int, follower: Value) -> str:
        request = fn(self.scene.of(number - 1, "channel", follower))
        epoch, last = request["currentLeaderEpoch"], request["lastEpoch"]
        return _fetch_of(follower, request["fetchOffset"], epoch, last)

    def _read_fetch(self, number: int, action: Action) -> bool:
        if action.args[0] != self.broker:
            return False
        self.lines.open("betweenReadAndCount(() -> {")
        self.lines.keep(self._asked_by(number, action.args[1]))
        return True

    def _count_fetch(self, _number: int, action: Action) -> bool:
        if action.args[0] != self.broker:
            return False
        self.lines.close("});")
        self.lines.add(self.lines.kept())
        return True

    def _send_fetch(self, _number: int, _action: Action) -> bool:
        self.lines.open("answers.add(() -> {")
        self.lines.comment("The fetcher asks its leader. Before the answer arrives:")
        return True

    def _process(self, number: int, _action: Action) -> bool:
        answer = self._own(number - 1, "channel")
        assert isinstance(answer, Fn)
        self.lines.add(f"return {self._answer(answer)};")
        self.lines.close("});")
        next_message = self._own(number, "channel")
        assert isinstance(next_message, Fn)
        if next_message["type"] in _ASKED:
            self.lines.open("answers.add(() -> {")
            self.lines.comment("It asks for the leader's offsets. Before the answer arrives:")
        else:
            self._do_work()
        return True

    def _do_work(self) -> None:
        self.lines.add("work();")

    def _answer(self, message: Fn) -> str:
        error = f"Errors.{message['error']}"
        if message["type"] != "FetchResponse":
            return f"offset({error}, {message['endOffset']}, {message['epoch']})"
        words = ""
        if message["error"] == "NONE" and message["epoch"] != -1:
            words = (
                ".setDivergingEpoch(new FetchResponseData.EpochEndOffset()"
                f".setEpoch({message['epoch']}).setEndOffset({message['endOffset']}))"
            )
        elif message["error"] == "NONE":
            records = message["records"]
            assert isinstance(records, tuple)
            words = self._records(records, message["fetchOffset"])
            words += f".setHighWatermark({message['highWatermark']})"
        return f"answer(fetched({error}){words})"

    def _records(self, epochs: tuple[Value, ...], offset: Value) -> str:
        if len(epochs) > 1:
            raise Unsayable("a leader sends more than one record")
        return f".setRecords(record({offset}, {epochs[0]}))" if epochs else ""

    # ---- the end -----------------------------------------------------------------------------

    def _then(self) -> Iterator[str]:
        differing = {name: (expected, actual) for name, expected, actual in self.scene.differing()}
        for name, say in _ASSERTED.items():
            if name in differing:
                expected, actual = (values[self.broker] for values in map(fn, differing[name]))
                if expected != actual:
                    yield from say(self, expected, actual)

    def _high_watermark(self, expected: Value, _actual: Value) -> Iterator[str]:
        yield f'assertEquals({expected}, highWatermark(), "high watermark");'

    def _log(self, expected: Value, _actual: Value) -> Iterator[str]:
        assert isinstance(expected, tuple)
        epochs = ", ".join(map(str, expected))
        yield f'assertEquals(List.of({epochs}), epochsOfTheLog(), "leader epochs of the records");'

    def _follower_state(self, expected: Value, actual: Value) -> Iterator[str]:
        for follower in fn(expected):
            wanted, seen = (fn(fn(each)[follower])["logEndOffset"] for each in (expected, actual))
            if wanted != seen:
                number = _id(follower)
                what = f"what is known of broker {number}'s log end"
                yield f'assertEquals({wanted}, logEndOffsetOf({number}), "{what}");'

    def _fetch_state(self, expected: Value, _actual: Value) -> Iterator[str]:
        if expected == "Failed":
            yield 'assertTrue(failed.contains(PARTITION), "the partition has failed");'
        elif expected == "None":
            yield 'assertTrue(fetcher.fetchState(PARTITION).isEmpty(), "nothing is fetched");'

    # ---- values ------------------------------------------------------------------------------

    def _own(self, number: int, variable: str) -> Value:
        return self.scene.of(number, variable, self.broker)

    def _members(self, isr: Value) -> str:
        assert isinstance(isr, frozenset)
        return ", ".join(sorted(map(_id, isr)))


def _id(broker: Value) -> str:
    return str(broker).lstrip("b")


def _fetch_of(follower: Value, offset: Value, epoch: Value, last: Value) -> str:
    """The leader handles a fetch."""
    fetched = "Optional.empty()" if last == _NONE else f"Optional.of({last})"
    return f"handleFetchOf({_id(follower)}, {offset}, {epoch}, {fetched});"


def _comment(action: Action) -> str:
    """A step that this broker does not see."""
    words = _ELSEWHERE.get(action.name, str(action))
    arguments = [re.sub(r"^b(\d+)$", r"broker \1", str(value)) for value in action.args]
    sentence = words.format(*arguments)
    return sentence[:1].upper() + sentence[1:]


_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "ElectLeader": "The controller elects {1} in leader epoch {0}.",
        "FenceBroker": "The controller fences {1}; {2} is elected in leader epoch {0}.",
        "BecomeLeader": "{0} hears that it leads in epoch {1}.",
        "BecomeFollower": "{0} hears that it follows in epoch {1}.",
        "AppendAsLeader": "{0} appends a record.",
        "SendFetch": "{0} asks for records.",
        "ProcessFetchResponse": "{0} appends what it has got.",
        "ShrinkIsr": "{0} takes {1} out of the ISR.",
        "AdvanceLogStartOffset": "{0} deletes its records below offset {1}.",
        "HandleListOffsets": "{0} answers.",
    }
)
_Say = Callable[[ReplicaScene, int, Action], bool]
_OWN: Mapping[str, _Say] = MappingProxyType(
    {
        "BecomeLeader": ReplicaScene._become_leader,
        "BecomeFollower": ReplicaScene._become_follower,
        "AppendAsLeader": ReplicaScene._append,
        "FetchRoundTrip": ReplicaScene._round_trip,
        "HandleFetch": ReplicaScene._handle_fetch,
        "ReadFetch": ReplicaScene._read_fetch,
        "CountFetch": ReplicaScene._count_fetch,
        "SendFetch": ReplicaScene._send_fetch,
        "ProcessFetchResponse": ReplicaScene._process,
        "ProcessListOffsetsResponse": ReplicaScene._process,
    }
)
"""By action, what the test does; False: nothing, the broker does not see the step."""
_Assert = Callable[[ReplicaScene, Value, Value], Iterator[str]]
_ASSERTED: Mapping[str, _Assert] = MappingProxyType(
    {
        "highWatermark": ReplicaScene._high_watermark,
        "log": ReplicaScene._log,
        "fetchState": ReplicaScene._fetch_state,
        "followerState": ReplicaScene._follower_state,
    }
)
"""By variable, what is asserted of it."""
