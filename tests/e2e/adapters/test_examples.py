"""The examples in docs/adapters keep to protocol, schema and specification."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from jsonschema import Draft202012Validator

from conformance.replay.suite import replay_suite
from conformance.stages.adapter_check import adapter_of, material_of
from conformance.stages.context import Context, Workbench, one_model
from conformance.suites.postman import transition_cover
from conformance.systems.external import ExternalFactory
from conformance.systems.external.check import NONSENSE, POINTS, check_adapter
from conformance.systems.external.transport import Transport
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL, PYTHON, ROOT

pytestmark = pytest.mark.tlc


@pytest.fixture(params=["python", "java", "go"])
def adapter(request: pytest.FixtureRequest) -> ExternalFactory:
    """Each of them."""
    if request.param == "python":
        return adapter_of(PYTHON)
    command: str = request.getfixturevalue(f"store_in_{request.param}")
    return adapter_of(command)


@dataclass
class Recorded:
    """A transport that keeps what passes."""

    inner: Transport
    passed: list[tuple[bytes, bytes]] = field(default_factory=list)

    def exchange(self, line: bytes, seconds: float) -> bytes:
        answer = self.inner.exchange(line, seconds)
        self.passed.append((line, answer))
        return answer

    def last_words(self) -> str:
        return self.inner.last_words()

    def hang_up(self) -> None:
        self.inner.hang_up()

    def close(self) -> None:
        self.inner.close()

    def kill(self) -> None:
        self.inner.kill()


def recording(adapter: ExternalFactory) -> tuple[ExternalFactory, list[Recorded]]:
    started: list[Recorded] = []

    def opener() -> Transport:
        started.append(Recorded(adapter.opener()))
        return started[-1]

    # A name of its own, so that no channel of another test is taken.
    return replace(adapter, name=f"recorded {adapter.name}", opener=opener), started


def test_every_point_of_the_protocol_holds(context: Context, adapter: ExternalFactory) -> None:
    results = list(check_adapter(adapter, material_of(context, one_model(str(MODEL)))))
    assert [result.point for result in results] == list(POINTS)
    assert [r for r in results if r.verdict is not Verdict.PASS] == []


def test_every_transition_of_the_model_is_replayed(
    bench: Workbench, adapter: ExternalFactory
) -> None:
    result = replay_suite(
        bench.graph, transition_cover(bench.graph), lambda: adapter(bench.constants)
    )
    assert (result.verdict, result.failed, result.inconclusive) == (Verdict.PASS, 0, 0)
    assert result.steps >= len(bench.graph.source)


def test_what_is_said_is_what_the_schema_says(
    context: Context, bench: Workbench, adapter: ExternalFactory
) -> None:
    recorded, started = recording(adapter)
    results = list(check_adapter(recorded, material_of(context, one_model(str(MODEL)))))
    # Whoever watches the standard streams is no process of ours to the last point.
    assert {result.verdict for result in results} == {Verdict.PASS}
    replay_suite(bench.graph, transition_cover(bench.graph), lambda: recorded(bench.constants))
    lines = [pair for one in started for pair in one.passed]
    kinds = {kind for pair in lines for kind in _checked(*pair)}
    assert kinds >= {"hello", "reset", "apply", "observe", "protocol_error", "ok"}
    assert len(lines) > 6_000


_SCHEMA = json.loads((ROOT / "docs" / "adapter-protocol.schema.json").read_text())
_SHOWN = {"hello": "hello", "observe": "observation", "offers": "offers"}
"""The part of the schema that `ok` of these commands follows."""


def _validator(part: str) -> Draft202012Validator:
    return Draft202012Validator({**_SCHEMA, "$ref": f"#/$defs/{part}"})


_VALID = {name: _validator(name) for name in ("request", "reply", *_SHOWN.values())}
_SEEN: set[str] = set()


def _checked(line: bytes, answer: bytes) -> Iterator[str]:
    """Validate a pair of lines; the kinds of commands and answers in it."""
    asked, said = json.loads(line), json.loads(answer)
    assert line.endswith(b"\n")
    commands = [command["command"] for command in asked["commands"]]
    if NONSENSE["command"] not in commands:
        _validate_once("request", asked)
    _validate_once("reply", said)
    for command, one in zip(commands, said["answers"], strict=False):
        yield command
        yield from one
        if "ok" in one and command in _SHOWN:
            _validate_once(_SHOWN[command], one["ok"])


def _validate_once(part: str, document: object) -> None:
    """The same again, but for its number, is as valid as before."""
    shape = {**document, "id": 1} if isinstance(document, dict) and "id" in document else document
    key = part + json.dumps(shape)
    if key not in _SEEN:
        _SEEN.add(key)
        _VALID[part].validate(document)


@pytest.mark.parametrize(
    ("part", "document"),
    [
        ("request", {"id": 1, "commands": []}),
        ("request", {"id": 1, "commands": [{"command": "stop"}]}),
        ("reply", {"id": 1, "answers": [{"ok": 1, "refused": "no"}]}),
        ("reply", {"id": 1, "answers": [{}]}),
        ("hello", {"protocol": 2, "name": "n", "specification": "S", "variables": ["x"]}),
        ("hello", {"protocol": 1, "name": "n", "specification": "S", "variables": []}),
        ("observation", {"x": 0.5}),
        ("observation", {"x": None}),
        ("observation", {"x": {"#set": 1}}),
    ],
)
def test_the_schema_rejects_what_the_page_does_not_allow(part: str, document: object) -> None:
    assert not _validator(part).is_valid(document)
