"""Real files and their double in memory: the same operations, the same contents, the same crash."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from impl.disk import Disk, MemoryDisk, Unflushed
from impl.errors import KafkaStorageException
from impl.real_disk import ShadowedDisk

PATHS = st.sampled_from(["a", "b", "d/a", "d/b"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PATHS, st.binary(min_size=1, max_size=4)),
        st.tuples(st.just("truncate"), PATHS, st.binary(max_size=3)),
        st.tuples(st.just("flush"), PATHS, st.just(b"")),
        st.tuples(st.just("remove"), PATHS, st.just(b"")),
        st.tuples(st.just("rename"), PATHS, st.sampled_from([b"a", b"b", b"d/a", b"d/b"])),
        st.tuples(st.just("sync"), st.sampled_from(["", "d"]), st.just(b"")),
    ),
    max_size=15,
)


def apply(disk: Disk, name: str, path: str, data: bytes) -> str:
    """Do one step; what went wrong, if something did."""
    try:
        if name == "append":
            disk.open(path).append(data)
        elif name == "truncate":
            disk.open(path).truncate(len(data))
        elif name == "flush":
            disk.open(path).flush()
        elif name == "remove":
            disk.remove(path)
        elif name == "rename":
            disk.rename(path, data.decode())
        else:
            disk.sync_directory(path)
    except KafkaStorageException:
        return "KafkaStorageException"
    return ""


@settings(derandomize=True, max_examples=100)
@given(STEPS, STEPS, st.lists(st.integers(0, 4), min_size=40, max_size=40))
def test_both_makes_agree_before_and_after_a_crash(
    before: list[tuple[str, str, bytes]],
    after: list[tuple[str, str, bytes]],
    kept: list[int],
) -> None:
    def surviving(operations: tuple[Unflushed, ...]) -> list[int]:
        whole = (op.size if op.kind == "append" else 1 for op in operations)
        return [min(*pair) for pair in zip(whole, kept, strict=False)]

    with tempfile.TemporaryDirectory() as root:
        memory, real = MemoryDisk(), ShadowedDisk(Path(root))
        for steps in (before, after):
            for step in steps:
                assert apply(memory, *step) == apply(real, *step)
                assert memory.contents() == real.contents()
            assert memory.unflushed() == real.unflushed()
            memory.crash(surviving)
            real.crash(surviving)
            assert memory.contents() == real.contents()
