"""Models of one specification are parsed together, and each is as if it had been alone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.errors import SpecError
from conformance.modelcheck import parser as parsing
from conformance.modelcheck.cache import Cache
from conformance.modelcheck.generate import generate
from conformance.modelcheck.manifest import find_models, load_model
from conformance.modelcheck.parser import Parser
from conformance.modelcheck.prepare import prepare
from conformance.tla import Tools, find_tools, read_xml

pytestmark = pytest.mark.tlc

LOCK = Path(__file__).parent / "modules" / "lock.toml"
TOOLS = find_tools()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that SANY was given."""
    names: list[str] = []
    original = parsing.export_xml

    def export(path: Path, tools: Tools, search: Sequence[Path]) -> bytes:
        names.append(path.stem)
        return original(path, tools, search)

    monkeypatch.setattr(parsing, "export_xml", export)
    return names


def test_what_sany_said_is_kept_until_a_text_changes(tmp_path: Path, parsed: list[str]) -> None:
    folder = tmp_path / "modules"
    shutil.copytree(LOCK.parent, folder)
    cache = Cache(tmp_path / "cache")

    def operators(*, cold: bool = False) -> set[str]:
        model = load_model(folder / "lock.toml")
        return set(Parser(cache, cold=cold).module(model, generate(model), TOOLS).operators)

    first = operators()
    assert operators() == first
    assert len(parsed) == 1
    assert operators(cold=True) == first
    assert len(parsed) == 2
    text = (folder / "Lock.tla").read_text().rstrip().rstrip("=")
    (folder / "Lock.tla").write_text(f"{text}Another == 1\n====\n")
    assert operators() == {*first, "Another"}
    assert len(parsed) == 3


def test_modules_that_name_each_other_are_kept_apart(tmp_path: Path, parsed: list[str]) -> None:
    """Both roots have the same two files, so the files alone do not say whose export is kept."""
    names = ("There", "Back")
    for name, other in (names, names[::-1]):
        text = f"---- MODULE {name} ----\n\\* Beside it stands {other}.\nOf{name} == 1\n====\n"
        (tmp_path / f"{name}.tla").write_text(text)
    parser = Parser(Cache(tmp_path / "cache"))

    def operators(name: str) -> set[str]:
        path = tmp_path / f"{name}.tla"
        return set(read_xml(parser.xml(path, (), TOOLS), path).operators)

    assert [operators(name) for name in names] == [{"OfThere"}, {"OfBack"}]
    assert parsed == list(names)
    assert [operators(name) for name in names] == [{"OfThere"}, {"OfBack"}]
    assert parsed == list(names)


def test_a_module_of_megabytes_is_refused_behind_a_small_root(
    tmp_path: Path, parsed: list[str]
) -> None:
    (tmp_path / "Large.tla").write_text(f"---- MODULE Large ----\n\\* {'n' * 6_000_000}\n====\n")
    root = tmp_path / "Root.tla"
    root.write_text("---- MODULE Root ----\nEXTENDS Large\n====\n")
    with pytest.raises(SpecError, match=r"Large\.tla has 6,000,\d+ bytes"):
        Parser(Cache(tmp_path / "cache")).xml(root, (), TOOLS)
    assert parsed == []


def test_a_family_is_parsed_once_and_each_model_is_as_if_alone(parsed: list[str]) -> None:
    mutants = [
        "replication/mutant-truncation-fence-fine-2b",
        "replication/mutant-fetch-fence-fine-2b",
        "replication/bench/kip320-fine-2b",
    ]
    models = find_models(mutants)
    parser = Parser(cold=True)
    parser.announce(models)
    together = [prepare(model, TOOLS, parser) for model in models]
    assert parsed == ["Replication__models"]
    for model, one in zip(models, together, strict=True):
        alone = prepare(model, TOOLS)
        assert one.generated == alone.generated
        assert set(one.module.operators) == set(alone.module.operators)
        for state in alone.spec.initial_states():
            assert list(one.spec.successors(state)) == list(alone.spec.successors(state))


def test_equal_names_of_two_models_stay_apart() -> None:
    model = load_model(LOCK)
    first = replace(model, definitions={"Most(n)": "n + 1"}, constants={**model.constants})
    second = replace(model, definitions={"Most(n)": "n + 2"}, constants={**model.constants})
    parser = Parser(cold=True)
    parser.announce([first, second])
    bodies = []
    for one in (first, second):
        definition = parser.module(one, generate(one), TOOLS).operator("Most")
        assert definition is not None
        assert definition.name == "Most"
        bodies.append(str(definition.body))
    assert bodies[0] != bodies[1]


def test_one_that_does_not_parse_spoils_no_other(parsed: list[str]) -> None:
    good = load_model(LOCK)
    bad = replace(good, definitions={"Broken": "1 +"})
    parser = Parser(cold=True)
    parser.announce([good, bad])
    assert parser.module(good, generate(good), TOOLS).operator("Init") is not None
    with pytest.raises(SpecError, match="definitions do not parse"):
        parser.module(bad, generate(bad), TOOLS)
    assert parsed == [f"{good.spec}__models", f"{good.spec}__model", f"{good.spec}__model"]
