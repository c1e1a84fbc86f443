"""What is shown of foreign text steers no terminal and fills no screen."""

from __future__ import annotations

import os

from conformance.printable import bounded, path_text, printable


def test_control_characters_are_shown() -> None:
    assert printable("a\x1b[2J\u202eb\tc\n") == "a\\x1b[2J\\u202eb\tc\n"


def test_a_long_word_keeps_its_ends_and_tells_its_length() -> None:
    text = bounded(f"the action {'x' * 50_000_000}y is none. Name another.")
    assert text.startswith("the action xxx")
    assert "(50,000,001 characters)" in text
    assert text.endswith("xy is none. Name another.")
    assert len(text) < 2_000


def test_a_text_of_many_words_is_bounded_too() -> None:
    text = printable("many words " * 1_000_000)
    assert len(text) < 100_000
    assert "(11,000,000 characters)" in text


def test_what_is_short_stays_as_it_is() -> None:
    story = "\n".join(f"{number}. Put({number})" for number in range(3_000))
    assert printable(story) == story


def test_a_path_that_is_no_utf_8_can_be_written_anywhere() -> None:
    path_text(os.fsdecode(b"a\xff\xc3\xa9")).encode()
    assert path_text(os.fsdecode(b"a\xff\xc3\xa9")) == "a\\xff\u00e9"
