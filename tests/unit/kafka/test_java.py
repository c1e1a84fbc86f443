"""Classes in the cache that are damaged are compiled again: they would fail a system under test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.kafka.java import compile_java
from conformance.tla import find_java

SOURCE = "class Kept { static int answer() { return 1; } }\n"
MAIN = "Kept.class"
JAVAC = find_java(os.environ)[0].resolve().with_name("javac")

pytestmark = pytest.mark.skipif(not JAVAC.is_file(), reason="another compiler would be fetched")


def cut_off(folder: Path) -> None:
    (folder / MAIN).write_bytes((folder / MAIN).read_bytes()[:50])


def class_missing(folder: Path) -> None:
    (folder / MAIN).unlink()


def resource_empty(folder: Path) -> None:
    (folder / "words.txt").write_text("")


def sums_cut_off(folder: Path) -> None:
    (sums,) = folder.glob("*.json")
    sums.write_text(sums.read_text()[:-9])


def everything_missing(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize(
    "damage", [cut_off, class_missing, resource_empty, sums_cut_off, everything_missing]
)
def test_damaged_classes_are_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None]
) -> None:
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "Kept.java"
    source.write_text(SOURCE)
    told: list[str] = []
    folder = compile_java([source], [], resources={"words.txt": "a"}, tell=told.append)
    content = (folder / MAIN).read_bytes()
    assert compile_java([source], [], resources={"words.txt": "a"}, tell=told.append) == folder
    assert len(told) == 1, "whole classes are taken from the cache"

    damage(folder)
    again = compile_java([source], [], resources={"words.txt": "a"}, tell=told.append)

    assert len(told) == 2
    assert (again / MAIN).read_bytes() == content
    assert (again / "words.txt").read_text() == "a"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing is left aside"
