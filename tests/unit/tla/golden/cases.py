"""Golden files: a module, then cases of TLA+ text, the Python and the Spark SQL made of it.

    VARIABLES x                      the module's beginning, with an Init that shows the types
    ==== Positive                    a case: the operator that is compiled
    Positive == x > 0                its text, perhaps with operators that it calls
    ---- python
    ---- formula
    ---- sql

Of an action the SQL is left out: it judges a step as a formula judges a state.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from conformance.tla import Spec, UnsupportedError
from conformance.tla.show import STAGES, StageText, show
from tests.unit.tla import small

FOLDER = Path(__file__).parent
FILES = tuple(sorted(FOLDER.glob("*.txt")))


@dataclass(frozen=True, slots=True)
class Case:
    """An operator and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Golden:
    """What a file gives; the rest of it is made."""

    beginning: str
    cases: tuple[Case, ...]

    def spec(self) -> Spec:
        """All cases in one module, parsed once; its text is gone, so no code quotes it."""
        body = "\n".join([self.beginning, *(case.text for case in self.cases)])
        with tempfile.TemporaryDirectory() as folder:
            return small.spec(Path(folder), body)


def read(text: str) -> Golden:
    """What a file gives."""
    beginning, *parts = re.split(r"^==== (\w+)\n", text, flags=re.MULTILINE)
    texts = (part.partition("\n---- ")[0].strip() for part in parts[1::2])
    return Golden(beginning.strip(), tuple(map(Case, parts[::2], texts)))


def compiled(golden: Golden) -> str:
    """The whole file as the compilers make it now."""
    spec = golden.spec()
    return "\n\n".join([golden.beginning, *(_written(spec, case) for case in golden.cases)]) + "\n"


def _written(spec: Spec, case: Case) -> str:
    stages = [_stage(spec, case.name, stage) for stage in ("python", "formula", "sql")]
    return "\n\n".join([f"==== {case.name}\n{case.text}", *(one for one in stages if one)])


def _stage(spec: Spec, name: str, stage: str) -> str:
    assert stage in STAGES
    try:
        found = show(spec, name, [stage])
    except UnsupportedError as error:
        found = [StageText(stage, "", f"unsupported: {error}")]
    return "\n\n".join(f"---- {stage}\n{one.text}" for one in found)
