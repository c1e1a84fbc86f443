"""Whether a place can be written to, asked without leaving anything there; and what is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conformance.errors import DataError, UserError
from conformance.files import check_file, check_folder, written_aside


@pytest.fixture
def taken(tmp_path: Path) -> Path:
    """A file where a folder might be wanted."""
    path = tmp_path / "taken"
    path.write_text("")
    return path


def test_a_place_that_is_still_to_be_made_is_fine_and_stays_unmade(tmp_path: Path) -> None:
    check_folder(tmp_path)
    check_folder(tmp_path / "a" / "b")
    check_file(tmp_path / "a" / "file")

    assert list(tmp_path.iterdir()) == []


def test_a_relative_path_is_looked_for_from_here(
    tmp_path: Path, taken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_folder(Path("out"))
    with pytest.raises(UserError, match=r"written to taken \(it is a file\)"):
        check_folder(Path("taken"))


def test_a_file_is_no_folder(taken: Path) -> None:
    with pytest.raises(UserError, match=rf"written to {taken} \(it is a file\), so nothing was"):
        check_folder(taken)
    with pytest.raises(UserError, match=rf"written to {taken}/a/b \({taken} is a file\)"):
        check_folder(taken / "a" / "b")
    with pytest.raises(UserError, match=rf"{taken}/file cannot be written \(it is a file\)"):
        check_file(taken / "file")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{tmp_path} cannot be written \(it is a folder\)"):
        check_file(tmp_path)


def test_a_link_to_nowhere_is_no_folder(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match=f"Nothing can be written to {link}"):
        check_folder(link)


@pytest.mark.parametrize("where", ["/proc", "/proc/kconform"])
def test_where_not_even_root_may_write(where: str) -> None:
    if not Path("/proc").is_dir():
        pytest.skip("there is no /proc on this system")
    with pytest.raises(UserError, match=f"Nothing can be written to {where} "):
        check_folder(Path(where))


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to("folder/target")
    for text in ("first", "second"):
        with written_aside(link) as aside:
            aside.write_text(text)
        assert (link.is_symlink(), target.read_text()) == (True, text)
    assert [path.name for path in target.parent.iterdir()] == ["target"]


def test_a_pipe_stays_and_gets_what_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with written_aside(pipe) as aside:
        aside.write_text("whole")
    assert (os.read(reader, 100), pipe.is_fifo()) == (b"whole", True)
    os.close(reader)


def test_a_device_that_is_full_is_said(tmp_path: Path) -> None:
    """A link to it stands for it: were it replaced, this machine would lose it."""
    link = tmp_path / "link"
    link.symlink_to("/dev/full")
    with pytest.raises(DataError, match="is full"), written_aside(link) as aside:
        aside.write_text("lost")
    assert link.is_char_device()
