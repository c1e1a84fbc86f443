"""Whatever value goes to an adapter and comes back is the same value."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from conformance.systems.external.wire import Form, from_json, to_json
from conformance.tla import Value, equal
from tests.property.tla.strategies import values


@pytest.mark.parametrize("form", list(Form))
@given(value=values)
def test_what_is_written_is_read_again(form: Form, value: Value) -> None:
    text = msgspec.json.encode(to_json(value, form))
    assert equal(from_json(msgspec.json.decode(text)), value)
