"""Shards of coordinators that hold nothing, as specifications of the runtime have them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from conformance.tla import Fn, Value, make_function

_NO_KEYS = make_function({})
EMPTY_LOAD: Final[Mapping[str, Value]] = MappingProxyType(
    {
        "kind": "None",
        "metadata": 0,
        "members": _NO_KEYS,
        "targets": 0,
        "target": _NO_KEYS,
        "statics": _NO_KEYS,
        "owners": _NO_KEYS,
        "helpers": frozenset(),
        "attributes": _NO_KEYS,
        "sharing": 0,
        "offsets": _NO_KEYS,
        "pending": _NO_KEYS,
        "failed": "",
    }
)
"""A group that nobody has heard of (EmptyLoad of spec/GroupLoad.tla)."""


STEPS_WITH_TIMERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Operate": "Write",
        "Flush": "FlushBatch",
        "OperationTimeOut": "TimeOut",
        "RaiseWatermark": "AdvanceWatermark",
        "Fetch": "Replicate",
        "TakeWatermark": "ApplyWatermark",
        "BecomeLeader": "Elect",
        "HandleRole": "RunRole",
        "EndLoad": "CompleteLoad",
    }
)
"""By action of a specification with timers, the action of CoordinatorRuntime.tla that it takes."""


def fresh_shard(empty: Value) -> Value:
    """A shard that has loaded nothing; `empty` is its memory."""
    return Fn(
        {
            "memory": empty,
            "snapshots": make_function({0: empty}),
            "written": 0,
            "committed": 0,
            "batch": (),
            "joined": frozenset(),
            "deferred": frozenset(),
        }
    )
