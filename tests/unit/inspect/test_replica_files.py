"""The files of one replica held against each other, with and without a clean stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from conformance.inspect import damage
from conformance.inspect.abstraction import CacheEntry
from conformance.inspect.copies import Copies, Copy
from conformance.inspect.history import Elections, Registration
from conformance.inspect.partitions import EpochRun, ReplicaLog
from conformance.inspect.replica_files import misfits
from conformance.inspect.subjects import InspectedPartition, ReplicaCopy
from conformance.verdict import Verdict

SOUND = ReplicaCopy(
    "b1", "", ReplicaLog("b1", "", 0, 10, (EpochRun(0, 10, 0),), (), {}), 0, 0, "t-0", 10, 0,
    None, None, (CacheEntry(0, 0),), recovery_point=10, snapshots=(10,), topic_id="id",
)  # fmt: skip
REGISTERED = Registration(7, 1, 1, 0, (1,), 0, (1,))


def subject(held: ReplicaCopy, elections: Elections | None, **options: bool) -> InspectedPartition:
    compacted = options.get("compacted", False)
    return InspectedPartition(("t", 0), {held.broker: held}, (), elections, (), (), compacted)


def copies(node: int, *, clean: bool) -> Copies:
    shut = frozenset({""}) if clean else frozenset[str]()
    return Copies({"b1": Copy("b1", node, "c", shut, 100, 5, 9)})


def told(held: ReplicaCopy, *, clean: bool, **options: bool) -> dict[str, Verdict]:
    known = Elections("id", (REGISTERED,), True)
    found = misfits(subject(held, known, **options), copies(1, clean=clean))
    return {one.kind: one.verdict for one in found}


@pytest.mark.parametrize("clean", [True, False])
def test_files_that_fit_are_not_accused(clean: bool) -> None:
    assert told(SOUND, clean=clean) == {}


FAIL, OPEN = Verdict.FAIL, Verdict.INCONCLUSIVE
CASES: Mapping[str, tuple[ReplicaCopy, dict[str, Verdict], dict[str, Verdict]]] = {
    "log start beyond every end": (
        replace(SOUND, log_start=11), {"log-start-beyond-end": FAIL}, {"log-start-beyond-end": FAIL}
    ),
    "log start within the log": (replace(SOUND, log_start=9), {}, {}),
    "recovery point beyond the end": (
        replace(SOUND, recovery_point=11),
        {"recovery-point-beyond-end": FAIL},
        {"recovery-point-beyond-end": OPEN},
    ),
    "recovery point below the end": (
        replace(SOUND, recovery_point=4), {"recovery-point-behind": FAIL}, {}
    ),
    "no recovery point: a broker may stop while it loads its logs": (
        replace(SOUND, recovery_point=None), {"recovery-point-behind": OPEN}, {}
    ),
    "no snapshot": (replace(SOUND, snapshots=()), {"snapshot-behind": FAIL}, {}),
    "a snapshot of a longer log": (
        replace(SOUND, snapshots=(4, 12)),
        {"snapshot-beyond-end": FAIL},
        {"snapshot-beyond-end": OPEN},
    ),
    "no high watermark": (replace(SOUND, high_watermark=None), {"no-high-watermark": FAIL}, {}),
    "high watermark below the start": (
        replace(SOUND, high_watermark=2, log_start=5), {"high-watermark-below-start": FAIL}, {}
    ),
    "first segments gone": (
        replace(SOUND, first=6, log_start=2,
                log=ReplicaLog("b1", "", 6, 10, (EpochRun(6, 10, 0),), (), {})),
        {"head-gone": FAIL}, {},
    ),
    "first batches gone": (
        replace(SOUND, log=ReplicaLog("b1", "", 0, 10, (EpochRun(3, 10, 0),), (), {})),
        {"head-gone": FAIL}, {"head-gone": FAIL},
    ),
    "first batches gone that a cleaner may have removed": (
        replace(SOUND, cleaned=5, log=ReplicaLog("b1", "", 0, 10, (EpochRun(3, 10, 0),), (), {})),
        {},
        {},
    ),
    "no epochs written down": (
        replace(SOUND, epoch_cache=None),
        {"no-epoch-checkpoint": FAIL}, {"no-epoch-checkpoint": FAIL},
    ),
    "no topic id": (
        replace(SOUND, topic_id=""), {"no-topic-id": FAIL}, {"no-topic-id": FAIL}
    ),
    "an index alone": (
        replace(SOUND, orphans=("t-0/9.index",)), {"orphan-index": FAIL}, {"orphan-index": OPEN}
    ),
    "cleaned beyond the end": (
        replace(SOUND, cleaned=12), {"cleaned-beyond-end": FAIL}, {"cleaned-beyond-end": OPEN}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_file_that_does_not_fit_is_told(name: str) -> None:
    held, after_a_clean_stop, else_ = CASES[name]
    assert told(held, clean=True) == after_a_clean_stop
    assert told(held, clean=False) == else_


def test_a_compacted_topic_has_holes_at_its_beginning() -> None:
    held = replace(SOUND, log=ReplicaLog("b1", "", 0, 10, (EpochRun(3, 10, 0),), (), {}))
    assert told(held, clean=True, compacted=True) == {}


def test_a_checkpoint_beyond_the_end_does_not_hide_the_log() -> None:
    """Else everything below it would count as deleted by retention, and nothing be missed."""
    held = replace(SOUND, log_start=500)
    assert (held.start, held.end) == (0, 10)


# --- against the controller --------------------------------------------------------------------

MOVED = replace(REGISTERED, offset=9, replicas=(2,), partition_epoch=1)
STRANGER = replace(REGISTERED, replicas=(2, 3))
PLACES: Mapping[str, tuple[Callable[[], Elections], dict[str, Verdict]]] = {
    "a replica": (lambda: Elections("id", (REGISTERED,), True), {}),
    "one that was moved away while its broker was down": (
        lambda: Elections("id", (REGISTERED, MOVED), True),
        {},
    ),
    "never a replica": (
        lambda: Elections("id", (STRANGER,), True),
        {"not-a-replica": FAIL},
    ),
    "none since a snapshot": (
        lambda: Elections("id", (STRANGER,), False),
        {"not-a-replica": OPEN},
    ),
    "never a replica, of another topic": (
        lambda: Elections("id2", (STRANGER,), True),
        {"not-a-replica": FAIL, "other-topic": FAIL},
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_log_is_where_the_controller_has_a_replica(name: str) -> None:
    elections, expected = PLACES[name]
    one = subject(SOUND, elections())
    found = damage.misplaced({one.key: one}, copies(1, clean=True))
    kinds = {each.kind: each.verdict for each in found if isinstance(each, damage.Discovery)}
    assert kinds == expected


@pytest.mark.parametrize("where", ["", "d2"])
def test_a_log_lies_in_the_directory_that_is_assigned(where: str) -> None:
    assigned = replace(REGISTERED, directories=("id-1",))
    one = subject(replace(SOUND, directory=where), Elections("id", (assigned,), True))
    known = {"b1": replace(copies(1, clean=True)["b1"], directory_ids={"": "id-1", "d2": "id-2"})}
    found = [each.kind for each in damage.misplaced({one.key: one}, Copies(known))
             if isinstance(each, damage.Discovery)]  # fmt: skip
    assert found == (["other-directory"] if where else [])
