"""The operator table of docs/tla-support.md, made from the code's own tables.

`python -m tests.unit.tla.support_page` writes it into the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path

from conformance.tla.python.builtins import SUPPORTED as PYTHON
from conformance.tla.spark.builtins import OPERATORS
from conformance.tla.spark.compiler import _SPECIAL
from tests.unit.marked_table import MarkedTable

TABLE = MarkedTable(Path(__file__).parents[3] / "docs" / "tla-support.md", "operators")

SPARK = frozenset(OPERATORS) | frozenset(_SPECIAL)

GROUPS = {
    "Logic": r"TRUE FALSE BOOLEAN STRING \land \lor \lnot => \equiv = /=",
    "Sets": r"\in \notin \subseteq \union \intersect \ SUBSET UNION \X {}",
    "Functions, tuples": "DOMAIN <<>> [->]",
    "Actions": r"' UNCHANGED ENABLED [A]_v <<A>>_v \cdot",
    "Temporal": "[] <> ~> -+-> WF SF",
    "Naturals, Integers": r"Nat Int + - * ^ % \div .. < > \leq \geq -.",
    "Reals": "Real /",
    "Sequences": r"Seq Len \o Append Head Tail SubSeq SelectSeq",
    "FiniteSets": "IsFiniteSet Cardinality",
    "Bags": r"IsABag BagToSet SetToBag BagIn EmptyBag \oplus \ominus BagUnion \sqsubseteq SubBag "
    "BagOfAll BagCardinality CopiesIn",
    "TLC": "Print PrintT Assert JavaTime TLCGet TLCSet :> @@ Permutations SortSeq RandomElement "
    "Any ToString TLCEval",
    "Randomization": "RandomSubset RandomSetOfSubsets TestRandomSetOfSubsets",
    "TLCExt": "TLCGetOrDefault TLCGetAndSet TLCModelValue TLCCache AssertError Trace "
    "CounterExample ToTrace TLCFP TLCEvalDefinition",
    "Json": "ToJson ToJsonArray ToJsonObject JsonSerialize JsonDeserialize ndJsonSerialize "
    "ndJsonDeserialize",
    "IOUtils": "IOEnv atoi zeroPadN IOSerialize IODeserialize Serialize Deserialize IOExec "
    "IOEnvExec IOExecTemplate IOEnvExecTemplate",
}


def grouped() -> list[str]:
    """All operators that the table shows."""
    return [name for names in GROUPS.values() for name in names.split()]


def table() -> str:
    """The table in Markdown."""
    rows = ["| | operators | Python | Spark |", "|---|---|---|---|"]
    for group, names in GROUPS.items():
        operators = names.split()
        cells = (_code(operators), _support(operators, PYTHON), _support(operators, SPARK))
        rows.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _support(operators: Iterable[str], supported: Set[str]) -> str:
    missing = [name for name in operators if name not in supported]
    if not missing:
        return "all"
    present = [name for name in operators if name in supported]
    if not present:
        return "none"
    return f"all but {_code(missing)}" if len(missing) <= len(present) else f"only {_code(present)}"


def _code(operators: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in operators)


if __name__ == "__main__":
    TABLE.write(table())
