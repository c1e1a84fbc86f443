"""Rewrites the golden files: `python -m tests.unit.tla.golden --rewrite`; without it, compares."""

from __future__ import annotations

import sys

from tests.unit.tla.golden.cases import FILES, compiled, read


def main(arguments: list[str]) -> int:
    """Write what the compilers make of each case now; 1 if a file differs and is left alone."""
    rewrite, differing = arguments == ["--rewrite"], 0
    for path in FILES:
        before = path.read_text(encoding="utf-8")
        after = compiled(read(before))
        differing += before != after
        changed = "rewritten" if rewrite else "differs"
        print(f"{path.name}: {'the same' if before == after else changed}")
        if rewrite:
            path.write_text(after, encoding="utf-8")
    return 1 if differing and not rewrite else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
