"""The tests themselves: the stages of the gate, each as an ordinary pytest test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest

from conformance.compared import ComparedStates, total
from conformance.config import load_settings
from conformance.errors import UserError
from conformance.events import Event, Finding, StageFinished
from conformance.modelcheck.check import CheckOptions
from conformance.modelcheck.manifest import Model
from conformance.replay.profile import Profile
from conformance.report.text import finding_lines
from conformance.stages.check import check
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.stages.explore import explore, search_of
from conformance.stages.replay import replay
from conformance.stages.suite import cover
from conformance.suites.suite import Suite
from conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class TestedModel:
    """What a class of tests is about, as the user named it."""

    model: str
    config: str | None
    system: str | None
    parts: int

    def __post_init__(self) -> None:
        """Refuse a suite of no part: it would pass."""
        if self.parts < 1:
            raise ValueError(f"the suite needs at least one part, not {self.parts}")

    def find(self, folder: Path) -> Model:
        """The model, its files relative to `folder`. UserError if there is none."""
        name = self.model
        if (folder / name).exists():
            name = str(folder / name)
        if self.config is not None:
            name += f":{folder / self.config}"
        model = one_model(name)
        # So that one run of TLC gives both the verdict and the graph, of a manifest that
        # feeds no gate too.
        return replace(model, feeds_suite=True, system=self.system or model.system)


@dataclass(frozen=True, slots=True)
class TestRun:
    """What the tests of one class share."""

    context: Context
    model: Model
    events: list[Event]
    profile: Profile | None
    """None: the active Hypothesis profile."""
    seed: int | None
    """As it was given on the command line."""
    compared: dict[int, ComparedStates] = field(default_factory=dict)
    """By the suite's parts that were driven in this process."""

    @staticmethod
    def of(request: pytest.FixtureRequest) -> TestRun:
        """The settings of the current folder, as for the command line; the class's model."""
        with mistakes_told():
            settings = load_settings(Path.cwd())
            model = request.cls.subject.find(request.path.parent)
        profile = request.config.getoption("--kconform-profile")
        seed = request.config.getoption("--kconform-seed")
        events: list[Event] = []
        check_options = CheckOptions(jobs=settings.jobs)
        chosen = settings.seed if seed is None else seed
        context = Context(settings, events.append, check_options, chosen)
        return TestRun(context, model, events, None if profile is None else Profile(profile), seed)

    def bench(self) -> Workbench:
        """The model's state graph, from the cache or TLC, and the system."""
        with mistakes_told():
            return workbench(self.context, self.model)

    def suite(self, bench: Workbench) -> Suite:
        """The minimal suite that covers every transition of the graph."""
        return cover(self.context, bench.model.name, bench.graph)


class ConformanceTests:
    """Model check, suite and exploration of one subject; `tests_of` makes the class to collect."""

    subject: ClassVar[TestedModel]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test per part of the suite, numbered without running TLC: collecting is free."""
        if "kconform_part" in metafunc.fixturenames:
            parts = self.subject.parts
            ids = [f"part-{number}-of-{parts}" for number in range(1, parts + 1)]
            metafunc.parametrize("kconform_part", range(parts), ids=ids)

    def test_model(self, kconform_run: TestRun) -> None:
        """The spec itself is in order: TLC finds no violation."""
        with _passing(kconform_run):
            check(kconform_run.context, [kconform_run.model])

    def test_suite(
        self,
        kconform_run: TestRun,
        kconform_bench: Workbench,
        kconform_suite: Suite,
        kconform_part: int,
    ) -> None:
        """After every step of the suite the system is in a state that the spec allows."""
        tests = kconform_suite.tests[kconform_part :: self.subject.parts]
        if not tests:
            # The parts are made when tests are collected, before the suite is known.
            pytest.skip(f"the whole suite has only {len(kconform_suite)} tests")
        run, parts = kconform_run, min(self.subject.parts, len(kconform_suite))
        suite = replace(kconform_suite, tests=tests)
        with _passing(run):
            result = replay(run.context, kconform_bench, suite, part=parts > 1)
        run.compared[kconform_part] = result.compared
        # Of all parts together, where one process drives them; else the exploration is to show it.
        if len(run.compared) == parts and (gap := total(run.compared.values()).gap):
            pytest.fail(f"all parts of the suite together: {gap}", pytrace=False)

    def test_exploration(self, kconform_run: TestRun, kconform_bench: Workbench) -> None:
        """Hypothesis finds no way on which the system leaves the spec."""
        run = kconform_run
        with _passing(run):
            search = search_of(run.context, kconform_bench, profile=run.profile, seed=run.seed)
            explore(run.context, kconform_bench, search)


def tests_of(subject: TestedModel) -> type[ConformanceTests]:
    """The class of tests of one subject."""
    return type("ConformanceTests", (ConformanceTests,), {"subject": subject})


@contextmanager
def _passing(run: TestRun) -> Iterator[None]:
    """Fail the test with the stories unless every stage that ends within passes."""
    run.events.clear()
    with mistakes_told():
        yield
    stages = [event for event in run.events if isinstance(event, StageFinished)]
    lines = [
        f"{stage.stage} {stage.subject}: {stage.verdict}: {stage.summary}"
        for stage in stages
        if stage.verdict is not Verdict.PASS
    ]
    for finding in (event for event in run.events if isinstance(event, Finding)):
        lines += ["", *finding_lines(finding)]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)
    if not stages:
        pytest.fail("nothing was checked", pytrace=False)


@contextmanager
def mistakes_told() -> Iterator[None]:
    """The user's mistakes as the paragraphs that they are, without our traceback."""
    try:
        yield
    except UserError as error:
        pytest.fail(str(error), pytrace=False)
