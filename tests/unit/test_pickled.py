"""A syntax tree's read-only mappings travel, at any depth."""

from __future__ import annotations

import pickle
from types import MappingProxyType

from conformance.pickled import dumps


def test_read_only_mappings_come_back_as_they_were() -> None:
    inner = MappingProxyType({"a": (1, 2)})
    back = pickle.loads(dumps({"outer": [MappingProxyType({1: inner}), inner]}))
    assert back == {"outer": [{1: inner}, inner]}
    assert {type(back["outer"][0]), type(back["outer"][1])} == {MappingProxyType}
    assert back["outer"][0][1] is back["outer"][1], "what is shared stays shared"
