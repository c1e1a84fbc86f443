"""What an operator does about a load that fails, or that loads another state."""

from __future__ import annotations

from conformance.load.judgement import LoadAnswer, LoadFault
from conformance.load.specification import rules_of
from conformance.load.topics import OFFSETS, StateTopic

_OWNERS = (
    "load with a release that has KAFKA-19862 (4.0.2, 4.1.2, 4.2.0 and later); or stop the group's "
    "members, wait until the group is empty, and delete it before the upgrade."
)
_EMPTIED = "stop the group's members, and delete the group once it is empty."
_TOMBSTONES = (
    "delete the group with the release that runs now; or write its tombstones to the partition in "
    "the order current assignment, target assignment, member, target assignment metadata, group."
)
_BY_RULE = {
    "Unreadable": "keep the release that wrote the record, or delete the group with that release.",
    "GroupHasOtherType": (
        "delete the group's offsets before the upgrade, or choose a release that lets a streams "
        "group follow its own offsets (KAFKA-20254: 4.2.1, 4.3.0 and later)."
    ),
    "PartitionHasOwner": _OWNERS,
    "PartitionHasOtherOwner": _OWNERS,
    "TaskHasProcess": _OWNERS,
    "TaskHasOtherProcess": _OWNERS,
    "ShareGroupIsAbsent": "load with 4.1.0 or later (KAFKA-19453).",
    "SharingIsUnknown": "load with 4.1.0 or later: share groups of 4.0 were early access.",
}
_BESIDE = (
    "it happens to a load that runs while the cleaner rewrites the log. Elect another leader of "
    "the partition: the log is then loaded anew. To keep it from happening, "
)


_OTHER_STATE = {
    "group": "compare the group with `kafka-consumer-groups.sh --describe` after the load.",
    "transactional id": (
        "compare it with `kafka-transactions.sh describe` after the load; "
        "an open transaction ends by its time-out, or by `kafka-transactions.sh abort`."
    ),
    "share partition": (
        "compare the start offset with `kafka-share-groups.sh --describe --state` after the load."
    ),
}
_UNREADABLE = {
    "transactional id": (
        "load with the release that wrote the record; let its producers close, and wait until the "
        "id expires (transactional.id.expiration.ms) before the upgrade."
    ),
    "share partition": (
        "delete the share group with the release that wrote the record. Share groups of 4.0 were "
        "early access: no later release reads their state."
    ),
}


def advice(fault: LoadFault, release: str, topic: StateTopic = OFFSETS) -> str:
    """One sentence or two, in the imperative."""
    if fault.answer is LoadAnswer.FORGOTTEN:
        return f"do not go back to this release, or delete the {topic.unit} before."
    if fault.answer is LoadAnswer.OTHER_STATE:
        return _OTHER_STATE[topic.unit]
    if topic is not OFFSETS:
        return _UNREADABLE[topic.unit]
    words = _BY_RULE.get(fault.rule, _TOMBSTONES)
    if words is _OWNERS and rules_of(OFFSETS, release)["OwnersAreReplaced"]:
        words = _EMPTIED
    return f"{_BESIDE}{words}" if fault.is_beside_the_cleaner else words
