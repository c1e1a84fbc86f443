"""A member as a group record has it, whatever its client wrote into it."""

from __future__ import annotations

import json

import pytest

from conformance.inspect.classic_groups import ClassicMember, _member
from conformance.inspect.reading.topics import as_json


@pytest.mark.parametrize(
    ("written", "supports"),
    [
        pytest.param(None, False, id="nothing"),
        pytest.param({}, False, id="no bytes"),
        pytest.param(json.loads(as_json(b"no subscription")), True, id="bytes of another kind"),
    ],
)
def test_a_member_whose_bytes_say_nothing_of_topics_has_none(
    written: object, *, supports: bool
) -> None:
    value = {"memberId": "m", "subscription": written, "assignment": written}
    assert _member(value) == ClassicMember("m", "none", supports, frozenset(), frozenset())
