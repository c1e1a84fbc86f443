"""Judges synthetic histories of growing size with `kconform history`; prints ratios.

Producers send one record an operation to partitions in turn, consumers poll and commit every
hundredth poll, invocations are not logged. Processor time is that of the command and of all
processes that it starts, without writing the history; memory is the largest process's.
One lie of each of some kinds is planted, and the command must find those and no others.
Run: python -m benchmarks.history_speed [--operations 1000000,10000000] [--master local[2]]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import run

PARTITIONS, CONSUMERS, PRODUCERS = 16, 8, 8
LIES = {
    "AcknowledgedIsKept": 7,
    "OneRecordPerOffset": 5,
    "IdempotentIsWrittenOnce": 5,
    "PollsGoForward": 1,
}
"""How often each rule is broken by what is planted."""


def lines(operations: int) -> Iterator[str]:
    """A history in which nothing is wrong: half sends, half polls, some of which commit."""
    ends = [0] * PARTITIONS
    clock = 0
    for number in range(operations // 2):
        partition = number % PARTITIONS
        offset = ends[partition]
        ends[partition] += 1
        clock += 1_000
        key = f"orders-{partition}"
        record = f'{{"key":"{key}","offset":{offset},"value":"v{number}"}}'
        yield (
            f'{{"process":"p{number % PRODUCERS}","type":"ok","f":"send","start":{clock - 500},'
            f'"time":{clock},"sent":[{record}]}}\n'
        )
        committed = f',"committed":[{{"key":"{key}","offset":{offset + 1}}}]' * (number % 100 == 0)
        yield (
            f'{{"process":"c{partition % CONSUMERS}","type":"ok","f":"poll","start":{clock},'
            f'"time":{clock + 400},"polled":[{record}]{committed}}}\n'
        )


def write(path: Path, operations: int) -> None:
    """The history with its lies: what is left out is lost, what is changed is another record."""
    half = operations // 2
    with path.open("w", encoding="utf-8") as file:
        for place, line in enumerate(lines(operations)):
            number, is_poll = divmod(place, 2)
            if is_poll and number % (half // 7) == half // 14:
                continue  # nobody reads it
            file.write(line)
        for lie in range(5):
            number = (half // 5) * lie + half // 11
            again = {"key": f"orders-{number % PARTITIONS}", "offset": number // PARTITIONS + 1}
            record = {**again, "value": f"v{number}"}
            file.write(json.dumps(_poll(f"liar{lie}", [record])) + "\n")
        back = {"key": "orders-0", "offset": 1, "value": f"v{PARTITIONS}"}
        file.write(json.dumps(_poll("c0", [back])) + "\n")


def _poll(process: str, records: list[dict[str, object]]) -> dict[str, object]:
    return {"process": process, "type": "ok", "f": "poll", "polled": records}


def main() -> None:
    """Print a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", default="1000000,10000000")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--master")
    options = parser.parse_args()
    print(
        f"{'operations':>12}  {'processor s':>11}  {'us/operation':>12}  {'largest process MB':>18}"
    )
    for operations in map(int, options.operations.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="history-"))
        try:
            path = folder / "history.ndjson"
            write(path, operations)
            command = [sys.executable, "-m", "conformance.cli", "history", str(path)]
            command += ["-o", str(folder / "findings"), "--jobs", str(options.jobs)]
            command += ["--master", options.master] if options.master else []
            measured = run(command, codes=(1,))
            _check(folder / "findings" / "findings.json")
            seconds = measured.processor
            print(
                f"{operations:>12,}  {seconds:>11.1f}  {seconds / operations * 1e6:>12.2f}  "
                f"{measured.megabytes:>18,.0f}"
            )
        finally:
            shutil.rmtree(folder)


def _check(findings: Path) -> None:
    rules = json.loads(findings.read_text("utf-8"))["rules"]
    broken = {name: rule["broken"] for name, rule in rules.items() if rule["broken"]}
    broken.pop("AcknowledgedOffsetIsKept", None)  # the same as OneRecordPerOffset here
    if broken != LIES:
        raise SystemExit(f"planted {LIES}, found {broken}")


if __name__ == "__main__":
    main()
