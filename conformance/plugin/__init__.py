"""pytest plugin: a spec and an adapter as named tests in a project of one's own.

    from conformance.plugin import conformance_tests

    TestStore = conformance_tests("Store.tla", config="Store.cfg", system="store:Adapter")

pytest imports this module at every start, so it imports nothing but pytest: the harness is
loaded when a test module calls `conformance_tests`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conformance.plugin.cases import ConformanceTests, TestRun
    from conformance.stages.context import Workbench
    from conformance.suites.suite import Suite

__all__ = ["conformance_tests"]

PROFILES = ("dev", "ci", "nightly")


def conformance_tests(
    model: str, *, config: str | None = None, system: str | None = None, parts: int = 4
) -> type[ConformanceTests]:
    """A class of tests: `test_model`, `test_suite[part-1-of-4]`, ... and `test_exploration`.

    `model` is a module (`Store.tla`, its configuration beside it unless `config` names one) or a
    model's manifest (`store.toml`), relative to the test's folder. `system` is `module:function`,
    a name under [systems] of the configuration, or absent where the manifest has it. The minimal
    suite that covers every transition is cut into `parts` tests. Assign the class to a name that
    pytest collects, as `TestStore`.
    """
    from conformance.plugin.cases import TestedModel, tests_of

    return tests_of(TestedModel(model, config, system, parts))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of kconform's tests only."""
    group = parser.getgroup("kconform", "conformance tests")
    group.addoption(
        "--kconform-profile",
        choices=PROFILES,
        help="How long to explore: dev takes seconds, ci a minute and repeats itself, nightly "
        "long. Default: the active Hypothesis profile.",
    )
    group.addoption(
        "--kconform-seed",
        type=int,
        help="Seed of everything random in kconform's tests. Default: the configured seed; "
        "exploration under a Hypothesis profile follows Hypothesis's own options.",
    )


@pytest.fixture(scope="class")
def kconform_run(request: pytest.FixtureRequest) -> TestRun:
    """What the tests of one class share: settings, model, events."""
    from conformance.plugin.cases import TestRun

    return TestRun.of(request)


@pytest.fixture(scope="class")
def kconform_bench(kconform_run: TestRun) -> Workbench:
    """The model's state graph and its system."""
    return kconform_run.bench()


@pytest.fixture(scope="class")
def kconform_suite(kconform_run: TestRun, kconform_bench: Workbench) -> Suite:
    """The minimal suite that covers every transition of the graph."""
    return kconform_run.suite(kconform_bench)
