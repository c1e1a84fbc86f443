"""PartitionStates against a list, and truncation against two logs that share a prefix."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from impl.errors import Errors
from impl.fetcher.partition_states import PartitionStates
from impl.records import RecordBatch
from impl.types import EpochEndOffset, TopicPartition
from tests.unit.impl.fetcher.doubles import FetcherFixture, ReplicaLog, batch

TP = TopicPartition("topic", 0)
partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 2))
values = st.integers(0, 9)


class PartitionStatesMachine(RuleBasedStateMachine):
    """Every operation on PartitionStates has a plain counterpart on a list of pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.states: PartitionStates[int] = PartitionStates()
        self.model: list[tuple[TopicPartition, int]] = []

    @rule(tp=partitions, value=values)
    def update_and_move_to_end(self, tp: TopicPartition, value: int) -> None:
        self.states.update_and_move_to_end(tp, value)
        self.model = [(p, v) for p, v in self.model if p != tp] + [(tp, value)]

    @rule(tp=partitions, value=values)
    def update(self, tp: TopicPartition, value: int) -> None:
        self.states.update(tp, value)
        if tp in dict(self.model):
            self.model = [(p, value if p == tp else v) for p, v in self.model]
        else:
            self.model.append((tp, value))

    @rule(tp=partitions)
    def remove(self, tp: TopicPartition) -> None:
        assert self.states.remove(tp) == dict(self.model).get(tp)
        self.model = [(p, v) for p, v in self.model if p != tp]

    @rule(new=st.dictionaries(partitions, values))
    def set_all(self, new: dict[TopicPartition, int]) -> None:
        self.states.set(new)
        topics = list(dict.fromkeys(tp.topic for tp in new))
        self.model = sorted(new.items(), key=lambda item: topics.index(item[0].topic))

    @rule()
    def clear(self) -> None:
        self.states.clear()
        self.model = []

    @invariant()
    def same_order_and_values(self) -> None:
        assert list(self.states.items()) == self.model
        assert list(self.states.partition_set()) == [tp for tp, _ in self.model]
        assert self.states.size() == len(self.model)

    @invariant()
    def same_lookups(self) -> None:
        for topic in "ab":
            for number in range(3):
                tp = TopicPartition(topic, number)
                assert self.states.contains(tp) == (tp in dict(self.model))
                assert self.states.state_value(tp) == dict(self.model).get(tp)


TestPartitionStates = PartitionStatesMachine.TestCase


@st.composite
def logs(draw: st.DrawFn, max_epoch: int = 6) -> list[RecordBatch]:
    """One-record batches from offset 0 with epochs that never fall."""
    epochs = sorted(draw(st.lists(st.integers(0, max_epoch), max_size=8)))
    return [batch(offset, epoch) for offset, epoch in enumerate(epochs)]


answers = st.builds(EpochEndOffset, st.just(Errors.NONE), st.integers(-1, 7), st.integers(-1, 12))


@given(log=logs(), fetch_offset=st.integers(0, 12), leader=answers)
def test_truncation_offset_is_bounded_by_every_side(
    log: list[RecordBatch], fetch_offset: int, leader: EpochEndOffset
) -> None:
    world = FetcherFixture(truncate_on_fetch=False)
    world.given(TP, ReplicaLog(log), ReplicaLog(), offset=fetch_offset)
    result = world.fetcher.get_offset_truncation_state(TP, leader)
    if leader.end_offset == -1:
        assert (result.offset, result.truncation_completed) == (fetch_offset, True)
        return
    local = world.fetcher.end_offset_for_epoch(TP, leader.leader_epoch)
    known = local is None or leader.leader_epoch in (-1, local.leader_epoch)
    assert result.truncation_completed is known
    assert result.offset <= len(log)
    if known:
        assert result.offset <= leader.end_offset
    if local is not None and leader.leader_epoch != -1:
        assert result.offset <= local.offset


@st.composite
def diverged_logs(draw: st.DrawFn) -> tuple[list[RecordBatch], list[RecordBatch]]:
    """A follower's and a leader's log: a common prefix, then epochs of their own.

    As an epoch has one leader, an epoch that both logs hold after the prefix starts them with the
    same records; here the two sides use odd and even epochs.
    """
    shared = sorted(draw(st.lists(st.integers(0, 3), max_size=4)))
    mine = sorted(draw(st.lists(st.sampled_from([5, 7, 9]), max_size=4)))
    theirs = sorted(draw(st.lists(st.sampled_from([4, 6, 8, 10]), max_size=4)))
    return (
        [batch(offset, epoch) for offset, epoch in enumerate(shared + mine)],
        [batch(offset, epoch) for offset, epoch in enumerate(shared + theirs)],
    )


@given(both=diverged_logs(), truncate_on_fetch=st.booleans())
def test_follower_of_a_leader_with_a_newer_epoch_ends_with_its_log(
    both: tuple[list[RecordBatch], list[RecordBatch]], truncate_on_fetch: bool
) -> None:
    """KIP-279: rounds of truncation converge, whichever epochs either side lacks."""
    mine, theirs = both
    theirs = [*theirs, batch(len(theirs), 11)]
    world = FetcherFixture(truncate_on_fetch)
    leader = ReplicaLog(theirs, leader_epoch=11, high_watermark=len(theirs))
    follower = ReplicaLog(list(mine), leader_epoch=11)
    world.given(TP, follower, leader, offset=len(mine))
    world.work(rounds=len(mine) + len(theirs) + 4)
    assert world.logs_equal(TP)
    assert not world.failed.contains(TP)
