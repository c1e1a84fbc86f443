from __future__ import annotations

from pathlib import Path

import pytest

from conformance.modelcheck.cache import Cache, cache_dir, cache_key, module_files


def test_an_entry_is_kept_by_kind_and_key(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "new" / "folder")
    assert cache.load("graph", "k") is None
    cache.store("graph", "k", b"payload")
    assert cache.load("graph", "k") == b"payload"
    assert cache.load("check", "k") is None
    assert [path.name for path in cache.path("graph", "k").parent.iterdir()] == ["k.bin"]


def test_a_damaged_entry_is_no_entry_and_goes(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for damage in (b"", b"short", None):
        cache.store("graph", "k", b"payload")
        path = cache.path("graph", "k")
        path.write_bytes(path.read_bytes()[:-1] + b"X" if damage is None else damage)
        assert cache.load("graph", "k") is None
        assert not path.exists()


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file")
    cache.store("graph", "k", b"payload")
    assert cache.load("graph", "k") is None
    cache.discard("graph", "k")


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"KCONFORM_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/kconform"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/c"}, "/c/.cache/kconform"),
        ({"HOME": "/c"}, "/c/.cache/kconform"),
    ],
)
def test_where_the_cache_is(environ: dict[str, str], folder: str) -> None:
    assert cache_dir(environ) == Path(folder)


def test_the_key_follows_every_module_that_is_used(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (tmp_path / "Root.tla").write_text("EXTENDS Naturals, Middle")
    (tmp_path / "Middle.tla").write_text("I == INSTANCE Leaf WITH x <- y")
    (library / "Leaf.tla").write_text("the leaf")
    (library / "Unused.tla").write_text("of no concern")
    files = module_files(tmp_path / "Root.tla", [library])
    assert [file.name for file in files] == ["Leaf.tla", "Middle.tla", "Root.tla"]
    before = cache_key(["model"], files)
    assert cache_key(["another"], files) != before
    (library / "Leaf.tla").write_text("another leaf")
    assert cache_key(["model"], files) != before


def test_the_key_tells_where_one_part_ends() -> None:
    assert cache_key(["ab", "c"], []) != cache_key(["a", "bc"], [])
