"""Users' files are read in any encoding that says what it is, and nothing else is waited for."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from conformance.errors import DataError, UserError
from conformance.inputs import check_local, local_path, open_plain, read_bytes, read_text, read_toml

TEXT = 'name = "größe"\n'


class Named(msgspec.Struct, forbid_unknown_fields=True):
    name: str


ENCODED = {
    "utf-8": TEXT.encode(),
    "with a mark": TEXT.encode("utf-8-sig"),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16, big end first": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "utf-32": TEXT.encode("utf-32"),
    "gzip": gzip.compress(TEXT.encode()),
    "gzip of utf-16": gzip.compress(TEXT.encode("utf-16")),
}


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED.keys())
def test_a_text_is_read_in_every_encoding_that_says_what_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(data)
    assert read_text(path) == TEXT
    assert read_toml(path, Named, "a name", "docs") == Named("größe")
    with open_plain(path) as file:
        assert file.read() == TEXT.encode()
        file.seek(8)
        assert file.read(5) == "größ".encode()[:5]


DAMAGED = {
    "half a character of UTF-16": (TEXT.encode("utf-16")[:-1], "Save the file as UTF-8"),
    "half of gzip": (gzip.compress(TEXT.encode())[:-9], "begins as gzip"),
    "a wrong sum of gzip": (gzip.compress(TEXT.encode())[:-8] + bytes(8), "begins as gzip"),
}


@pytest.mark.parametrize(("data", "told"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(data)
    for read in (read_text, open_plain):
        with pytest.raises(DataError, match=r"a\.toml cannot be read") as caught:
            read(path)
        assert told in str(caught.value)


def test_a_byte_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntw\xe9\n")
    with pytest.raises(DataError, match=r"line 2 is not UTF-8 \(byte 0xe9\)"):
        read_text(tmp_path / "a")


@pytest.mark.parametrize("read", [read_bytes, read_text, open_plain])
@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.name),
        lambda path: None,
    ],
    ids=["folder", "pipe", "device", "link to itself", "nothing"],
)
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, read: Callable[[Path], object], make: Callable[[Path], object]
) -> None:
    make(tmp_path / "a")
    with pytest.raises(DataError, match="a cannot be read"):
        read(tmp_path / "a")


def test_toml_of_another_form_is_told_with_the_page(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("name = 1")
    with pytest.raises(DataError, match=r"a is not a name: Expected `str`.* docs describes"):
        read_toml(tmp_path / "a", Named, "a name", "docs")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a/b", "a/b"),
        ("C:x", "C:x"),
        ("file:///a%20b/c", "/a b/c"),
        ("file:/a/b", "/a/b"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("file:///%FF", os.fsdecode(b"/\xff")),
    ],
)
def test_a_file_uri_is_a_path(text: str, path: str) -> None:
    assert str(local_path(text)) == path


@pytest.mark.parametrize("text", ["s3://b/k", "hdfs://n:9000/x", "file://host/x", "https://h/x"])
def test_another_machines_uri_is_refused_also_when_it_was_taken_for_a_path(text: str) -> None:
    with pytest.raises(UserError, match=f"{text} is not on this machine"):
        local_path(text)
    with pytest.raises(UserError, match=f"{text} is not on this machine"):
        check_local(Path(text))
