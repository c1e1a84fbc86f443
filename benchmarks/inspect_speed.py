"""Reads data directories with `conformance.inspect` and with kafka-dump-log, and prints the ratios.

Segments are written first, of batches of one size, with `.index` entries every 4,096 bytes as
brokers make them, and removed at the end. Both readers then read the same files from the page
cache, each in a process of its own, kafka-dump-log in one JVM for all files; both must find the
same batches. Times are of the processor (all threads, children included), since wall clocks depend
on the machine's load; what a process costs that reads next to nothing is stated apart and taken
off; of ours the cheapest of three runs counts. kafka-dump-log verifies checksums, so the ratio
without them is not like with like, but what one gets. Further: memory by the amount of data, time
by the number of partitions, and more data than fits in memory (--big).
Run: python benchmarks/inspect_speed.py [--gigabytes N] [--big GB] [--partitions N] [--kafka 3.8.1]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
from crc32c import crc32c

from conformance.inspect.evidence import Evidence
from conformance.inspect.reading.inputs import Inputs, brokers_of
from conformance.inspect.reading.reader import read
from conformance.kafka.jars import kafka_jars
from conformance.kafka.maven import Coordinate, maven_jars
from conformance.tla import find_java

HEADER = 61
INDEX_INTERVAL = 4096
GIGABYTE = 1_000_000_000
_SEEDED = np.random.default_rng(1)
_BATCH_LINE = re.compile(
    rb"baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (-?\d+) .*position: (\d+) "
    rb".*size: (\d+) .*crc: (\d+) isvalid: (\w+)"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took, in seconds, and the most memory that it held, in megabytes."""

    processor: float
    wall: float
    megabytes: float
    reading: float = 0.0
    """Of our own: the seconds within the reader, its imports left out."""

    def without(self, start: Cost) -> float:
        """Seconds of the processor beyond the start of such a process."""
        return max(self.processor - start.processor, 0.001)


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


def measured(command: Sequence[str], output: Path | None = None) -> Cost:
    """Run a process to its end."""
    started = time.perf_counter()
    with (output or Path(os.devnull)).open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} ended with {process.returncode}: {said.decode()[-2000:]}")
    wall = time.perf_counter() - started
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def least(command: Sequence[str], output: Path, times: int = 3) -> Cost:
    """The cheapest of some runs of ours: what others do on the machine only ever adds."""
    costs = []
    for _ in range(times):
        shutil.rmtree(output, ignore_errors=True)
        cost = measured(command, output.with_suffix(".cpu"))
        costs.append(replace(cost, reading=float(output.with_suffix(".cpu").read_text())))
    return min(costs, key=lambda cost: cost.reading or cost.processor)


def our_command(root: Path, output: Path, *, verify: bool, spark: bool = False) -> list[str]:
    options = ["--child", str(root), str(output)]
    options += [] if verify else ["--no-verify"]
    options += ["--spark"] if spark else []
    return [sys.executable, __file__, *options]


def child(root: Path, output: Path, verify: bool, spark: bool) -> None:
    """Read in this process, and tell the processor's seconds: what `our_command` runs."""
    inputs, started = Inputs(brokers_of([f"b1={root}"]), verify=verify), time.process_time()
    read(inputs, output, (), spark=spark)
    if spark:
        end_jvm()
    print(time.process_time() - started)


def end_jvm() -> None:
    """End Spark's JVM and wait for it, or its processor time would count for nobody."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(120)


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
    found: set[tuple[int, ...]] = set()
    for batch in evidence.dataset("batches").to_batches(columns=columns):
        segment, *values, good = (column.to_pylist() for column in batch.columns)
        named = [numbers[name] for name in segment]
        found.update(zip(named, *values, map(int, good), strict=True))
    return found


@dataclass(frozen=True, slots=True)
class Starts:
    """What each reader costs that reads next to nothing."""

    ours: Cost
    dump: Cost


def starts(work: Path, jars: str) -> Starts:
    root = work / "small"
    paths = write_broker(root, 1024, 10_240, 10_240)
    output = work / "small-out"
    ours = least(our_command(root, output, verify=True), output)
    return Starts(ours, measured(dump_log(jars, paths)))


def compare(work: Path, jars: str, size: int, total: int, start: Starts) -> None:
    """Both readers over the same files; their batches must be the same."""
    root = work / f"b{size}"
    paths = write_broker(root, size, total)
    for path in paths:
        path.read_bytes()  # into the page cache
    bare = least(our_command(root, work / "bare", verify=False), work / "bare")
    full = least(our_command(root, work / "full", verify=True), work / "full")
    dump = measured(dump_log(jars, paths), work / "dumped")
    theirs = set(dumped(work / "dumped"))
    ours = read_batches(Evidence.open(work / "full"), paths, root)
    if ours != theirs:
        sys.exit(f"{len(ours ^ theirs)} batches differ: {sorted(ours ^ theirs)[:3]}")
    gigabytes = sum(path.stat().st_size for path in paths) / GIGABYTE
    told = dump.without(start.dump)
    print(f"batches of {size:,} bytes: {gigabytes:.2f} GB, {len(ours):,} batches, the same by both")
    print(f"  kafka-dump-log, one JVM      {told:7.2f} s")
    for name, cost in (("without checksums", bare), ("with checksums", full)):
        seconds = cost.reading
        print(f"  kconform, {name:18} {seconds:7.2f} s  {told / seconds:6.1f} times as fast")
    for folder in (root, work / "bare", work / "full"):
        shutil.rmtree(folder)
    (work / "dumped").unlink()


def memory(work: Path, sizes: Sequence[int]) -> None:
    """The most memory held, by the amount of data."""
    print("memory of the reader (batches of 1,024 bytes, one process):")
    for total in sizes:
        root, output = work / "memory", work / "memory-out"
        write_broker(root, 1024, total)
        cost = measured(our_command(root, output, verify=False))
        print(f"  {total / GIGABYTE:5.2f} GB  {cost.megabytes:6.0f} MB")
        shutil.rmtree(root)
        shutil.rmtree(output)


def partitions(work: Path, counts: Sequence[int]) -> None:
    """Time by the number of small partitions."""
    print("small partitions, 5 files each:")
    for count in counts:
        root, output = work / "partitions", work / "partitions-out"
        write_partitions(root, count)
        cost = least(our_command(root, output, verify=True), output, times=1)
        seconds = cost.reading
        rate = 1000 * seconds / count
        print(f"  {count:6,}  {seconds:6.2f} s  {rate:.3f} ms each  {cost.megabytes:5.0f} MB")
        shutil.rmtree(root)
        shutil.rmtree(output)


def big(work: Path, jars: str, total: int) -> None:
    """More than fits in memory, with Spark as the command does it."""
    root, output = work / "big", work / "big-out"
    paths = write_broker(root, 16384, total, 1 << 30)
    small = work / "spark-small"
    write_broker(small, 1024, 10_240, 10_240)
    print(f"{total / GIGABYTE:.0f} GB of batches of 16,384 bytes, more than the page cache holds:")
    shown("Spark's start", measured(our_command(small, work / "s-out", verify=True, spark=True)))
    shown("kconform, Spark", measured(our_command(root, output, verify=True, spark=True)))
    shown("kafka-dump-log", measured(dump_log(jars, paths), work / "dumped"))
    found = Evidence.open(output)
    bad = found.dataset("batches").count_rows(filter=~pc.field("crc_ok"))
    lines, batches = sum(1 for _ in dumped(work / "dumped")), found.manifest["rows"]["batches"]
    if lines != batches or bad:
        sys.exit(f"{lines} batches by kafka-dump-log, {batches} by kconform, {bad} bad checksums")
    print(f"  {batches:,} batches by both")
    shutil.rmtree(root)


def shown(name: str, cost: Cost) -> None:
    """Print what a process of the big case took."""
    print(f"  {name:18} {cost.wall:7.1f} s wall  {cost.processor:7.1f} s processor")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--big", type=float, default=0.0)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--kafka", default="3.8.1", help="its jars must have kafka-dump-log (3.x)")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--no-verify", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--spark", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, verify=not options.no_verify, spark=options.spark)
        return
    jars, total = tool_jars(options.kafka), int(options.gigabytes * GIGABYTE)
    with tempfile.TemporaryDirectory(prefix="inspect-speed-") as name:
        work = Path(name)
        start = starts(work, jars)
        print(
            f"start, taken off: kconform {start.ours.processor - start.ours.reading:.2f} s, "
            f"kafka-dump-log {start.dump.processor:.2f} s"
        )
        if options.gigabytes:
            compare(work, jars, 16384, total, start)
            compare(work, jars, 1024, total, start)
            memory(work, [total // 2, total, 2 * total])
        if options.partitions:
            count = options.partitions
            partitions(work, [count // 10, count // 3, count])
        if options.big:
            big(work, jars, int(options.big * GIGABYTE))


if __name__ == "__main__":
    main()
