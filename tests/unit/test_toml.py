"""What does not fit is named by its whole key, however many tables of the user's own it is in."""

from __future__ import annotations

import msgspec
import pytest

from conformance import toml


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int = 0
    names: dict[str, str] = {}


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    texts: dict[str, str] = {}
    tables: dict[str, Inner] = {}
    rows: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[texts]\na = "x"\nb = 3', "`texts.b`"),
        ('[tables.one]\nnumber = 1\n[tables.two]\nnumber = "x"', "`tables.two.number`"),
        ("[tables.one]\nnames = {a = 1}", "`tables.one.names.a`"),
        ('[[rows]]\n[[rows]]\nnames = {a = "x", "b c" = false}', "`rows[1].names.b c`"),
        ("[tables.one]\nnummer = 1", "`nummer` - at `tables.one`"),
        ("text = 1", "unknown field `text`"),
        ("[texts", "Invalid"),
    ],
)
def test_a_mistake_is_named_by_its_key(text: str, key: str) -> None:
    with pytest.raises(msgspec.DecodeError) as told:
        toml.decode(text, Outer)
    assert key in str(told.value) or key == "Invalid"
    assert "[...]" not in str(told.value)


def test_what_fits_is_read() -> None:
    assert toml.decode("[tables.one]\nnumber = 3", Outer).tables["one"].number == 3
