"""Reads data directories with `conformance.inspect` and with kafka-dump-log, and prints the ratios.

Segments are written first, of batches of one size, with `.index` entries every 4,096 bytes as
brokers make them, and removed at the end. Both readers then read the same files from the page
cache, each in a process of its own, kafka-dump-log in one JVM for all files; both must find the
same batches. Times are of the processor (all threads, all processes that were started), since wall
clocks depend on the machine's load; what a process costs that reads next to nothing is stated apart
and taken off; of ours the cheapest of three runs counts. kafka-dump-log verifies checksums, so the
ratio without them is not like with like, but what one gets. Further: memory by the amount of data,
time by the number of partitions, and with --big the whole of `kconform inspect` (reading, judging,
tables, page) over so many gigabytes, read from the disk, in one process and on Spark.
Run: python benchmarks/inspect_speed.py [--gigabytes N] [--big GB] [--partitions N] [--kafka 3.8.1]
The big case alone: python benchmarks/inspect_speed.py --gigabytes 0 --partitions 0 --big 20
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from crc32c import crc32c

from benchmarks.processes import run
from conformance.inspect import outputs, page
from conformance.inspect.evidence import Evidence
from conformance.inspect.inspection import inspect
from conformance.inspect.reading.inputs import Inputs, brokers_of
from conformance.inspect.reading.reader import read
from conformance.kafka.jars import kafka_jars
from conformance.kafka.maven import Coordinate, maven_jars
from conformance.tla import find_java

HEADER = 61
INCONCLUSIVE = (3,)
"""What kconform inspect ends with: nothing here tells of elections."""
INDEX_INTERVAL = 4096
GIGABYTE = 1_000_000_000
_SEEDED = np.random.default_rng(1)
_BATCH_LINE = re.compile(
    rb"baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (-?\d+) .*position: (\d+) "
    rb".*size: (\d+) .*crc: (\d+) isvalid: (\w+)"
)


def a_batch(size: int, offset: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """A batch of one record of random bytes whose last offset is its first."""
    body = struct.pack(">hiqqqhii", 0, 0, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1, 1)
    body += _SEEDED.bytes(size - HEADER)
    head = struct.pack(">qiibI", offset, len(body) + 9, 0, 2, crc32c(body))
    return np.frombuffer(head + body, np.uint8)


def write_segment(folder: Path, size: int, count: int) -> int:
    """A segment of `count` batches of `size` bytes and its index; the bytes of the segment."""
    folder.mkdir(parents=True)
    path = folder / f"{0:020d}.log"
    templates = np.stack([a_batch(size, 0) for _ in range(16)])
    with path.open("wb") as file:
        for first in range(0, count, 1 << 14):
            offsets = np.arange(first, min(first + (1 << 14), count), dtype=">i8")
            block = templates[offsets % len(templates)]
            block[:, :8] = offsets.view(np.uint8).reshape(-1, 8)
            file.write(block.tobytes())
    every = INDEX_INTERVAL // size + 1
    entries = np.arange(every, count, every, dtype=np.int64)
    index = np.stack((entries, entries * size), axis=1).astype(">i4")
    path.with_suffix(".index").write_bytes(index.tobytes())
    return count * size


def write_broker(root: Path, size: int, total: int, segment: int = 256 << 20) -> list[Path]:
    """Partitions of one segment each, `total` bytes together; the segments."""
    paths = []
    for number in range(max(round(total / segment), 1)):
        folder = root / f"t-{number}"
        write_segment(folder, size, min(segment, total) // size)
        paths.append(folder / f"{0:020d}.log")
    return paths


def write_partitions(root: Path, count: int) -> None:
    """Small partitions with all the files that a broker keeps for one."""
    for number in range(count):
        folder = root / f"topic-{number % 100}-{number // 100}"
        write_segment(folder, 300, 20)
        (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
        (folder / f"{0:020d}.timeindex").touch()


@dataclass(frozen=True, slots=True)
class Read:
    """What the reader took, without its imports: processor seconds, and the most memory held."""

    seconds: float
    megabytes: float


def least(command: Sequence[str], output: Path, times: int = 3) -> Read:
    """The cheapest of some runs of ours: what others do on the machine only ever adds."""
    costs = []
    for _ in range(times):
        shutil.rmtree(output, ignore_errors=True)
        costs.append(Read(*map(float, run(command).output.split())))
    return min(costs, key=lambda reading: reading.seconds)


def our_command(root: Path, output: Path, *, verify: bool) -> list[str]:
    options = ["--child", str(root), str(output)]
    return [sys.executable, __file__, *options, *([] if verify else ["--no-verify"])]


def child(root: Path, output: Path, verify: bool) -> None:
    """Read in this process, and tell seconds and megabytes: what `our_command` runs."""
    inputs, started = Inputs(brokers_of([f"b1={root}"]), verify=verify), time.process_time()
    read(inputs, output, ())
    print(time.process_time() - started, peak())


def alone(root: Path, output: Path) -> int:
    """Read and judge in this process, as kconform inspect does: what `alone_command` runs."""
    inspection = inspect(read(Inputs(brokers_of([f"b1={root}"])), output / "evidence", ()), output)
    outputs.write(inspection, output)
    (output / "index.html").write_text(page.dumps(inspection), encoding="utf-8")
    return inspection.verdict.exit_code


def peak() -> float:
    """The most megabytes that this process held; `ru_maxrss` would count who started it as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def tool_jars(version: str) -> str:
    """The class path of kafka-dump-log: the broker's, and an interface that the tools have."""
    coordinate = Coordinate("org.apache.kafka", "kafka-tools-api", version)
    return f"{kafka_jars(version)}{os.pathsep}" + os.pathsep.join(
        map(str, maven_jars(f"kafka-tools-api-{version}", [coordinate]))
    )


def dump_log(jars: str, paths: Sequence[Path]) -> list[str]:
    java, _ = find_java(os.environ)
    files = ",".join(map(str, paths))
    return [str(java), "-cp", jars, "kafka.tools.DumpLogSegments", "--files", files]


def dumped(output: Path) -> Iterator[tuple[int, ...]]:
    """File number, first and last offset, epoch, position, size, checksum and whether it holds."""
    number = -1
    with output.open("rb") as lines:
        for line in lines:
            number += line.startswith(b"Dumping ")
            match = _BATCH_LINE.match(line)
            if match:
                yield (number, *map(int, match.groups()[:6]), int(match[7] == b"true"))


def read_batches(evidence: Evidence, paths: Sequence[Path], root: Path) -> set[tuple[int, ...]]:
    numbers = {str(path.relative_to(root)): number for number, path in enumerate(paths)}
    columns = [
        "segment", "base_offset", "last_offset", "leader_epoch", "position", "size", "stored_crc",
        "crc_ok",
    ]  # fmt: skip
    result: set[tuple[int, ...]] = set()
    for batch in evidence.dataset("batches").to_batches(columns=columns):
        segment, *values, good = (column.to_pylist() for column in batch.columns)
        named = [numbers[name] for name in segment]
        result.update(zip(named, *values, map(int, good), strict=True))
    return result


def compare(work: Path, jars: str, size: int, total: int, start: float) -> None:
    """Both readers over the same files; their batches must be the same."""
    root = work / f"b{size}"
    paths = write_broker(root, size, total)
    for path in paths:
        path.read_bytes()  # into the page cache
    bare = least(our_command(root, work / "bare", verify=False), work / "bare").seconds
    full = least(our_command(root, work / "full", verify=True), work / "full").seconds
    report = run(dump_log(jars, paths), work / "dumped").processor - start
    theirs = set(dumped(work / "dumped"))
    ours = read_batches(Evidence.open(work / "full"), paths, root)
    if ours != theirs:
        sys.exit(f"{len(ours ^ theirs)} batches differ: {sorted(ours ^ theirs)[:3]}")
    gigabytes = sum(path.stat().st_size for path in paths) / GIGABYTE
    print(f"batches of {size:,} bytes: {gigabytes:.2f} GB, {len(ours):,} batches, the same by both")
    print(f"  kafka-dump-log, one JVM      {report:7.2f} s")
    for name, seconds in (("without checksums", bare), ("with checksums", full)):
        print(f"  kconform, {name:18} {seconds:7.2f} s  {report / seconds:6.1f} times as fast")
    for folder in (root, work / "bare", work / "full"):
        shutil.rmtree(folder)
    (work / "dumped").unlink()


def memory(work: Path, sizes: Sequence[int]) -> None:
    """The most memory held, by the amount of data."""
    print("memory of the reader (batches of 1,024 bytes, one process, checksums verified):")
    for total in sizes:
        root, output = work / "memory", work / "memory-out"
        paths = write_broker(root, 1024, total)
        cached = least(our_command(root, output, verify=True), output, times=1).megabytes
        from_the_disk(paths)
        streamed = least(our_command(root, output, verify=True), output, times=1).megabytes
        text = f"{streamed:6.0f} MB from the disk, {cached:6.0f} MB mapped from the page cache"
        print(f"  {total / GIGABYTE:5.2f} GB  {text}")
        shutil.rmtree(root)
        shutil.rmtree(output)


def partitions(work: Path, counts: Sequence[int]) -> None:
    """Time by the number of small partitions."""
    print("small partitions, 5 files each:")
    for count in counts:
        root, output = work / "partitions", work / "partitions-out"
        write_partitions(root, count)
        cost = least(our_command(root, output, verify=True), output, times=1)
        rate = 1000 * cost.seconds / count
        print(f"  {count:6,}  {cost.seconds:6.2f} s  {rate:.3f} ms each  {cost.megabytes:5.0f} MB")
        shutil.rmtree(root)
        shutil.rmtree(output)


def big(work: Path, jars: str, total: int, start: float) -> None:
    """The whole command over more than a process should hold, beside kafka-dump-log."""
    root, small = work / "big", work / "start"
    paths = write_broker(root, 16384, total, 1 << 30)
    write_broker(small, 1024, 40_960, 10_240)
    print(f"{total / GIGABYTE:.1f} GB of batches of 16,384 bytes: the whole of kconform inspect")
    from_the_disk(paths)
    dump = run(dump_log(jars, paths), work / "dumped")
    theirs = dump.processor - start
    print(f"  kafka-dump-log    {dump.wall:6.1f} s wall, {theirs:6.1f} s of processor time")
    for name, command in (("in one process", alone_command), ("on Spark", whole_command)):
        for folder in (work / "start-out", work / "big-out"):
            shutil.rmtree(folder, ignore_errors=True)
        own = run(command(small, work / "start-out"), codes=INCONCLUSIVE).processor
        from_the_disk(paths)
        cost = run(command(root, work / "big-out"), codes=INCONCLUSIVE)
        ours = cost.processor - own
        print(
            f"  {name:17} {cost.wall:6.1f} s wall, {ours:6.1f} s, {theirs / ours:.1f} times as "
            f"fast (its start, taken off: {own:.1f} s)",
            flush=True,
        )
    evidence = Evidence.open(work / "big-out" / "evidence")
    bad = evidence.dataset("batches").count_rows(filter=~pc.field("crc_ok"))
    lines, batches = sum(1 for _ in dumped(work / "dumped")), evidence.manifest["rows"]["batches"]
    if lines != batches or bad:
        sys.exit(f"{lines} batches by kafka-dump-log, {batches} by kconform, {bad} bad checksums")
    print(f"  {batches:,} batches by both")


def from_the_disk(paths: Sequence[Path]) -> None:
    """Drop the files from the page cache."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def whole_command(root: Path, output: Path) -> list[str]:
    """Reading, judging, tables and page, on Spark however little there is."""
    options = ["--master", "local[*]", "-o", str(output)]
    return [sys.executable, "-m", "conformance.cli", "inspect", f"b1={root}", *options]


def alone_command(root: Path, output: Path) -> list[str]:
    """The same in one process, however much there is."""
    return [sys.executable, __file__, "--child", str(root), str(output), "--whole"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--big", type=float, default=0.0)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--kafka", default="3.8.1", help="its jars must have kafka-dump-log (3.x)")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--whole", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-verify", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help="where the files are written; default: TMPDIR")
    options = parser.parse_args()
    if options.child:
        root, output = options.child
        if options.whole:
            sys.exit(alone(root, output))
        child(root, output, not options.no_verify)
        return
    jars, total = tool_jars(options.kafka), int(options.gigabytes * GIGABYTE)
    with tempfile.TemporaryDirectory(prefix="inspect-speed-", dir=options.work) as name:
        work = Path(name)
        start = dump_start(work, jars)
        print(f"start of kafka-dump-log, taken off: {start:.2f} s")
        if options.gigabytes:
            compare(work, jars, 16384, total, start)
            compare(work, jars, 1024, total, start)
            memory(work, [total // 2, total, 2 * total])
        if options.partitions:
            count = options.partitions
            partitions(work, [count // 10, count // 3, count])
        if options.big:
            big(work, jars, int(options.big * GIGABYTE), start)


def dump_start(work: Path, jars: str) -> float:
    """What kafka-dump-log takes to read next to nothing."""
    return run(dump_log(jars, write_broker(work / "small", 1024, 10_240, 10_240))).processor


if __name__ == "__main__":
    main()
