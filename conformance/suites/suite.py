"""A suite of tests over a state graph, and the file that keeps it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from conformance.errors import DataError
from conformance.files import written_aside
from conformance.inputs import read_bytes

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph

_FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """One test: start in state `initial`, then follow `edges` (ids into the graph), in order."""

    __test__ = False  # pytest: this is not a class of test functions

    initial: int
    edges: npt.NDArray[np.int32]
    name: str = ""

    def __len__(self) -> int:
        """The number of steps."""
        return len(self.edges)


@dataclass(frozen=True, slots=True, eq=False)
class Suite:
    """Tests of one kind over the graph whose digest is `graph_digest`."""

    kind: str
    tests: tuple[Test, ...]
    graph_digest: str
    seed: int | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """As a few arrays: a suite goes to another process, and has tests by the ten thousand."""
        tests = self.tests
        steps = np.concatenate([np.zeros(0, np.int32), *(test.edges for test in tests)])
        ends = np.cumsum([len(test) for test in tests])
        names = [test.name for test in tests] if any(test.name for test in tests) else None
        initial = [test.initial for test in tests]
        return _suite, (self.kind, initial, ends, steps, names, self.graph_digest, self.seed)

    def __len__(self) -> int:
        """The number of tests."""
        return len(self.tests)

    def __iter__(self) -> Iterator[Test]:
        """The tests in order."""
        return iter(self.tests)

    @property
    def steps(self) -> int:
        """Steps of all tests together; `steps + len(suite)` counts the resets too."""
        return sum(len(test) for test in self.tests)

    def require(self, graph: StateGraph) -> None:
        """Raise DataError unless every test is a path of `graph` from an initial state."""
        if self.graph_digest != graph.digest:
            raise DataError(
                f"The {self.kind} suite was made for another state graph (digest "
                f"{self.graph_digest[:12]}, this one is {graph.digest[:12]}): the spec, the model "
                "or the TLA+ tools changed since. Generate the suite again with `kconform suite`."
            )
        initial = frozenset(graph.initial.tolist())
        for number, test in enumerate(self.tests):
            if test.initial not in initial or not _is_path(graph, test):
                raise DataError(
                    f"Test {number} of the {self.kind} suite is no path of the state graph: the "
                    "suite is damaged. Generate it again with `kconform suite`."
                )


def _suite(
    kind: str,
    initial: Sequence[int],
    ends: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int32],
    names: Sequence[str] | None,
    digest: str,
    seed: int | None,
) -> Suite:
    """What `Suite.__reduce__` took apart."""
    parts = np.split(steps, ends[:-1]) if initial else []
    named = names or [""] * len(parts)
    tests = tuple(map(Test, initial, parts, named))
    return Suite(kind, tests, digest, seed)


def _is_path(graph: StateGraph, test: Test) -> bool:
    edges = test.edges
    if len(edges) == 0:
        return True
    if int(edges.min()) < 0 or int(edges.max()) >= len(graph.source):
        return False
    sources, targets = graph.source[edges], graph.target[edges]
    return bool(sources[0] == test.initial and np.array_equal(sources[1:], targets[:-1]))


def make_tests(
    initial: Sequence[int] | npt.NDArray[np.int32],
    edges: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    names: Sequence[str] | None = None,
) -> tuple[Test, ...]:
    """Cut `edges` at `offsets` (tests + 1 positions) into tests; the arrays are shared."""
    bounds = offsets.tolist()
    return tuple(
        Test(int(start), edges[bounds[i] : bounds[i + 1]], names[i] if names else "")
        for i, start in enumerate(initial)
    )


def save_suite(suite: Suite, path: Path) -> None:
    """Write the suite as one compressed npz file: aside first, then renamed into place."""
    offsets = np.zeros(len(suite) + 1, np.int64)
    np.cumsum([len(test) for test in suite.tests], out=offsets[1:])
    empty = np.zeros(0, np.int32)
    with written_aside(path) as aside, aside.open("wb") as file:
        np.savez_compressed(
            file,
            format=np.array(_FORMAT),
            kind=np.array(suite.kind),
            graph_digest=np.array(suite.graph_digest),
            seed=np.array([] if suite.seed is None else [suite.seed], np.int64),
            initial=np.array([test.initial for test in suite.tests], np.int32),
            edges=np.concatenate([empty, *(test.edges for test in suite.tests)]),
            offsets=offsets,
            names=np.array([test.name for test in suite.tests], np.str_),
        )


def load_suite(path: Path, graph: StateGraph) -> Suite:
    """Read a suite and check that it belongs to `graph`; DataError if it does not."""
    content = read_bytes(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            if int(data["format"]) != _FORMAT:
                raise DataError(
                    f"{path} has suite format {int(data['format'])}, this kconform reads "
                    f"{_FORMAT}. Generate the suite again with `kconform suite`."
                )
            seed = data["seed"].tolist()
            suite = Suite(
                str(data["kind"]),
                make_tests(data["initial"], data["edges"], data["offsets"], data["names"].tolist()),
                str(data["graph_digest"]),
                seed[0] if seed else None,
            )
    except DataError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise kinds of their own on damage
        raise DataError(
            f"{path} is not a readable suite ({error}). Generate it again with `kconform suite`."
        ) from error
    suite.require(graph)
    return suite
