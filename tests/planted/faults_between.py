"""Faults between the files of a folder, and between folders: three at least for each invariant.

Each takes a copy of a clean cluster and makes one file contradict another, where every file alone
may still be sound.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from crc32c import crc32c

from conformance.kafka.batches import sealed
from tests.planted.sites import (
    REPLICATION,
    Batch,
    Fault,
    Planted,
    Site,
    overwrite,
    read_cache,
    write_cache,
)

_RECOVERY = "recovery-point-offset-checkpoint"
_LOG_START = "log-start-offset-checkpoint"
_CLEANER = "cleaner-offset-checkpoint"
_MARK = ".kafka_cleanshutdown"
_METADATA = "__cluster_metadata"
_OFFSETS = "__consumer_offsets"
_STRANGE = "AbCdEfGhIjKlMnOpQrStUv"
"""An id that nothing has."""

Change = Callable[[Site, str], str]
"""Takes where and at which broker; gives what it did, in words."""


def between() -> dict[str, Fault]:
    """All of them, by name."""
    return dict((*_of_one_folder(), *_of_several_folders()))


def _faults(
    invariant: str,
    told: str,
    changes: Mapping[str, Change],
    *,
    proved: bool = True,
    at: Callable[[Site, str], str] = lambda _site, broker: broker,
) -> Iterator[tuple[str, Fault]]:
    """A fault for each change, all of one invariant and told by the same kinds of findings."""
    for name, change in changes.items():
        plant = partial(_planted, name, change)
        yield name, Fault(plant, frozenset(told.split()), invariant=invariant, proved=proved, at=at)


def _planted(name: str, change: Change, site: Site, broker: str) -> Planted:
    return Planted(name, (broker,), None, change(site, broker))


# --- where -------------------------------------------------------------------------------------


def _clean(site: Site, broker: str) -> str:
    """The broker, if it had stopped in order, or the first that had."""
    order = (broker, *site.brokers)
    return next(one for one in order if (site.data(one) / _MARK).exists())


def _killed(site: Site, broker: str) -> str:
    """The broker, made one that had not stopped in order."""
    (site.data(broker) / _MARK).unlink(missing_ok=True)
    return broker


def _once_leader(site: Site, _broker: str) -> str:
    """A broker that had stopped in order and whose server log says that it led or followed late."""
    return max(site.brokers, key=lambda one: ((site.data(one) / _MARK).exists(), _said(site, one)))


def _registered_last(site: Site, _broker: str) -> str:
    """A broker that had stopped in order: of these, the one with the highest broker epoch."""
    return max(
        site.brokers,
        key=lambda one: ((site.data(one) / _MARK).exists(), _broker_epoch(site, one)),
    )


def _broker_epoch(site: Site, broker: str) -> int:
    """The broker epoch of the last registration, as the broker's server log has it."""
    text = (site.root / broker / "server.log").read_text("utf-8")
    return int(re.findall(r"Successfully registered broker \d+ with broker epoch (\d+)", text)[-1])


def _led_last(site: Site, _broker: str) -> str:
    """The leader of the latest epoch that has records: the controller's log says that it led."""
    return max(site.brokers, key=lambda one: _led_from(site, one))


def _led_from(site: Site, broker: str) -> int:
    """From which offset on a broker last led, in an epoch of which another replica has records."""
    path = site.root / broker / "server.log"
    text = path.read_text("utf-8") if path.exists() else ""
    others = (other for other in site.brokers if other != broker)
    known = {epoch for other in others for epoch, _ in read_cache(site, other)[1]}
    line = rf"Leader {site.topic}-0 .*starts at leader epoch (\d+) from offset (\d+)"
    return max((int(at) for epoch, at in re.findall(line, text) if int(epoch) in known), default=-1)


def _said(site: Site, broker: str) -> int:
    """From which offset on a broker last said that it led or followed."""
    path = site.root / broker / "server.log"
    text = path.read_text("utf-8") if path.exists() else ""
    found = re.findall(rf" {site.topic}-0 .*starts at leader epoch \d+ from offset (\d+)", text)
    return int(found[-1]) if found else -1


# --- small files -------------------------------------------------------------------------------


def _checkpointed(site: Site, broker: str, name: str, topic: str, offset: int | None) -> str:
    """Another offset in a checkpoint, or no entry."""
    path = site.data(broker) / name
    text = path.read_text("utf-8") if path.exists() else ""
    rows = [row for row in text.splitlines()[2:] if row.split()[:2] != [topic, "0"]]
    if offset is not None:
        rows.append(f"{topic} 0 {offset}")
    path.write_text("\n".join(["0", str(len(rows)), *rows]) + "\n", "utf-8")
    return f"{name}: {topic}-0 at {offset}"


def _beyond(name: str, more: int, topic: str = "") -> Change:
    """An entry so far beyond the log's end."""

    def change(site: Site, broker: str) -> str:
        end = site.batches(broker, topic or site.topic)[-1].last + 1
        return _checkpointed(site, broker, name, topic or site.topic, end + more)

    return change


def _at(name: str, offset: int | None) -> Change:
    def change(site: Site, broker: str) -> str:
        return _checkpointed(site, broker, name, site.topic, offset)

    return change


def _removed(path: str, topic: str = "") -> Change:
    """A file that is gone, or a folder; of the log directory, or of a partition."""

    def change(site: Site, broker: str) -> str:
        folder = site.log(broker, topic).parent if topic else site.data(broker)
        target = folder / path if path else folder
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink()
        return f"{target.name} removed"

    return change


def _written(path: str, text: str, topic: str = "") -> Change:
    def change(site: Site, broker: str) -> str:
        folder = site.log(broker, topic).parent if topic else site.data(broker)
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, "utf-8")
        return f"{path} says {text!r}"

    return change


def _bytes(path: str, data: Callable[[Site, str], bytes]) -> Change:
    """A file of the topic's partition with other bytes."""

    def change(site: Site, broker: str) -> str:
        written = data(site, broker)
        (site.log(broker).parent / path).write_bytes(written)
        return f"{path} of {len(written)} bytes"

    return change


def _properties(path: Path, **values: str | None) -> str:
    """Other values in a meta.properties; None: without that line."""
    pairs = dict(line.split("=", 1) for line in path.read_text("utf-8").splitlines() if "=" in line)
    pairs |= {key.replace("_", "."): value or "" for key, value in values.items()}
    path.write_text("".join(f"{key}={value}\n" for key, value in pairs.items() if value), "utf-8")
    return f"{path.name}: {values}"


def _meta(**values: str | None) -> Change:
    return lambda site, broker: _properties(site.data(broker) / "meta.properties", **values)


def _node(site: Site, broker: str) -> str:
    text = (site.data(broker) / "meta.properties").read_text("utf-8")
    return next(row[8:] for row in text.splitlines() if row.startswith("node.id="))


def _other(site: Site, broker: str, by: int = 1) -> str:
    """Another of the brokers."""
    return site.brokers[(site.brokers.index(broker) + by) % len(site.brokers)]


def _second_directory(
    site: Site, broker: str, partition: str = "", *, move: bool = True, **values: str | None
) -> str:
    """A second log directory of the broker, with a partition of the first one if one is named."""
    first, second = site.data(broker), site.data(broker) / "second"
    second.mkdir()
    shutil.copyfile(first / "meta.properties", second / "meta.properties")
    _properties(second / "meta.properties", **values)
    if partition:
        shutil.copytree(first / partition, second / partition)
    if partition and move:
        shutil.rmtree(first / partition)
    return f"a second directory with {partition or 'nothing'}, {values}"


# --- segments ----------------------------------------------------------------------------------


def _rewritten(site: Site, broker: str, batches: Sequence[Batch], topic: str = "") -> bytes:
    """The bytes of some batches of a segment."""
    data = site.log(broker, topic or None).read_bytes()
    return b"".join(data[one.position : one.position + one.size] for one in batches)


def _head_removed(share: float) -> Change:
    """The first batches of the first segment are gone: one of them, or a share."""

    def change(site: Site, broker: str) -> str:
        every = site.batches(broker)
        number = max(1, int(len(every) * share))
        site.log(broker).write_bytes(_rewritten(site, broker, every[number:]))
        return f"the first {number} batches"

    return change


def _begins_later(start: int, topic: str = "") -> Change:
    """The log begins with a segment of that offset; nothing of before is left."""

    def change(site: Site, broker: str) -> str:
        kept = [one for one in site.batches(broker, topic or None) if one.base >= start]
        data, path = _rewritten(site, broker, kept, topic), site.log(broker, topic or None)
        for old in path.parent.glob(f"{0:020}.*"):
            if old.suffix in (".log", ".index", ".timeindex"):
                old.unlink()
        (path.parent / f"{kept[0].base:020}.log").write_bytes(data)
        return f"begins at {kept[0].base}"

    return change


def _first_segments_removed(start: int, checkpointed: int) -> Change:
    def change(site: Site, broker: str) -> str:
        words = _begins_later(start)(site, broker)
        entries = [e for e in read_cache(site, broker)[1] if e[1] > start]
        epoch = next(one.epoch for one in site.batches(_other(site, broker)) if one.base == start)
        write_cache(read_cache(site, broker)[0], [(epoch, start), *entries])
        return f"{words}, {_checkpointed(site, broker, _LOG_START, site.topic, checkpointed)}"

    return change


def _index(entry: Callable[[list[Batch], int], tuple[int, int]]) -> Change:
    """An offset index of one entry, trimmed to it; of the batches and the segment's size."""

    def data(site: Site, broker: str) -> bytes:
        batches = site.batches(broker)
        return struct.pack(">ii", *entry(batches, site.log(broker).stat().st_size))

    return _bytes(f"{0:020}.index", data)


def _times(entry: Callable[[int, int], Sequence[tuple[int, int]]]) -> Change:
    """A time index of entries, made of the first batch's time and the last offset."""

    def data(site: Site, broker: str) -> bytes:
        (time,) = struct.unpack_from(">q", site.log(broker).read_bytes(), 35)
        last = site.batches(broker)[-1].last
        return b"".join(struct.pack(">qi", *one) for one in entry(time, last))

    return _bytes(f"{0:020}.timeindex", data)


def _abort(version: int, producer: int, first: int, last: int) -> Change:
    data = struct.pack(">hqqqq", version, producer, first, last, first)
    return _bytes(f"{0:020}.txnindex", lambda _site, _broker: data)


def _snapshot(offset: int | None, producer: int, last: int) -> Change:
    """A producer snapshot at an offset (None: the log's end) with one producer."""

    def change(site: Site, broker: str) -> str:
        at = site.batches(broker)[-1].last + 1 if offset is None else offset
        entry = struct.pack(">qhiqiqiq", producer, 0, 0, last, 0, 0, 0, -1)
        body = struct.pack(">i", 1) + entry
        path = site.log(broker).parent / f"{at:020}.snapshot"
        path.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)
        return f"{path.name}: producer {producer} at {last}"

    return change


def _snapshots_moved(move: Callable[[int], int | None]) -> Change:
    """Each producer snapshot of another offset; None: it is gone."""

    def change(site: Site, broker: str) -> str:
        folder = site.log(broker).parent
        for path in sorted(folder.glob("*.snapshot"), reverse=True):
            offset = move(int(path.stem))
            if offset is None:
                path.unlink()
            else:
                path.rename(folder / f"{offset:020}.snapshot")
        return ", ".join(sorted(one.name for one in folder.glob("*.snapshot"))) or "no snapshot"

    return change


def _older(end: int, *, clean: bool = True, logs: bool = True) -> Change:
    """An earlier state of the partition: log, epochs and checkpoints fit each other."""

    def change(site: Site, broker: str) -> str:
        kept = [one for one in site.batches(broker) if one.last < end]
        site.log(broker).write_bytes(_rewritten(site, broker, kept))
        path, entries = read_cache(site, broker)
        write_cache(path, [entry for entry in entries if entry[1] < end])
        for name in (REPLICATION, _RECOVERY):
            _checkpointed(site, broker, name, site.topic, end)
        for name in ("*.snapshot", "*.index", "*.timeindex"):
            for old in path.parent.glob(name):
                old.unlink()
        body = struct.pack(">i", 0)
        data = struct.pack(">hI", 1, crc32c(body)) + body
        (path.parent / f"{end:020}.snapshot").write_bytes(data)
        if not clean:
            _killed(site, broker)
        if not logs:
            (site.root / broker / "server.log").unlink()
        return f"as it was at offset {end}"

    return change


def _older_metadata(before: int) -> Change:
    """The metadata log as it was so many batches before the broker's last registration."""

    def change(site: Site, broker: str) -> str:
        path = site.log(broker, _METADATA)
        data = path.read_bytes()
        # A registration that is sent again keeps the broker epoch of the first: its offset.
        registered = _broker_epoch(site, broker)
        number = sum(one.last < registered for one in site.batches(broker, _METADATA))
        number = max(1, number - before)
        cut = site.batches(broker, _METADATA)[number]
        path.write_bytes(data[: cut.position])
        write_cache(
            path.parent / "leader-epoch-checkpoint",
            [e for e in read_cache(site, broker, _METADATA)[1] if e[1] < cut.base],
        )
        (site.data(broker) / _MARK).unlink(missing_ok=True)
        return f"the metadata log ends at offset {cut.base}"

    return change


def _batch_header(at: int, data: bytes, *, legacy: bool = False, number: int = 12) -> Change:
    """Other bytes in the header of a batch; legacy: the whole batch as a message of magic 1."""

    def change(site: Site, broker: str) -> str:
        hit = site.batches(broker)[number]
        if legacy:
            body = struct.pack(">bbqii", 1, 0, 0, -1, hit.size - 34) + bytes(hit.size - 34)
            head = struct.pack(">qiI", hit.base, hit.size - 12, zlib.crc32(body))
            overwrite(site.log(broker), hit.position, head + body)
        else:
            overwrite(site.log(broker), hit.position + at, data)
        return f"the batch at offset {hit.base}"

    return change


def _other_record(site: Site, broker: str, number: int) -> str:
    """Another byte within a record, with a valid checksum."""
    hit = site.batches(broker)[number]
    data = bytearray(_rewritten(site, broker, [hit]))
    data[-3] ^= 0x15
    overwrite(site.log(broker), hit.position, sealed(bytes(data)))
    return f"the record at offset {hit.base}"


def _metadata_record(text: bytes) -> Change:
    """A committed record of the metadata log with another name in it."""

    def change(site: Site, broker: str) -> str:
        path = site.log(broker, _METADATA)
        data = path.read_bytes()
        hit = next(
            one
            for one in site.batches(broker, _METADATA)
            if text in data[one.position : one.position + one.size]
        )
        part = data[hit.position : hit.position + hit.size].replace(text, text.swapcase())
        overwrite(path, hit.position, sealed(part))
        return f"{text!r} at offset {hit.base}"

    return change


# --- the quorum --------------------------------------------------------------------------------


def _quorum_state(site: Site, broker: str, **values: int) -> str:
    path = site.log(broker, _METADATA).parent / "quorum-state"
    state = json.loads(path.read_text("utf-8")) | values
    path.write_text(json.dumps(state), "utf-8")
    return f"quorum-state: {values}"


def _two_leaders(by: int, epoch: int) -> Change:
    """Two nodes remember two leaders of one epoch."""

    def change(site: Site, broker: str) -> str:
        other = _other(site, broker, by)
        newest = max(one.epoch for each in site.brokers for one in site.batches(each, _METADATA))
        for name in (broker, other):
            leader = int(_node(site, name))
            _quorum_state(site, name, leaderId=leader, leaderEpoch=newest + epoch)
        return f"{broker} and {other} in epoch {newest + epoch}"

    return change


def _no_segments(site: Site, broker: str) -> str:
    """The folder of the metadata log is there, and nothing is in it but quorum-state."""
    for path in site.log(broker, _METADATA).parent.iterdir():
        if path.name != "quorum-state":
            path.unlink()
    return "quorum-state alone"


def _renamed(topic: str, suffix: str) -> Change:
    def change(site: Site, broker: str) -> str:
        folder = site.log(broker, topic or None).parent
        folder.rename(folder.with_name(f"{folder.name}.{'0' * 32}-{suffix}"))
        return f"{folder.name} renamed to -{suffix}"

    return change


def _claim(epoch: int) -> Change:
    """A line of another broker's server log, which says that it led, as this broker's own."""

    def change(site: Site, broker: str) -> str:
        for other in site.brokers:
            if other == broker:
                continue
            for line in (site.root / other / "server.log").read_text("utf-8").splitlines():
                if f"Leader {site.topic}-0 " in line and f"starts at leader epoch {epoch} " in line:
                    own = re.sub(r"Broker id=\d+", f"Broker id={_node(site, broker)}", line)
                    with (site.root / broker / "server.log").open("a", encoding="utf-8") as file:
                        file.write(own + "\n")
                    return f"it led in epoch {epoch}"
        raise LookupError(f"nobody else led {site.topic}-0 in epoch {epoch}")

    return change


def _not_leader_of(epoch: int) -> Callable[[Site, str], str]:
    """A broker that did not lead in that epoch."""

    def at(site: Site, broker: str) -> str:
        word = f"Leader {site.topic}-0 .*starts at leader epoch {epoch} "
        order = (broker, *site.brokers)
        return next(
            one
            for one in order
            if not re.search(word, (site.root / one / "server.log").read_text("utf-8"))
        )

    return at


def _emptied(*files: str) -> Change:
    """Nothing in a broker's folder but these files."""

    def change(site: Site, broker: str) -> str:
        shutil.rmtree(site.data(broker))
        site.data(broker).mkdir()
        for name in files:
            path = site.data(broker) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("", "utf-8")
        return ", ".join(files) or "nothing"

    return change


# --- the faults --------------------------------------------------------------------------------


def _of_one_folder() -> Iterator[tuple[str, Fault]]:
    yield from _faults("segment-is-named-for-its-first-record", "head-gone before-segment", {
        "first-batch-removed": _head_removed(0.0),
        "first-third-removed": _head_removed(0.34),
        "all-but-the-last-removed": _head_removed(0.98),
    })  # fmt: skip
    yield from _faults(
        "offset-index", "index-position index-offset index-order index-beyond-end index-size", {
        "index-between-batches": _index(lambda b, _size: (b[9].last, b[8].position + 7)),
        "index-of-another-batch": _index(lambda b, _size: (b[3].last, b[8].position)),
        "index-beyond-segment": _index(lambda b, size: (b[-1].last, size + 400)),
    })  # fmt: skip
    yield from _faults(
        "time-index", "timeindex-timestamp timeindex-order timeindex-beyond-end index-size", {
        "time-of-no-batch": _times(lambda time, last: [(time - 1000, last)]),
        "times-out-of-order": _times(lambda time, _last: [(time, 5), (time - 1, 3)]),
        "time-beyond-log": _times(lambda time, last: [(time, last + 40)]),
    })  # fmt: skip
    yield from _faults("transaction-index", "txnindex index-size", {
        "abort-without-marker": _abort(0, 7, 3, 9),
        "abort-that-ends-before-it-begins": _abort(0, 7, 9, 3),
        "abort-of-no-producer": _abort(0, -1, 3, 9),
    })  # fmt: skip
    yield from _faults("index-has-a-segment", "orphan-index", {
        f"orphan-{kind}": _bytes(f"{55:020}.{kind}", lambda _site, _broker: b"")
        for kind in ("index", "timeindex", "txnindex")
    }, at=_clean)  # fmt: skip
    yield from _faults("epochs-of-the-log", "EpochCacheMatchesLog no-epoch-checkpoint", {
        "epoch-checkpoint-removed": _removed("leader-epoch-checkpoint", "orders"),
        "epoch-checkpoint-emptied": _written("leader-epoch-checkpoint", "", "orders"),
        "epoch-checkpoint-without-entries": _written("leader-epoch-checkpoint", "0\n0\n", "orders"),
    })  # fmt: skip
    yield from _faults("high-watermark-in-log", "HighWatermarkWithinLog", {
        "high-watermark-by-one": _beyond(REPLICATION, 1),
        "high-watermark-far": _beyond(REPLICATION, 1 << 40),
        "high-watermark-of-offsets": _beyond(REPLICATION, 3, _OFFSETS),
    }, at=_clean)  # fmt: skip
    yield from _faults(
        "high-watermark-is-written", "no-high-watermark high-watermark-below-start", {
        "high-watermark-removed": _at(REPLICATION, None),
        "high-watermarks-removed": _written(REPLICATION, "0\n0\n"),
        "high-watermark-below-start": lambda site, broker: (
            _checkpointed(site, broker, _LOG_START, site.topic, 30)
            + _checkpointed(site, broker, REPLICATION, site.topic, 12)
        ),
    }, at=_clean)  # fmt: skip
    for suffix, at, proved in (("", _clean, True), ("-killed", _killed, False)):
        yield from _faults("recovery-point-in-log", "recovery-point-beyond-end", {
            f"recovery-point-by-one{suffix}": _beyond(_RECOVERY, 1),
            f"recovery-point-far{suffix}": _beyond(_RECOVERY, 1 << 40),
            f"recovery-point-of-offsets{suffix}": _beyond(_RECOVERY, 3, _OFFSETS),
        }, at=at, proved=proved)  # fmt: skip
        yield from _faults("cleaned-in-log", "cleaned-beyond-end", {
            f"cleaned-by-one{suffix}": _beyond(_CLEANER, 1, _OFFSETS),
            f"cleaned-far{suffix}": _beyond(_CLEANER, 1 << 40, _OFFSETS),
            f"cleaned-of-orders{suffix}": _beyond(_CLEANER, 7),
        }, at=at, proved=proved)  # fmt: skip
        yield from _faults("log-start-in-log", "log-start-beyond-end", {
            f"log-start-by-one{suffix}": _beyond(_LOG_START, 1),
            f"log-start-far{suffix}": _beyond(_LOG_START, 1 << 40),
            f"log-start-of-offsets{suffix}": _beyond(_LOG_START, 3, _OFFSETS),
        }, at=at)  # fmt: skip
        yield from _faults("snapshot-in-log", "snapshot-beyond-end", {
            f"snapshots-later{suffix}": _snapshots_moved(lambda offset: offset + 25),
            f"snapshot-by-one{suffix}": _snapshot(71, 1, 3),
            f"snapshot-far{suffix}": _snapshot(1 << 40, 1, 3),
        }, at=at, proved=proved)  # fmt: skip
    yield from _faults("clean-stop-flushes", "recovery-point-behind", {
        "recovery-point-of-0": _at(_RECOVERY, 0),
        "recovery-point-of-before": _at(_RECOVERY, 33),
        "recovery-point-of-the-last": _beyond(_RECOVERY, -1),
    }, at=_clean)  # fmt: skip
    yield from _faults("log-start-has-a-segment", "head-gone", {
        f"first-segments-removed-{start}": _first_segments_removed(start, checkpointed)
        for start, checkpointed in ((5, 1), (12, 11), (45, 20))
    }, at=_clean)  # fmt: skip
    yield from _faults("clean-stop-takes-a-snapshot", "snapshot-behind", {
        "snapshots-removed": _snapshots_moved(lambda _offset: None),
        "snapshots-of-before": _snapshots_moved(lambda offset: offset // 2),
        "snapshot-of-the-last-batch": _snapshots_moved(lambda offset: offset - 1),
    }, at=_clean)  # fmt: skip
    yield from _faults("snapshot-of-this-log", "snapshot-contents", {
        "snapshot-of-a-strange-producer": _snapshot(None, 77, 12),
        "snapshot-of-the-first-record": _snapshot(None, 1000, 0),
        "snapshot-of-before-its-records": _snapshot(5, 3, 40),
    })  # fmt: skip
    yield from _faults("two-logs", "two-logs", {
        f"two-logs-of-{partition}": partial(
            _second_directory, partition=partition, move=False, directory_id=_STRANGE
        )
        for partition in ("orders-0", "__consumer_offsets-0", "__cluster_metadata-0")
    })  # fmt: skip
    yield from _faults("one-identity", "identity-differs", {
        "second-directory-of-another-node": partial(_second_directory, node_id="9"),
        "second-directory-of-another-cluster": partial(_second_directory, cluster_id=_STRANGE),
        "partition-of-another-node": partial(
            _second_directory, partition="orders-0", node_id="9", directory_id=_STRANGE
        ),
    }, proved=False)  # fmt: skip
    yield from _faults("one-identity", "same-directory", {
        "second-directory-cloned": _second_directory,
        "second-directory-cloned-with-orders": partial(_second_directory, partition="orders-0"),
        "second-directory-cloned-with-offsets": partial(
            _second_directory, partition="__consumer_offsets-0"
        ),
    })  # fmt: skip
    yield from _faults("has-an-identity", "no-meta-properties", {
        "meta-removed": _removed("meta.properties"),
        "meta-emptied": _written("meta.properties", ""),
        "meta-of-comments": _written("meta.properties", "# was node 2\n"),
    }, proved=False)  # fmt: skip
    yield from _faults("vote-is-remembered", "quorum-state-behind", {
        "quorum-state-removed": _removed("quorum-state", _METADATA),
        "quorum-state-of-epoch-0": partial(_quorum_state, leaderEpoch=0),
        "quorum-state-without-epoch": _written("quorum-state", "{}", _METADATA),
    }, at=_clean)  # fmt: skip
    yield from _faults("snapshot-before-log", "no-metadata-snapshot", {
        f"metadata-from-{start}": _begins_later(start, _METADATA) for start in (5, 30, 60)
    })  # fmt: skip


def _of_several_folders() -> Iterator[tuple[str, Fault]]:
    yield from _faults("same-records", "contents-differ", {
        f"other-record-{number}": partial(_other_record, number=number) for number in (0, 31, 60)
    })  # fmt: skip
    yield from _faults("same-records", "without-epoch", {
        "batch-of-magic-1": _batch_header(0, b"", legacy=True),
        "last-batch-of-magic-1": _batch_header(0, b"", legacy=True, number=-1),
        "batch-without-epoch": _batch_header(12, b"\xff\xff\xff\xff"),
    })  # fmt: skip
    yield from _faults("reaches-what-its-log-says", "older-than-its-log", {
        f"older-copy-of-{end}": _older(end) for end in (10, 25, 39)
    }, at=_once_leader)  # fmt: skip
    yield from _faults("reaches-what-its-log-says", "older-than-its-log", {
        f"older-copy-of-{end}-killed": _older(end, clean=False) for end in (10, 25, 39)
    }, at=_once_leader, proved=False)  # fmt: skip
    yield from _faults("reaches-what-the-controller-says", "older-than-the-controller", {
        f"older-copy-of-{end}-without-logs": _older(end, logs=False) for end in (10, 25, 39)
    }, at=_led_last, proved=False)  # fmt: skip
    yield from _faults("knows-its-registration", "older-than-its-registration", {
        f"metadata-{before}-before-registration": _older_metadata(before) for before in (0, 1, 5)
    }, at=_registered_last, proved=False)  # fmt: skip
    yield from _faults("mark-of-the-last-run", "foreign-marker", {
        f"mark-of-epoch-{epoch}": _written(_MARK, f'{{"version":0,"brokerEpoch":{epoch}}}')
        for epoch in (1, 7, 12)
    }, at=_registered_last)  # fmt: skip
    yield from _faults("one-cluster", "other-cluster", {
        "cluster-id-strange": _meta(cluster_id=_STRANGE),
        "cluster-id-short": _meta(cluster_id="test"),
        "cluster-id-and-node-strange": _meta(cluster_id=_STRANGE, node_id="7"),
    })  # fmt: skip
    yield from _faults("one-node", "same-node-id", {
        "node-id-of-the-next": lambda site, broker: _meta(
            node_id=_node(site, _other(site, broker)), directory_id=None
        )(site, broker),
        "node-id-of-the-one-before": lambda site, broker: _meta(
            node_id=_node(site, _other(site, broker, 2)), directory_id=None
        )(site, broker),
        "broker-id-of-the-next": lambda site, broker: _meta(
            node_id=None, broker_id=_node(site, _other(site, broker)), directory_id=None
        )(site, broker),
    }, proved=False)  # fmt: skip
    yield from _faults("directory-is-registered", "other-node unknown-directory", {
        "node-id-of-another": lambda site, broker: _meta(
            node_id=_node(site, _other(site, broker))
        )(site, broker),
        "directory-id-strange": _meta(directory_id=_STRANGE),
        "node-id-that-never-registered": _meta(node_id="77", directory_id=_STRANGE),
    })  # fmt: skip
    yield from _faults("log-is-where-it-is-assigned", "other-directory", {
        f"moved-{partition}": partial(
            _second_directory, partition=partition, directory_id=_STRANGE
        )
        for partition in ("orders-0", "__consumer_offsets-0")
    } | {
        "moved-orders-0-under-another-id": partial(
            _second_directory, partition="orders-0", directory_id=_STRANGE[::-1]
        ),
    }, proved=False)  # fmt: skip
    yield from _faults("replicas-have-folders", "missing-log", {
        "folder-being-deleted": _renamed("", "delete"),
        "folder-set-aside": _renamed("", "stray"),
        "folder-of-offsets-removed": _removed("", _OFFSETS),
    })  # fmt: skip
    yield from _faults("topic-id", "other-topic no-topic-id", {
        "topic-id-removed": _removed("partition.metadata", "orders"),
        "topic-id-emptied": _written("partition.metadata", "version: 0\n", "orders"),
        "topic-id-strange": _written(
            "partition.metadata", f"version: 0\ntopic_id: {_STRANGE}\n", "orders"
        ),
    })  # fmt: skip
    yield from _faults("metadata-log-everywhere", "no-metadata-log", {
        "metadata-log-removed": _removed("", _METADATA),
        "metadata-log-set-aside": _renamed(_METADATA, "stray"),
    }, proved=False)  # fmt: skip
    yield from _faults("metadata-log-everywhere", "no-metadata-log", {
        "metadata-log-emptied": _no_segments,
    })  # fmt: skip
    yield from _faults("metadata-agrees", "metadata-differs", {
        "metadata-of-offsets": _metadata_record(b"__consumer_offsets"),
        "metadata-of-a-setting": _metadata_record(b"min.insync.replicas"),
    })  # fmt: skip
    yield from _faults("one-quorum-leader", "two-quorum-leaders", {
        "two-leaders-of-the-next-epoch": _two_leaders(1, 1),
        "two-other-leaders-of-the-next-epoch": _two_leaders(2, 1),
        "two-leaders-of-a-later-epoch": _two_leaders(1, 9),
    })  # fmt: skip
    for epoch in (0, 1, 2):
        yield from _faults("one-leader", "OneLeaderPerEpoch", {
            f"second-leader-of-epoch-{epoch}": _claim(epoch),
        }, at=_not_leader_of(epoch))  # fmt: skip
    yield from _faults("holds-something", "empty-folder", {
        "folder-emptied": _emptied(),
        "folder-with-a-lock": _emptied(".lock"),
        "folder-with-other-files": _emptied("lost+found/x", "readme"),
    }, proved=False)  # fmt: skip
