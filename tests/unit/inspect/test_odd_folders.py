"""What people name instead of a broker's log directory: a sentence, or nothing that is a pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import UserError
from conformance.inspect.evidence import METADATA
from conformance.inspect.inspection import Inspection, inspect
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of
from conformance.inspect.reading.reader import read
from conformance.inspect.store import PartWriter
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict
from tests.segment_files import partition_folder, run_of, write_checkpoint, write_segment

SPECIFICATIONS = Specifications()


def broker(root: Path, node: int = 1, *, topic: str = "t", clean: bool = False) -> Path:
    """A log directory with one partition of three records."""
    folder = partition_folder(root, topic)
    write_segment(folder, run_of(3))
    write_checkpoint(folder / "leader-epoch-checkpoint", "0 0")
    write_checkpoint(root / "replication-offset-checkpoint", f"{topic} 0 3")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: id-of-{topic}\n")
    properties(root, node)
    if clean:
        (root / ".kafka_cleanshutdown").touch()
    return root


def properties(root: Path, node: int, cluster: str = "c") -> None:
    root.mkdir(parents=True, exist_ok=True)
    text = f"version=1\nnode.id={node}\ncluster.id={cluster}\ndirectory.id=dir-{root.name}\n"
    (root / "meta.properties").write_text(text)


def inspected(out: Path, *arguments: str, filters: Filters = Filters()) -> Inspection:  # noqa: B008
    inputs = Inputs(brokers_of(arguments), filters=filters)
    return inspect(read(inputs, out, ()), specifications=SPECIFICATIONS)


def link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


def file(path: Path) -> Path:
    path.write_text("?")
    return path


def folder(path: Path, *files: str) -> Path:
    path.mkdir()
    for name in files:
        (path / name).write_text("")
    return path


@dataclass(frozen=True)
class Odd:
    """What is named, made below a folder, and words of what is told."""

    named: Callable[[Path], tuple[str, ...]]
    told: str


MISTAKES: Mapping[str, Odd] = {
    "an empty folder": Odd(lambda at: (f"b1={folder(at / 'x')}",), "nothing of a broker in b1="),
    "two empty folders": Odd(
        lambda at: (f"b1={folder(at / 'x')}", f"b2={folder(at / 'y')}"), "y: no segment"
    ),
    "a folder with a lock alone": Odd(
        lambda at: (f"b1={folder(at / 'x', '.lock')}",), "nothing of a broker"
    ),
    "server logs alone": Odd(
        lambda at: (f"b1={folder(at / 'x', 'server.log')}",), "nothing of a broker"
    ),
    "a file": Odd(lambda at: (f"b1={file(at / 'x')}",), "is not a folder"),
    "nothing": Odd(lambda at: (f"b1={at / 'x'}",), "is not a folder"),
    "a partition's folder": Odd(
        lambda at: (f"b1={broker(at / 'x') / 't-0'}",), "the folder of one partition"
    ),
    "one folder twice": Odd(lambda at: (f"b1={broker(at / 'x')}",) * 2, "is given twice"),
    "one folder under two names": Odd(
        lambda at: (f"b1={broker(at / 'x')}", f"b2={at / 'x'}"), "would be read twice"
    ),
    "one folder through a link": Odd(
        lambda at: (f"b1={broker(at / 'x')}", f"b2={link(at / 'y', at / 'x')}"),
        "would be read twice",
    ),
    "a folder within another": Odd(
        lambda at: (f"b1={broker(at / 'x' / 'data')}", f"b2={at / 'x'}"), "lies within"
    ),
    "no name": Odd(lambda at: (f"={at}",), "names no broker's folder"),
    "no folder": Odd(lambda _at: ("b1=",), "names no broker's folder"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_naming_folders_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=MISTAKES[name].told.replace(".", r"\.")) as caught:
        inspected(tmp_path / "out", *MISTAKES[name].named(tmp_path))
    assert "\n" not in str(caught.value)


def test_an_output_within_what_is_inspected_is_refused(tmp_path: Path) -> None:
    root = broker(tmp_path / "x")
    with pytest.raises(UserError, match="nothing is written into what is inspected"):
        inspected(root / "out", f"b1={root}")


OPEN: Mapping[str, Odd] = {
    "an identity without partitions": Odd(
        lambda at: (properties(at / "x", 1), (f"b1={at / 'x'}",))[1], ""
    ),
    "only a topic of Kafka's own": Odd(
        lambda at: (f"b1={broker(at / 'x', topic='__transaction_state')}",), ""
    ),
    "a partition without an identity": Odd(
        lambda at: ((broker(at / "x") / "meta.properties").unlink(), (f"b1={at / 'x'}",))[1],
        "no-meta-properties",
    ),
    "one empty folder among others": Odd(
        lambda at: (f"b1={broker(at / 'x')}", f"b2={folder(at / 'y')}"), "empty-folder"
    ),
    "two brokers with one node id": Odd(
        lambda at: (f"b1={broker(at / 'x')}", f"b2={broker(at / 'y')}"), "same-node-id"
    ),
    "several brokers under one name": Odd(
        lambda at: (broker(at / "x" / "1", 1), broker(at / "x" / "2", 2), (f"b1={at / 'x'}",))[2],
        "identity-differs",
    ),
}


@pytest.mark.parametrize("name", OPEN)
def test_what_says_too_little_is_no_pass(tmp_path: Path, name: str) -> None:
    case = OPEN[name]
    found = inspected(tmp_path / "out", *case.named(tmp_path))
    assert found.verdict is Verdict.INCONCLUSIVE
    told = {one.kind for one in found.discoveries}
    assert told == {case.told} - {""}
    assert told or any(one.matters for one in found.unjudged)


def test_an_empty_folder_with_server_logs_is_no_pass(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("[2026-01-05 10:00:00,123] INFO started (kafka.server.KafkaServer)\n")
    inputs = Inputs(brokers_of((f"b1={folder(tmp_path / 'x')}",)), logs=(f"b1={log}",))
    found = inspect(read(inputs, tmp_path / "out", ()), specifications=SPECIFICATIONS)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert [one.kind for one in found.discoveries] == ["empty-folder"]


def test_a_topic_that_nobody_has_is_no_pass(tmp_path: Path) -> None:
    filters = Filters(topics=frozenset({"nosuch"}))
    found = inspected(tmp_path / "out", f"b1={broker(tmp_path / 'x')}", filters=filters)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any(one.subject == "the partitions asked for" for one in found.unjudged)


def test_a_folder_of_another_cluster_is_told_and_set_aside(tmp_path: Path) -> None:
    roots = [broker(tmp_path / f"x{node}", node) for node in (1, 2, 3)]
    properties(roots[1], 2, "another")
    found = inspected(tmp_path / "out", *(f"b{n}={root}" for n, root in enumerate(roots, 1)))
    (one,) = found.discoveries
    assert (one.kind, one.brokers, one.verdict) == ("other-cluster", ("b2",), Verdict.FAIL)
    assert set(found.copies.copies) == {"b1", "b3"}


def test_logs_of_two_topics_of_one_name_are_not_compared(tmp_path: Path) -> None:
    """A topic was deleted and made again: a broker that was down has the folder of the old one."""
    roots = [broker(tmp_path / f"x{node}", node) for node in (1, 2)]
    write_segment(roots[1] / "t-0", run_of(3, size=17))
    (roots[1] / "t-0" / "partition.metadata").write_text("version: 0\ntopic_id: id-of-another\n")

    found = inspected(tmp_path / "out", *(f"b{n}={root}" for n, root in enumerate(roots, 1)))

    assert [(told.kind, told.brokers) for told in found.discoveries] == [
        ("other-topic", ("b1", "b2"))
    ]
    assert ("LogMatching", True) in [(told.what, told.matters) for told in found.unjudged]


def test_two_log_directories_of_a_broker_stay_two(tmp_path: Path) -> None:
    """Named one by one: a mark of a clean stop in one of them says nothing of the other."""
    first, second = broker(tmp_path / "d1", clean=True), broker(tmp_path / "d2")
    found = inspected(tmp_path / "out", f"b1={first}", f"b1={second}")
    assert found.copies.copies["b1"].clean == frozenset({"d1"})
    (one,) = (one for one in found.discoveries if one.kind == "two-logs")
    assert "d2/t-0" in one.message or "d1/t-0" in one.message


def registered(node: int, *directories: str, offset: int = 0) -> dict[str, Any]:
    body = {"brokerId": node, "brokerEpoch": offset, "logDirs": list(directories)}
    return dict.fromkeys(METADATA.names) | {
        "broker": "b1", "offset": offset, "epoch": 1, "timestamp": 1, "version": 3, "path": "p",
        "type": "RegisterBrokerRecord", "body": json.dumps(body), "committed": True,
        "source": "log", "sequence": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("registrations", "kinds"),
    [
        ([registered(1, "dir-x")], set()),
        ([registered(1)], set()),  # before directories were registered
        ([registered(1, "dir-y")], {"unknown-directory"}),
        ([registered(2, "dir-y")], {"unknown-directory"}),
        ([registered(1, "dir-y"), registered(2, "dir-x", offset=1)], {"other-node"}),
    ],
    ids=["its own", "without directories", "another directory", "another node", "another's"],
)
def test_a_directory_is_held_against_what_brokers_registered(
    tmp_path: Path, registrations: list[dict[str, Any]], kinds: set[str]
) -> None:
    inputs = Inputs(brokers_of((f"b1={broker(tmp_path / 'x')}",)))
    evidence = read(inputs, tmp_path / "out", ())
    with PartWriter(tmp_path / "out", 99) as writer:
        for row in registrations:
            writer.row("metadata", row)
    found = inspect(evidence, specifications=SPECIFICATIONS)
    own = {"unknown-directory", "other-node"}
    assert {one.kind for one in found.discoveries} & own == kinds
