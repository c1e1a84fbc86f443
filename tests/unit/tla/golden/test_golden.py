"""What the compilers make of the golden cases is what the files say."""

from __future__ import annotations

import pytest

from tests.unit.tla.golden.cases import FILES, compiled, read

pytestmark = pytest.mark.tlc


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_what_the_compilers_make(path):
    text = path.read_text(encoding="utf-8")
    assert compiled(read(text)) == text, "look at the change; then run golden with --rewrite"


def test_no_file_is_empty():
    assert sum(len(read(path.read_text()).cases) for path in FILES) >= 20
