"""Every public function and class of the Spark compiler is used by the product."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import conformance
from conformance.tla import spark

ROOT = Path(conformance.__file__).parent
COMPILER = ROOT / "tla" / "spark"


def words(paths: Iterable[Path]) -> Counter[str]:
    """How often each word stands in these files."""
    return Counter(word for path in paths for word in re.findall(r"\w+", path.read_text()))


def test_every_public_name_of_the_compiler_is_used_in_the_product() -> None:
    names = [
        node.name
        for path in sorted(COMPILER.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(names) > 100
    uses = words(path for path in ROOT.rglob("*.py") if path != COMPILER / "__init__.py")
    assert [name for name in names if uses[name] < 2] == []


def test_the_door_s_names_are_called_by_other_packages() -> None:
    assert len(spark.__all__) > 3
    uses = words(path for path in ROOT.rglob("*.py") if COMPILER not in path.parents)
    assert [name for name in spark.__all__ if not uses[name]] == []
