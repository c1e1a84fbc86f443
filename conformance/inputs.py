"""Reads the files that users give, and says what is wrong with one that cannot be read.

A text is UTF-8, UTF-16 or UTF-32, with or without a byte order mark, plain or compressed by gzip:
UTF-16 and UTF-32 need the mark. Only regular files are read: a pipe that nobody writes to would
never end, and a device such as /dev/zero neither.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from conformance import toml
from conformance.errors import DataError, UserError

_T = TypeVar("_T")

_GZIP = b"\x1f\x8b"
_MARKS = (  # that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_bytes(path: Path) -> bytes:
    """The bytes of a regular file, without gzip. DataError if it cannot be read."""
    with _readable(path), _opened(path) as file:
        data = file.read()
        return gzip.decompress(data) if data.startswith(_GZIP) else data


def read_text(path: Path) -> str:
    """The text of a file. DataError if it cannot be read, or if it is no text."""
    data = read_bytes(path)
    with _readable(path):
        return data.decode(_encoding(data))


def read_toml(path: Path, form: type[_T], what: str, page: str) -> _T:
    """The content of a TOML file. DataError says why it is not `what`; `page` describes its keys.

    `what` is a noun with its article: `a mapping`.
    """
    text = read_text(path)
    try:
        raw = msgspec.toml.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not {what}: {error}. {page} describes its keys.") from error
    return fitted(raw, form, str(path), what, page)


def fitted(raw: object, form: type[_T], where: str, what: str, page: str) -> _T:
    """A decoded part of a TOML file as a typed value. DataError as `read_toml`."""
    try:
        return toml.convert(raw, form)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DataError(f"{where} is not {what}: {error}. {page} describes its keys.") from error


def open_plain(path: Path) -> BinaryIO:
    """The file as lines of UTF-8 without a mark, to be read at any place. DataError as above.

    A file that is compressed or in another encoding is copied to a temporary one.
    """
    with _readable(path):
        file = _opened(path)
        try:
            head = file.read(4)
            file.seek(0)
            if not head.startswith((_GZIP, *(mark for mark, _ in _MARKS))):
                return file
            with file:
                return _copied(gzip.GzipFile(fileobj=file) if head.startswith(_GZIP) else file)
        except BaseException:
            file.close()
            raise


def _copied(plain: BinaryIO | gzip.GzipFile) -> BinaryIO:
    encoding = _encoding(plain.read(4))
    plain.seek(0)
    copy = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    try:
        if encoding == "utf-8":
            shutil.copyfileobj(plain, copy)
        else:
            text = io.TextIOWrapper(plain, encoding, newline="")  # codecs.getreader drops a half
            shutil.copyfileobj(text, codecs.getwriter("utf-8")(copy))
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy


def _encoding(data: bytes) -> str:
    return next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")


def _opened(path: Path) -> BinaryIO:
    """The file, opened without waiting for whoever writes to a pipe."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
        raise DataError(f"{path} cannot be read: it is {what}. Name a file.")
    return os.fdopen(number, "rb")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """DataError that names the file for whatever keeps it from being read."""
    try:
        yield
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        shown = error.object[error.start : error.start + 1].hex()
        raise DataError(
            f"{path} cannot be read: line {line} is not {error.encoding.upper()} (byte 0x{shown}). "
            "Save the file as UTF-8."
        ) from error
    except UnicodeError as error:
        raise DataError(f"{path} cannot be read: {error}. Save the file as UTF-8.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: it begins as gzip, and is damaged ({error}). Compress it "
            "again, or give the plain file."
        ) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(/[^/]*(?=/))?(.*)", re.DOTALL)


def local_path(text: str) -> Path:
    """The path of a file on this machine: as it is given, or of a `file:` URI.

    UserError for the URI of another machine or of another kind of storage.
    """
    uri = _URI.fullmatch(text)
    if uri and uri[1].lower() == "file" and uri[2] in (None, "/", "//", "/localhost"):
        return Path(os.fsdecode(unquote_to_bytes("/" + uri[3].lstrip("/"))))
    path = Path(text)
    check_local(path)
    return path


def check_local(path: Path) -> None:
    """UserError for a URI that was taken for a path, and has lost one of its two slashes."""
    uri = _URI.fullmatch(str(path))
    if uri and not os.path.lexists(path):
        raise UserError(
            f"{uri[1]}://{str(path).partition(':')[2].lstrip('/')} is not on this machine, and "
            "this command reads and writes files of this machine. Copy it here, or mount its "
            "storage and name the path."
        )
