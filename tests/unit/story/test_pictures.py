"""The tables that say how protocols are drawn: read, found, and true to their specifications."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.modelcheck.pictures import picture_of
from conformance.resources import spec_dir
from conformance.story.picture import Picture, find_picture, load_picture
from tests.bundled import MODELS

PICTURES = sorted(spec_dir().glob("*.picture.toml"))


def words(picture: Path) -> set[str]:
    """All that the specification's modules define or declare."""
    found: set[str] = set()
    for module in picture.parent.glob("*.tla"):
        found |= set(re.findall(r"\w+", module.read_text(encoding="utf-8")))
    return found


def extended(spec: str) -> set[str]:
    """The specification's own module and those that it extends."""
    text = (spec_dir() / f"{spec}.tla").read_text(encoding="utf-8")
    listed = re.search(r"^EXTENDS (.*(?:,\n.*)*)", text, re.MULTILINE)
    modules = re.findall(r"\w+", listed[1]) if listed else []
    ours = [module for module in modules if (spec_dir() / f"{module}.tla").exists()]
    return {spec}.union(*map(extended, ours))


def names(picture: Picture) -> set[str]:
    """The variables and actions that a picture speaks of."""
    found = {picture.lanes.keys_of, *picture.actions} - {""}
    found |= {further.keys_of for further in picture.lanes.further}
    for delivery in picture.deliveries:
        found |= {delivery.sent, *delivery.received, *delivery.lost, *delivery.carries}
        found |= {delivery.variable, delivery.type} - {""}
    found |= {log.entries for log in picture.logs} | {
        name for log in picture.logs for name in (log.start, *log.marks.values()) if name
    }
    for badge in picture.badges:
        found |= {one.partition(".")[0] for one in re.findall(r"\{([\w.]+)\}", badge.text)}
        found |= {badge.variable, badge.of} - {""}
    for message in picture.messages:
        found |= {message.variable, *message.carries}
    for announcement in picture.announcements:
        found |= {announcement.variable, *announcement.received, *announcement.carries}
    return found | {exchange.action for exchange in picture.exchanges}


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_speaks_only_of_what_its_specification_has(path: Path) -> None:
    assert names(load_picture(path)) - words(path) == set()


@pytest.mark.parametrize(
    "spec",
    [path.name.partition(".")[0] for path in PICTURES],
)
def test_every_model_of_ours_has_its_picture(spec: str) -> None:
    own = {path.name.partition(".")[0] for path in PICTURES}
    found = [
        picture_of(model)
        for model in MODELS
        if (model.spec if model.spec in own else spec) == spec and spec in extended(model.spec)
    ]
    assert found == [load_picture(spec_dir() / f"{spec}.picture.toml")] * len(found)
    assert found


def test_every_specification_of_ours_has_a_picture_that_it_extends() -> None:
    protocols = {model.spec: picture_of(model) for model in MODELS}
    # Rules on what was written, read and loaded, or one client alone: no parties to be drawn.
    assert {spec for spec, picture in protocols.items() if picture is None} == {
        "ClientHistory",
        "ConsumerCommits",
        "ConsumerPositions",
        "ConsumerTopics",
        "GroupLog",
        "LogStorage",
        "ShareStateLog",
        "TransactionStateLog",
    }
    client, group = protocols["GroupClient"], protocols["GroupMembership"]
    assert client == group, "it extends GroupMembership; other modules are named in comments only"


def test_the_root_modules_own_picture_comes_first(tmp_path: Path) -> None:
    for name in ("Own", "Base"):
        text = f'schema = 1\nprotocol = "{name}"\n[lanes]\nkeys_of = "x"\n'
        (tmp_path / f"{name}.picture.toml").write_text(text)
    found = find_picture([tmp_path / "Own.tla", tmp_path / "Base.tla"])
    assert found is not None
    assert found.protocol == "Own"
    assert find_picture([tmp_path / "Other.tla"]) is None


@pytest.mark.parametrize(
    "text", ["schema = 2", "lanes = 3", "schema = 1\n[lanes]\nkeys_of = 'x'\n[nonsense]", "["]
)
def test_what_is_no_picture_is_the_users_mistake(tmp_path: Path, text: str) -> None:
    path = tmp_path / "Bad.picture.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"Bad\.picture\.toml is not a picture"):
        load_picture(path)
