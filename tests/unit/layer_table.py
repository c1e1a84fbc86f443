"""The table of layers in ARCHITECTURE.md, from the test's own table and the packages' docstrings.

`python -m tests.unit.layer_table` writes it into the page.
"""

from __future__ import annotations

import ast
import re

from tests.unit.marked_table import MarkedTable
from tests.unit.test_layers import LAYERS, ROOT

TABLE = MarkedTable(ROOT / "ARCHITECTURE.md", "layers")
_HEAD = "| layer | packages of `conformance` |\n|---|---|"
_BESIDE = "| beside | `impl`: imports itself only |"


def table() -> str:
    """A row for each layer, the highest first."""
    numbers = sorted(set(LAYERS.values()), reverse=True)
    return "\n".join((_HEAD, *(_row(number) for number in numbers), _BESIDE))


def _row(number: int) -> str:
    """The packages of a layer, each with its summary; its modules after them, by name."""
    names = sorted(name for name, own in LAYERS.items() if own == number and "." in name)
    packages = [f"`{_short(n)}`: {summary(n)}" for n in names if (ROOT / _path(n)).is_dir()]
    modules = [f"`{_short(n)}`" for n in names if (ROOT / f"{_path(n)}.py").is_file()]
    cells = packages + ["modules " + ", ".join(modules)] * bool(modules)
    return f"| {number} | {'<br>'.join(cells)} |"


def _short(name: str) -> str:
    return name.removeprefix("conformance.")


def summary(package: str) -> str:
    """The first sentence of a package's docstring."""
    source = (ROOT / _path(package) / "__init__.py").read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source))
    assert docstring, f"{package} has no docstring"
    return re.split(r"\.(?:\s|$)", docstring)[0].replace("\n", " ")


def _path(name: str) -> str:
    return name.replace(".", "/")


if __name__ == "__main__":
    TABLE.write(table())
