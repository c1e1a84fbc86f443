"""A recording of real brokers as events of Replication, one trace for each partition.

The agent tells the state of a broker's partition after each section that changed it, each fetch of
a follower at its leader and when it was asked for, and what the controller registers. Nearly every
step is seen; what is silent is what nobody hooks (`SILENT`).

Where a real step is not one of the specification's, this module says which it is taken for:

- A fetch is read, then counted, under the lock twice (Partition.fetchRecords, then
  updateFollowerFetchState): one step, at the end of both. A leader with one request handler does
  nothing for others in between; scenarios set `num.io.threads = 1`.
- A fetch that waits for data (DelayedFetch) counts when it comes and is read again when it is
  answered: two round trips of the specification, the first one's answer being lost.
- A round trip that changed neither side is left out.
- A process that starts reads the metadata log from the past on; what it does in epochs that have
  ended by then is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from conformance.errors import DataError
from conformance.recordings.folder import (
    RecordedLine,
    RecordedTrace,
    agents_lines,
    manifest,
)
from conformance.recordings.lines import JsonObject

MODEL = "replication/recorded-fine-3b"
"""Names the specification; every constant of the recording is in its mapping."""

SILENT = ("TruncateToHighWatermark", "HandleAlterPartition", "ProcessAlterPartition")
"""A new follower's first truncation, and ISR changes that the controller refuses."""

_FREE = {
    "Protocol": '"TruncateOnFetch"',
    "Fine": "TRUE",
    "UncleanElection": "FALSE",
    "Crashes": "TRUE",
    "LogStartMoves": "FALSE",
    "TwoStepIsr": "TRUE",
}
"""What real brokers do, and what may happen to them."""


_RECORD_BYTES = 100
"""A batch of one record has about 70 bytes, two would have 140."""


def unfit_settings(recording: Path) -> str:
    """Why the brokers' settings leave no partition to be judged, or nothing.

    In the specification an answer carries one record, and a leader reads and counts a fetch in one
    step. Of one broker alone nobody fetches. A recording that does not keep its brokers' settings
    is taken to be fit. Raises DataError if the folder is no recording.
    """
    report = manifest(recording)
    settings = report.get("settings")
    if settings is None or len(report.get("brokers", [])) == 1:
        return ""
    asked = int(settings.get("replica.fetch.max.bytes", 1_048_576))
    threads = int(settings.get("num.io.threads", 8))
    wrong = [f"`replica.fetch.max.bytes` was {asked}"] if asked > _RECORD_BYTES else []
    wrong += [f"`num.io.threads` was {threads}"] if threads > 1 else []
    if not wrong:
        return ""
    return (
        f"{recording}: its partitions are not judged, since {' and '.join(wrong)}. A follower of "
        "the specification fetches one record at a time, and its leader handles one request at a "
        "time: other steps would be taken for wrong ones. Record with `replica.fetch.max.bytes = "
        f'"{_RECORD_BYTES}"` and `num.io.threads = "1"` under [settings] of the scenario.'
    )


def partitions_in(recording: Path) -> list[str]:
    """The partitions that a controller registered. Raises DataError if the folder is none."""
    manifest(recording)
    bodies = (line.body for line in agents_lines(recording))
    return sorted({body["registration"] for body in bodies if "registration" in body})


def replication_traces(recording: Path) -> Iterator[RecordedTrace]:
    """One trace for each partition, in the order of their names.

    Raises DataError if the folder is no recording, or shows what the specification cannot: several
    records in a batch, a replica that was not there when the partition was created.
    """
    report = manifest(recording)
    result: dict[str, list[RecordedLine]] = defaultdict(list)
    for seen in agents_lines(recording):
        name = seen.body.get("partition") or seen.body.get("registration")
        if name and seen.time <= (report.get("ended") or seen.time):
            result[name].append(seen)
    for name in partitions_in(recording):
        yield _Partition(name, sorted(result[name], key=lambda item: item.time), report).trace()


# --- what was seen --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Registration:
    """What the controller had registered from a time on."""

    time: int
    source: str
    leader: str
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[str]


def _registrations(
    lines: Iterable[RecordedLine], outages: Mapping[str, list[int]]
) -> list[_Registration]:
    """Each change, when the first controller made it.

    All controllers replay all records, and read them again when they start. Of two records with one
    partition epoch, one was never committed: the one that fewer controllers tell.
    """
    report: dict[int, dict[_Content, dict[str, RecordedLine]]] = {}
    registered = [seen for seen in lines if "registration" in seen.body]
    for seen in _without_reverted(registered, outages):
        nodes = report.setdefault(_partition_epoch(seen), {}).setdefault(_content(seen), {})
        nodes.setdefault(seen.node, seen)
    return [_earliest(epoch, contents) for epoch, contents in sorted(report.items())]


def _without_reverted(
    registered: Iterable[RecordedLine], outages: Mapping[str, list[int]]
) -> Iterator[RecordedLine]:
    """What controllers told, without what they have taken back.

    A controller that was paused goes on as the active one until it hears of its successor. What it
    has written by then is not committed: QuorumController.claim and renounce take its state back to
    the last committed offset, and its next record has a partition epoch that it has told before.
    What it then tells once more was committed by others, perhaps answered to a leader before: it
    counts from the first time on. A process that starts tells the past again, and takes nothing
    back.
    """
    kept: dict[str, list[RecordedLine]] = defaultdict(list)
    first: dict[tuple[str, int, int, _Content], RecordedLine] = {}
    for seen in registered:
        own, epoch = kept[seen.node], _partition_epoch(seen)
        ends = outages.get(_broker(int(seen.node)), [])
        started = max((end for end in ends if end < seen.time), default=0)
        while own and own[-1].time > started and _partition_epoch(own[-1]) >= epoch:
            own.pop()
        own.append(first.setdefault((seen.node, started, epoch, _content(seen)), seen))
    return (seen for own in kept.values() for seen in own)


_Content = tuple[str, int, frozenset[str]]
"""Leader, leader epoch, and who may be elected."""


def _content(registered: RecordedLine) -> _Content:
    state = registered.body["state"]
    return _broker(state["leader"]), state["leaderEpoch"], _brokers(_electable(state))


def _partition_epoch(registered: RecordedLine) -> int:
    epoch: int = registered.body["state"]["partitionEpoch"]
    return epoch


def _electable(state: JsonObject) -> Sequence[int]:
    """Whom the controller may elect: the ISR, or who was the last in it.

    With KIP-966 a partition without a leader has an empty ISR, and beside it the eligible leader
    replicas; once one of those has lost its process, it is the last known leader. At
    `min.insync.replicas=1` there are such only where the ISR is empty, and they are who was its
    last member; without KIP-966, and in the specification, this one stays in the ISR.
    """
    return next((state[kind] for kind in _ELECTABLE if state.get(kind)), ())


_ELECTABLE = ("isr", "elr", "lastKnownElr")


def _without_repetitions(registrations: Sequence[_Registration]) -> list[_Registration]:
    """Without changes of what is no part of the specification, as from eligible to last known."""
    result: list[_Registration] = []
    for registration in registrations:
        last = result[-1] if result else None
        known = last and (last.leader, last.leader_epoch, last.isr)
        if known != (registration.leader, registration.leader_epoch, registration.isr):
            result.append(registration)
    return result


def _earliest(epoch: int, contents: Mapping[_Content, Mapping[str, RecordedLine]]) -> _Registration:
    (leader, leader_epoch, isr), nodes = max(contents.items(), key=lambda pair: len(pair[1]))
    first = min(nodes.values(), key=lambda seen: seen.time)
    return _Registration(first.time, first.source, leader, leader_epoch, epoch, isr)


def _broker(number: int | None) -> str:
    return "none" if number is None or number < 0 else f"b{number}"


def _brokers(numbers: Iterable[int]) -> frozenset[str]:
    return frozenset(map(_broker, numbers))


@dataclass(frozen=True, slots=True)
class _RecordedPartition:
    """A broker's partition at the end of a section."""

    leader: str
    leader_epoch: int
    partition_epoch: int
    isr: frozenset[str]
    sent_isr: frozenset[str]
    log_start: int
    log_end: int
    high_watermark: int
    epochs: tuple[tuple[int, int], ...]
    positions: Mapping[str, int]

    @classmethod
    def of(cls, state: JsonObject) -> _RecordedPartition:
        log: JsonObject = state["log"] or _NO_LOG
        return cls(
            _broker(state["leader"]),
            state["leaderEpoch"],
            state["partitionEpoch"],
            _brokers(state["isr"]),
            _brokers(state["sentIsr"]),
            log["logStartOffset"],
            log["logEndOffset"],
            log["highWatermark"],
            tuple((epoch, start) for epoch, start in log["epochs"]),
            {_broker(int(item)): f["logEndOffset"] for item, f in state["followers"].items()},
        )

    @property
    def records(self) -> list[int]:
        """The leader epoch of each record, from the log start on."""
        starts = [start for _, start in self.epochs]
        offsets = range(self.log_start, self.log_end)
        return [self.epochs[bisect_right(starts, offset) - 1][0] for offset in offsets]

    def without_others(self, before: _RecordedPartition, own: str) -> _RecordedPartition:
        """What is sure while another thread counts a fetch or appends: not what those change."""
        positions = {
            member: (self if member == own else before).positions.get(member, position)
            for member, position in self.positions.items()
        }
        return replace(self, positions=positions, high_watermark=before.high_watermark)

    def parts(self, broker: str, members: Iterable[str]) -> JsonObject:
        """The entries of the specification's variables that it shows."""
        leads = self.leader == broker
        parts: JsonObject = {
            "leaderEpoch": self.leader_epoch,
            "leader": self.leader,
            "isr": _set(self.isr),
            "pendingIsr": _set(self.sent_isr),
            "log": self.records,
            "logStartOffset": self.log_start,
            "highWatermark": self.high_watermark,
            "epochCache": [{"epoch": epoch, "start": start} for epoch, start in self.epochs],
        }
        if leads:  # a follower's is no part of the specification
            parts["partitionEpoch"] = self.partition_epoch
        shown = {f'{name}["{broker}"]': value for name, value in parts.items()}
        for member in members if leads else ():
            if member in self.positions:
                place = f'followerState["{broker}"]["{member}"].logEndOffset'
                shown[place] = self.positions[member]
        return shown


_NO_LOG: JsonObject = {"logStartOffset": 0, "logEndOffset": 0, "highWatermark": 0, "epochs": []}


def _set(brokers: Iterable[str]) -> JsonObject:
    return {"#set": sorted(brokers)}


@dataclass(frozen=True, slots=True)
class _AgentLine:
    """A line of the agent about this partition's state on a broker."""

    seen: RecordedLine
    broker: str
    section: str
    before: _RecordedPartition | None
    view: _RecordedPartition
    overlaps: bool = False
    """Whether another thread was in a section of the same partition."""

    @property
    def time(self) -> int:
        return self.seen.time

    @property
    def fetch(self) -> JsonObject | None:
        """What a follower asked for, if it is a fetch."""
        result: JsonObject | None = self.seen.body.get("fetch")
        return result

    @property
    def changed(self) -> bool:
        """Whether anything is as it was not after the broker's line before."""
        return self.view != self.before

    @property
    def counted(self) -> bool:
        """Whether a fetch changed what the leader knows of its followers."""
        before, view = self.before, self.view
        return before is None or (view.positions, view.high_watermark, view.sent_isr) != (
            before.positions,
            before.high_watermark,
            before.sent_isr,
        )


@dataclass(slots=True)
class _Round:
    """A follower's round trip: asked, read at the leader once or twice, and what came of it."""

    asked: RecordedLine
    reads: list[_AgentLine] = field(default_factory=list)
    processed: _AgentLine | None = None
    given_up: int = 0
    """When the follower asked for another, if `late` is there."""
    late: _AgentLine | None = None
    """The read of a leader that has done something else since then."""
    died: RecordedLine | None = None
    """The end of the follower's process, if it had stored the answer and not told of it yet."""

    @property
    def answered(self) -> _AgentLine | None:
        """The read whose answer was processed, if it was one."""
        done = self.processed.time if self.processed else self.died.time if self.died else 0
        earlier = [read for read in self.reads if read.time < done]
        return earlier[-1] if earlier else None


# --- the steps ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Partition:
    """Makes the events of one partition."""

    name: str
    lines: Sequence[RecordedLine]
    manifest: JsonObject
    brokers: tuple[str, ...] = ()
    first_epoch: int = 0
    _versions: list[int] = field(default_factory=list)
    """The partition epochs that count: the specification's are their places here."""
    _events: list[tuple[int, int, JsonObject]] = field(default_factory=list)
    _outages: Mapping[str, list[int]] = field(default_factory=dict)
    _untold: dict[str, list[RecordedLine]] = field(default_factory=lambda: defaultdict(list))
    """The ends of each follower's process that left more on disk than it had told."""

    def trace(self) -> RecordedTrace:
        """The events in their order, with the constants that they need."""
        outages = self._ends()
        registrations = _registrations(self.lines, outages)
        if not registrations or registrations[0].partition_epoch:
            raise DataError(f"The recording does not show the creation of {self.name}.")
        registrations = _without_repetitions(registrations)
        self._versions = [registration.partition_epoch for registration in registrations]
        first = registrations[0]
        self.brokers = tuple(sorted(first.isr))
        self.first_epoch = first.leader_epoch
        self._outages = {broker: outages.get(broker, []) for broker in self.brokers}
        states = self._states(registrations)
        self._elections(registrations)
        self._crashes(states)
        self._sections(states, registrations)
        rounds = {broker: self._rounds(broker, states) for broker in self.brokers}
        every = [item for own in rounds.values() for item in own]
        _tell_when_first_seen(every)
        _tell_before_the_append(every)
        for broker, own in rounds.items():
            for item in own:
                self._round_trip(broker, item)
        events = tuple(event for _, _, event in sorted(self._events, key=lambda item: item[:2]))
        constants = _FREE | self._constants(first, registrations, states)
        return RecordedTrace(self.name, MODEL, events, constants, SILENT, steps=2)

    def _constants(
        self,
        first: _Registration,
        registrations: Sequence[_Registration],
        states: Sequence[_AgentLine],
    ) -> dict[str, str]:
        ends = [line.view.log_end for line in states]
        appends = sum("AppendAsLeader" in str(event) for _, _, event in self._events)
        last = registrations[-1]
        left = ", ".join(f'{broker} |-> "left by {broker}"' for broker in self.brokers)
        return {
            "Brokers": "{" + ", ".join(f'"{broker}"' for broker in self.brokers) + "}",
            "LeftBehind": f"[{left}]",
            "Epochs": f"{self.first_epoch}..{last.leader_epoch}",
            "Offsets": f"0..{max(ends, default=0)}",
            "AppendCounts": f"0..{appends}",
            "BrokerEpochs": f"0..{max(map(len, self._outages.values()), default=0)}",
            "PartitionEpochs": f"0..{self._numbered(last.partition_epoch)}",
            "InitialLeader": f'"{first.leader}"',
        }

    def _add(
        self,
        seen: RecordedLine,
        name: str,
        args: Sequence[object],
        parts: JsonObject | None = None,
        *,
        place: int = 0,
    ) -> None:
        """A step at a line's time; of several at one time those with a lower place come first."""
        self._event(seen, _action(name, *args), parts, place)

    def _event(
        self,
        seen: RecordedLine,
        action: JsonObject | list[JsonObject],
        parts: JsonObject | None,
        place: int,
    ) -> None:
        event = {
            "trace": self.name,
            "time": seen.time / 1e9,
            "source": seen.source,
            **({"action": action} if action else {}),
        }
        self._events.append((seen.time, place, event | ({"state": parts} if parts else {})))

    # --- processes --------------------------------------------------------------------------------

    def _ends(self) -> dict[str, list[int]]:
        """When each node's process ended, by the recording's faults."""
        ends: dict[str, list[int]] = defaultdict(list)
        for fault in self.manifest.get("faults", []):
            if fault["action"] in ("kill", "stop") and not fault.get("problem"):
                ends[_broker(fault.get("node"))].append(fault["time"])
        return ends

    def _crashes(self, states: Sequence[_AgentLine]) -> None:
        """What a process that ended left on disk is what its next one begins with."""
        for broker, ends in self._outages.items():
            own = [line for line in states if line.broker == broker]
            for before, end in pairwise([0, *ends]):
                if before and not any(before < line.time < end for line in own):
                    continue  # it ended again before it had come back to this partition
                after = next((line for line in own if line.time > end), None)
                crash = RecordedLine(end, "recording.json", broker, {})
                if after is None:
                    last = [line for line in own if line.time < end][-1:]
                    left: list[object] = [line.view.log_end for line in last] or [0]
                    self._add(crash, "Crash", [broker, *left, None])
                    continue
                self._last_appends(crash, own, after)
                # A leader that is alone has moved its high watermark at once.
                mark = None if after.view.leader == broker else after.view.high_watermark
                self._add(crash, "Crash", [broker, after.view.log_end, mark])
                self._add(after.seen, "Restart", [broker], place=-1)

    def _last_appends(
        self, crash: RecordedLine, own: Sequence[_AgentLine], after: _AgentLine
    ) -> None:
        """What was appended last, if its broker died before the agent had written it down."""
        last = next((line for line in reversed(own) if line.time < crash.time), None)
        report = last.view.log_end if last else 0
        if last is not None and last.view.leader == last.broker:
            for offset in range(report, after.view.log_end):
                self._add(crash, "AppendAsLeader", [last.broker, offset], place=-1)
        elif report < after.view.log_end:
            self._untold[after.broker].append(crash)

    # --- the controller ---------------------------------------------------------------------------

    def _elections(self, registrations: Sequence[_Registration]) -> None:
        for before, after in pairwise(registrations):
            parts = {
                "registration.leader": after.leader,
                "registration.leaderEpoch": after.leader_epoch,
                "registration.isr": _set(after.isr),
                "registration.partitionEpoch": self._numbered(after.partition_epoch),
            }
            change = RecordedLine(after.time, after.source, "", {})
            self._event(change, _registered(before, after), parts, 0)

    # --- sections of brokers ----------------------------------------------------------------------

    def _states(self, registrations: Sequence[_Registration]) -> list[_AgentLine]:
        """What brokers' sections left, from where each has taken up the first epoch.

        A process that starts reads the metadata log from the past on: it counts from the epoch that
        is registered by then, as in the specification.
        """
        epochs = [(registration.time, registration.leader_epoch) for registration in registrations]
        last: dict[str, _AgentLine] = {}
        result: list[_AgentLine] = []
        for seen in _without_vain_expansions(self.lines):
            if _is_a_consumers(seen.body):
                continue
            broker = _broker(int(seen.node))
            if broker not in self._outages:
                raise DataError(
                    f"{seen.source} is of {broker}, which was no replica of {self.name} when it "
                    "was created."
                )
            known = last.get(broker)
            line = self._line(seen, broker, known)
            registered = max((epoch for time, epoch in epochs if time <= seen.time), default=0)
            if known is not None and line.before is None and line.view.leader_epoch < registered:
                continue
            last[broker] = line
            if known is not None:  # a broker's first line is its LeaderAndIsr: the spec's Init
                result.append(line)
        return result

    def _numbered(self, partition_epoch: int) -> int:
        """The specification's partition epoch; not below 0, that of a broker that knows none."""
        return max(0, bisect_right(self._versions, partition_epoch) - 1)

    def _line(self, seen: RecordedLine, broker: str, known: _AgentLine | None) -> _AgentLine:
        view = _RecordedPartition.of(seen.body["state"])
        view = replace(view, partition_epoch=self._numbered(view.partition_epoch))
        section, overlaps = seen.body["section"], bool(seen.body.get("overlaps"))
        if known is None or self._ended(broker, known.time, seen.time):
            return _AgentLine(seen, broker, section, None, view)
        if _is_behind(view, known.view, broker):
            overlaps, view = True, replace(view, log_end=known.view.log_end)
        if overlaps:
            own = _broker(seen.body.get("fetch", {}).get("replica"))
            view = view.without_others(known.view, own)
        return _AgentLine(seen, broker, section, known.view, view, overlaps)

    def _sections(
        self, states: Iterable[_AgentLine], registrations: Sequence[_Registration]
    ) -> None:
        """Steps that one section is."""
        for line in states:
            if _appended(line) and line.section != _APPEND:
                # Another thread's append, which has not come to its end.
                self._add(line.seen, "AppendAsLeader", _append(line), place=-5)
            elif line.changed and line.fetch is None:
                for name, args in _steps(line):
                    if name in _TOLD_BY_METADATA and _is_replaced(line, registrations):
                        name, args = f"{name}Late", [*args, line.view.partition_epoch]
                    self._add(line.seen, name, args, self._shown(line))

    # --- followers' round trips -------------------------------------------------------------------

    def _rounds(self, follower: str, states: Sequence[_AgentLine]) -> list[_Round]:
        """The follower's round trips, each from its request to the next."""
        asked = [
            RecordedLine(line.time, line.source, line.node, line.body)
            for line in self.lines
            if "request" in line.body and _broker(int(line.node)) == follower
        ]
        rounds = [_Round(item) for item in asked]
        times = [item.time for item in asked]
        for line in states:
            at = bisect_right(times, line.time) - 1
            if at < 0:
                continue
            fetch = line.fetch
            if fetch and _broker(fetch["replica"]) == follower and not fetch["error"]:
                of = _asked_for(asked[: at + 1], fetch)
                if of == at:
                    rounds[of].reads.append(line)
                else:
                    _read_late(rounds[of], line, times[of + 1], states)
            elif line.broker == follower and _stored(line):
                rounds[at].processed = line
        for crash in self._untold[follower]:
            at = bisect_right(times, crash.time) - 1
            if at >= 0 and rounds[at].processed is None:
                rounds[at].died = crash
        return rounds

    def _round_trip(self, follower: str, item: _Round) -> None:
        """The steps of a round trip that changed anything."""
        if item.late is not None and item.late.counted:
            self._left_behind(follower, item, item.late)
            return
        done = item.processed
        counted = next((read for read in item.reads if read.counted), None)
        answered = item.answered
        if done is not None and answered is None:
            # Its first truncation, on becoming a follower: nobody was asked.
            self._add(done.seen, "TruncateToHighWatermark", [follower], self._shown(done))
            return
        if counted is None and answered is None:
            return
        self._add(item.asked, "SendFetch", [follower])
        if counted is not None:
            self._handle(follower, counted)
        if answered is not None and not _is_part(counted, answered):
            if counted is not None:
                self._add(answered.seen, "LoseMessage", [follower], place=-2)
                self._add(answered.seen, "SendFetch", [follower], place=-1)
            self._handle(follower, answered)
        if done is not None:
            self._add(done.seen, "ProcessFetchResponse", [follower], self._shown(done))
        elif item.died is not None and answered is not None:
            self._add(item.died, "ProcessFetchResponse", [follower], place=-1)
        elif counted is not None and not self._ended(follower, item.asked.time, counted.time):
            self._add(counted.seen, "LoseMessage", [follower], place=2)

    def _left_behind(self, follower: str, item: _Round, late: _AgentLine) -> None:
        """A request that its follower gave up, and its leader read all the same."""
        self._add(item.asked, "SendFetch", [follower])
        left = RecordedLine(item.given_up - 1, item.asked.source, item.asked.node, {})
        self._add(left, "LeaveFetch", [follower])
        self._handle(follower, late, "HandleLeftFetch")

    def _handle(self, follower: str, read: _AgentLine, action: str = "HandleFetch") -> None:
        """The fetch at the leader, and the ISR change that it set off."""
        parts = self._shown(read)
        before = read.before.sent_isr if read.before else frozenset()
        expands = read.view.sent_isr and not before
        if expands:
            parts = {place: value for place, value in parts.items() if "pendingIsr" not in place}
        self._add(read.seen, action, [read.broker, follower], parts)
        if expands:
            args = [read.broker, follower]
            self._add(read.seen, "SubmitExpandIsr", args, self._shown(read), place=1)

    def _shown(self, line: _AgentLine) -> JsonObject:
        view = line.view
        if view.log_end > view.log_start and not view.epochs:
            raise DataError(
                f"{line.seen.source} shows records of {self.name} without a leader epoch."
            )
        parts = view.parts(line.broker, self.brokers)
        unsure = ("highWatermark", "followerState") if line.overlaps else ()
        if line.section == _EXPANDS:  # amid a fetch, which looks at the high watermark after it
            unsure = (*unsure, "highWatermark")
        return {place: value for place, value in parts.items() if not place.startswith(unsure)}

    def _ended(self, broker: str, since: int, until: int) -> bool:
        return any(since < end < until for end in self._outages[broker])


def _is_behind(view: _RecordedPartition, known: _RecordedPartition, broker: str) -> bool:
    """Whether a leader's line was read before the one that comes before it.

    Its log does not get shorter within its epoch: two threads have read it at once, and what the
    first one read was written down second.
    """
    leads = view.leader == known.leader == broker
    same = leads and view.leader_epoch == known.leader_epoch
    return same and view.log_end < known.log_end


def _read_late(item: _Round, line: _AgentLine, given_up: int, states: Sequence[_AgentLine]) -> None:
    """A fetch that is read when its follower has long asked for another.

    A leader that was paused finds what its followers sent in the meantime. Where it has done
    nothing else to the partition since they gave up, it is the same to all whether it read it then
    or now: it is told then, and the answer is lost.
    """
    between = (
        other
        for other in states
        if other.broker == line.broker and given_up <= other.time < line.time
    )
    if any(other.changed for other in between):
        item.given_up, item.late = given_up, line
    else:
        item.reads.append(replace(line, seen=replace(line.seen, time=given_up - 1)))


def _tell_when_first_seen(rounds: Sequence[_Round]) -> None:
    """Put fetches before those whose answers show what they have changed.

    A fetch that raises the high watermark completes others that wait; one may be read, and answered
    by another thread, before the section of the first has come to its end. Its answer has the
    raised high watermark: its follower's, once it has processed it.
    """
    for item in rounds:
        read, done = item.answered, item.processed
        if read is None or done is None or not read.overlaps:
            continue
        if done.view.high_watermark <= read.view.high_watermark:
            continue
        for other in rounds:
            other.reads = [
                replace(line, seen=replace(line.seen, time=read.time - 1))
                if line.counted and _is_around(line, read)
                else line
                for line in other.reads
            ]


def _tell_before_the_append(rounds: Sequence[_Round]) -> None:
    """Put fetches before an append that their lines show and their answers do not.

    The leader reads, another thread appends, and only then comes the end of the fetch's section:
    its line has the record, and its follower, once it has processed the answer, has not.
    """
    for item in rounds:
        read, done = item.answered, item.processed
        if read is None or done is None or read.before is None or read.fetch is None:
            continue
        asked, before = read.fetch["fetchOffset"], read.before.log_end
        if read.overlaps and before <= asked < read.view.log_end and done.view.log_end == asked:
            earlier = replace(
                read,
                seen=replace(read.seen, time=read.time - 1),
                view=replace(read.view, log_end=before),
            )
            item.reads = [earlier if line is read else line for line in item.reads]


def _is_part(counted: _AgentLine | None, answered: _AgentLine) -> bool:
    """Whether two lines are of one fetch: the ISR change that it set off, and its end."""
    if counted is None or counted is answered:
        return counted is answered
    whole, change = answered.seen.body, counted.seen.body
    same = whole.get("thread") == change.get("thread")
    return same and counted.section == _EXPANDS and whole["entered"] <= change["entered"]


def _is_around(fetch: _AgentLine, read: _AgentLine) -> bool:
    """Whether a fetch's section was open when another one's came to its end."""
    began: int = fetch.seen.body["entered"]
    return fetch.broker == read.broker and began < read.time < fetch.time


def _asked_for(asked: Sequence[RecordedLine], fetch: JsonObject) -> int:
    """Which request a leader has read: the last one of its offset and epoch, else the last."""
    wanted = (fetch["fetchOffset"], fetch.get("currentLeaderEpoch"))
    for number in range(len(asked) - 1, -1, -1):
        request = asked[number].body["request"]
        if (request["fetchOffset"], request.get("currentLeaderEpoch")) == wanted:
            return number
    return len(asked) - 1


def _without_vain_expansions(lines: Iterable[RecordedLine]) -> Iterator[RecordedLine]:
    """The lines about brokers' states, without ISR changes that were never sent.

    While the answer to the last change is awaited AlterPartitionManager.submit fails at once
    (OPERATION_NOT_ATTEMPTED), and the partition takes the change back within the same fetch.
    """
    states = [line for line in lines if "partition" in line.body and "state" in line.body]
    after: dict[str, RecordedLine] = {}
    vain: set[str] = set()
    for state in reversed(states):
        following = after.get(state.node)
        if following is not None and state.body["section"] == _EXPANDS:
            before, now = state.body["state"], following.body["state"]
            same = following.body.get("thread") == state.body.get("thread")
            same = same and following.body["section"] == _FETCH
            unchanged = all(now[key] == before[key] for key in ("isr", "partitionEpoch"))
            if same and unchanged and not now["sentIsr"]:
                vain.add(state.source)
        after[state.node] = state
    return (state for state in states if state.source not in vain)


def _is_a_consumers(body: JsonObject) -> bool:
    """Whether it is a consumer's read: it changes nothing.

    What it shows to be new is of a section around it that has not come to its end, as of a
    follower's fetch that raises the high watermark and completes the reads that wait for it.
    """
    return body["section"] == _FETCH and "fetch" not in body


_FETCH = "fetchRecords"
_EXPANDS = "$anonfun$maybeExpandIsr$2"
_PROCESSED = ("processPartitionData", "truncate", "truncateFullyAndStartAt")
"""Where ReplicaFetcherThread stores what came, or cuts its log."""


def _stored(line: _AgentLine) -> bool:
    """Whether a follower has processed an answer, if only another thread's line shows it."""
    before, view = line.before, line.view
    if before is None or line.section in _PROCESSED:
        return before is not None and line.changed
    return line.overlaps and view.leader != line.broker and view.log_end != before.log_end


def _registered(before: _Registration, after: _Registration) -> list[JsonObject]:
    """What the controller may have done: one of these led from one registration to the next.

    Empty, so that a snapshot is judged, where the specification has nothing like it: KIP-966
    changes the eligible leader replicas of a partition without a leader.
    """
    epoch = after.leader_epoch
    gone = sorted(before.isr - after.isr)
    fenced = [_action("FenceBroker", epoch, gone[0], after.leader)] if gone else []
    if epoch == before.leader_epoch:
        asked = [_action("HandleAlterPartition", before.leader)]
        return [*fenced, *(asked if before.leader != "none" else [])]
    if after.leader == "none":
        return [_action("TakeOffline", epoch, before.leader)]
    if after.leader in before.isr:
        return fenced or [_action("ElectLeader", epoch, after.leader)]
    return [_action("ElectUncleanLeader", epoch, after.leader)]


def _action(name: str, *args: object) -> JsonObject:
    return {"name": name, "args": list(args)}


def _steps(line: _AgentLine) -> Iterator[tuple[str, list[object]]]:
    """The steps of a section that is no fetch."""
    broker, before, view = line.broker, line.before, line.view
    if before is None or view.leader_epoch != before.leader_epoch:
        name = "BecomeLeader" if view.leader == broker else "BecomeFollower"
        yield name, [broker, view.leader_epoch]
    elif view.leader != broker:
        return  # what followers process is part of a round trip; their partition epoch is nobody's
    elif _appended(line):
        yield "AppendAsLeader", _append(line)
    elif view.sent_isr and not before.sent_isr:
        yield "SubmitShrinkIsr", [broker, min(view.isr - view.sent_isr)]
    elif line.section.startswith("handleAlterPartition"):
        yield "ProcessAlterPartition", [broker]
    else:
        yield "UpdateIsr", [broker, view.leader_epoch]


_TOLD_BY_METADATA = ("BecomeLeader", "UpdateIsr")
"""What a leader learns from a registration, with its ISR."""


def _is_replaced(line: _AgentLine, registrations: Sequence[_Registration]) -> bool:
    """Whether the controller has gone past the registration that a leader applies.

    A broker replays the metadata log at its own pace (MetadataLoader). Of a newer leader epoch it
    hears later; within one the specification has an action of its own.
    """
    newer = registrations[line.view.partition_epoch + 1 :]
    return any(
        item.leader_epoch == line.view.leader_epoch and item.time < line.time for item in newer
    )


_APPEND = "$anonfun$appendRecordsToLeader$1"


def _appended(line: _AgentLine) -> bool:
    """Whether a leader's log has grown."""
    before, view = line.before, line.view
    return (
        before is not None
        and view.leader == before.leader == line.broker
        and view.leader_epoch == before.leader_epoch
        and view.log_end > before.log_end
    )


def _append(line: _AgentLine) -> list[object]:
    """The arguments of AppendAsLeader. Raises DataError if it was more than a record."""
    assert line.before is not None
    count = line.view.log_end - line.before.log_end
    if count > 1:
        raise DataError(
            f"{line.seen.source}: {count} records came at once; the specification's batches hold "
            "one. Let producers send single records (`batch = 1`), and let the broker take one "
            'request at a time (`num.io.threads = "1"` under [settings]), so that the agent sees '
            "each append alone."
        )
    return [line.broker, line.before.log_end]
