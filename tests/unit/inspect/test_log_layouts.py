"""Server logs in every layout: the same lines are understood, and the same truncation fails."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.inspect.evidence import Evidence
from conformance.inspect.inspection import Inspection, inspect
from conformance.inspect.reading.inputs import Filters, Inputs, brokers_of
from conformance.inspect.reading.layouts import declared, milliseconds
from conformance.inspect.reading.lines import LineTally, rows
from conformance.inspect.reading.reader import read
from conformance.modelcheck.specifications import Specifications
from conformance.verdict import Verdict
from tests.segment_files import partition_folder, run_of, write_segment

SPECIFICATIONS = Specifications()
TABLE = tomllib.loads(
    resources.files("conformance.inspect.reading").joinpath("log_layouts.toml").read_text("utf-8")
)
PATTERNS = {row["name"]: row["pattern"] for row in TABLE["layout"] if "pattern" in row}
NO_DATE = {"log4j2-default", "ttcc", "slf4j-simple"}


@dataclass(frozen=True)
class Said:
    """What a broker says, before a layout makes lines of it."""

    time: datetime
    level: str
    logger: str
    message: str
    trace: tuple[str, ...] = ()


Render = Callable[[Said], str]
START = datetime(2026, 1, 5, 10, 0, 0, 123000, UTC)


def story(cut: int) -> list[Said]:
    """A follower that truncates to `cut`, in the middle of lines that say nothing to us."""
    lines = [
        ("INFO", "kafka.server.KafkaRaftServer", "[KafkaRaftServer nodeId=2] Kafka Server started"),
        ("WARN", "kafka.server.SharedServer", "Shutdown: nothing of the kind"),
        (
            "INFO",
            "state.change.logger",
            "[Broker id=2] Follower t-0 starts at leader epoch 1 from offset 9 with partition "
            "epoch "
            "1 and high watermark 9. Current leader is 1. Previous leader Some(2) and previous "
            "leader epoch was 0.",
        ),
        (
            "INFO",
            "org.apache.kafka.storage.internals.log.UnifiedLog",
            f"[UnifiedLog partition=t-0, dir=/d] Truncating to offset {cut}",
        ),
        ("ERROR", "kafka.server.ReplicaManager", "Error while processing"),
        ("INFO", "kafka.log.LogCleaner", "[kafka-log-cleaner-thread-0]: Starting"),
    ]
    said = [Said(START + timedelta(seconds=number), *line) for number, line in enumerate(lines)]
    trace = ("java.io.IOException: no space", "\tat kafka.log.Log.append(Log.scala:1)", "")
    said[4] = Said(said[4].time, *lines[4], trace)
    return said


UNDERSTOOD = 2
"""Lines of a story that say something."""


def local(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}"


def iso(time: datetime, digits: int = 3) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond:06}"[: 20 + digits] + "Z"


def by_pattern(pattern: str, time: Callable[[datetime], str] = local) -> Render:
    """What log4j would write, for the conversions of the table."""

    def render(said: Said) -> str:
        parts = {
            "d": time(said.time), "p": said.level, "c": said.logger, "m": said.message,
            "t": "ReplicaFetcherThread-0-1", "x": "", "r": "4711", "pid": "1", "M": "info",
            "n": "",
        }  # fmt: skip

        def conversion(match: re.Match[str]) -> str:
            if match["format"] == "HH:mm:ss.SSS":
                return f"{said.time:%H:%M:%S}.123"
            text = parts[match["name"]]
            width = int(match["width"] or 0)
            return text.ljust(-width) if width < 0 else text.rjust(width)

        regex = r"%(?P<width>-?\d+)?(?P<name>pid|[a-zA-Z])(?:\{(?P<format>[^}]*)\})?"
        return "\n".join((re.sub(regex, conversion, pattern), *said.trace))

    return render


def by_json(form: Callable[[Said], Mapping[str, object]]) -> Render:
    return lambda said: json.dumps({**form(said), "trace": "\n".join(said.trace)})


def wrapped(front: Callable[[Said], str], inner: Render) -> Render:
    """Each line behind what a program puts in front of it."""
    return lambda said: "\n".join(front(said) + line for line in inner(said).split("\n"))


KAFKA = by_pattern(PATTERNS["kafka"])
PLAIN = by_pattern("%d %p %m (%c)")
JSON: dict[str, Render] = {
    "ecs": by_json(lambda s: {"@timestamp": iso(s.time), "ecs.version": "1.2.0",
                   "log.level": s.level, "message": s.message, "process.thread.name": "main",
                   "log.logger": s.logger}),
    "ecs-nested": by_json(lambda s: {"@timestamp": iso(s.time), "message": s.message,
                          "log": {"level": s.level.lower(), "logger": s.logger}}),
    "logstash": by_json(lambda s: {"@version": 1, "@timestamp": iso(s.time), "thread_name": "x",
                        "message": s.message, "level": s.level, "logger_name": s.logger}),
    "log4j2": by_json(lambda s: {"instant": {"epochSecond": int(s.time.timestamp()),
                      "nanoOfSecond": s.time.microsecond * 1000}, "thread": "main",
                      "level": s.level, "loggerName": s.logger, "message": s.message}),
    "log4j2-millis": by_json(lambda s: {"timeMillis": int(s.time.timestamp() * 1000),
                             "level": s.level, "loggerName": s.logger, "message": s.message}),
    "gelf": by_json(lambda s: {"version": "1.1", "host": "h", "short_message": s.message,
                    "timestamp": s.time.timestamp(), "level": 6, "_logger": s.logger}),
    "google": by_json(lambda s: {"timestamp": iso(s.time), "severity": s.level,
                      "message": s.message, "_logger": s.logger}),
    "time-and-logger": by_json(lambda s: {"time": iso(s.time), "level": s.level,
                               "logger": s.logger, "message": s.message}),
}  # fmt: skip
WRAPPERS: dict[str, Render] = {
    "cri": wrapped(lambda s: f"{iso(s.time, 9)} stdout F ", KAFKA),
    "journal": wrapped(lambda s: f"{s.time:%Y-%m-%dT%H:%M:%S}+0000 h kafka[12]: ", PLAIN),
    "timestamps": wrapped(lambda s: f"{iso(s.time, 9)} ", KAFKA),
    "compose": wrapped(lambda _: "kafka-1  | ", KAFKA),
    "pod": wrapped(lambda _: "[pod/kafka-0/kafka] ", PLAIN),
    "syslog": wrapped(lambda s: f"{s.time:%b %e %H:%M:%S} host kafka-server-start.sh[12]: ", KAFKA),
    "syslog-5424": wrapped(lambda s: f"<14>1 {iso(s.time)} host kafka 12 - - ", KAFKA),
    "fluentd": wrapped(lambda s: f"{s.time:%Y-%m-%dT%H:%M:%S+00:00}\tkafka.server\t", JSON["ecs"]),
    "prefix": wrapped(lambda _: "kafka-0 kafka :: ", KAFKA),
}
OTHERS: dict[str, Render] = {
    "iso-zulu": by_pattern("%d %p %m (%c)", iso),
    "iso-offset": by_pattern("[%d] %p [%t] %c: %m", lambda t: f"{iso(t)[:-1]}+0000"),
    "slashes": by_pattern("%d %p %m (%c)", lambda t: local(t).replace("-", "/")),
    "day-first": by_pattern("%d %p %m (%c)", lambda t: f"{t:%d %b %Y %H:%M:%S},123"),
    "no-brackets": PLAIN,
    "no-logger": by_pattern("%d %p %m"),
    "coloured": lambda s: "\x1b[32m" + KAFKA(s).replace("INFO", "\x1b[1mINFO\x1b[0m"),
    "docker": lambda s: "\n".join(
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": iso(s.time, 9)})
        for line in KAFKA(s).split("\n")
    ),
    "docker-without-date": lambda s: "\n".join(
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": iso(s.time, 9)})
        for line in by_pattern(PATTERNS["log4j2-default"])(s).split("\n")
    ),
    "filebeat": lambda s: "\n".join(
        json.dumps({"@timestamp": iso(START), "message": line, "input": {"type": "log"}})
        for line in KAFKA(s).split("\n")
    ),
    "level-guessed": lambda s: "\n".join(
        json.dumps({"timestamp": iso(START), "severity": "INFO", "textPayload": line})
        for line in KAFKA(s).split("\n")
    ),
    "journal-export": lambda s: "\n".join(
        json.dumps({"__REALTIME_TIMESTAMP": str(int(s.time.timestamp() * 1e6)), "MESSAGE": line})
        for line in KAFKA(s).split("\n")
    ),
    "pod-of-docker": wrapped(lambda s: f"[pod/kafka-0/kafka] {iso(s.time, 9)} ", PLAIN),
}
RENDERED: dict[str, Render] = {
    **{name: by_pattern(pattern) for name, pattern in PATTERNS.items()},
    **{f"json {name}": render for name, render in JSON.items()},
    **{f"behind {name}": render for name, render in WRAPPERS.items()},
    **OTHERS,
}


def text_of(render: Render, cut: int = 4) -> bytes:
    return "".join(f"{render(said)}\n" for said in story(cut)).encode()


def tallied(data: bytes, *layouts: str) -> tuple[LineTally, list[Mapping[str, object]]]:
    tally = LineTally()
    chosen = tuple(map(declared, layouts)) or tuple(
        declared(row["name"]) for row in TABLE["layout"]
    )
    return tally, list(rows(data, UTC, Filters(), chosen, tally))


@pytest.mark.parametrize("name", RENDERED)
def test_the_lines_say_the_same_in_every_layout(name: str) -> None:
    tally, found = tallied(text_of(RENDERED[name]))
    assert [row["kind"] for row in found] == ["become-follower", "truncated"]
    assert (found[1]["topic"], found[1]["partition"]) == ("t", 0)
    assert json.loads(str(found[1]["fields"]))["offset"] == 4
    if name not in NO_DATE:
        wanted = [int((START + timedelta(seconds=n)).timestamp() * 1000) for n in (2, 3)]
        assert [row["time"] for row in found] == wanted
    unreadable = 3 if name == "behind prefix" else 0  # nobody knows where it ends without a date
    assert (tally.understood, tally.unreadable) == (UNDERSTOOD, unreadable)
    assert tally.lines == tally.understood + tally.other + unreadable


def test_every_wrapper_and_every_layout_of_the_table_is_among_these() -> None:
    assert set(WRAPPERS) == {row["name"] for row in TABLE["wrapper"]}
    assert {"json", *PATTERNS} == {row["name"] for row in TABLE["layout"]}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_layout_of_the_table_is_recognised_as_itself(name: str) -> None:
    tally, _ = tallied(text_of(RENDERED[name]))
    assert tally.layout == name


# The judgement


def copies(folder: Path) -> None:
    """Two replicas that end at 9; b2 is the follower of the story."""
    for broker in ("b1", "b2"):
        write_segment(partition_folder(folder / broker / "data", "t"), run_of(9))


def inspected(folder: Path, data: bytes, name: str = "server.log", **options: object) -> Inspection:
    copies(folder)
    (folder / "b2" / name).write_bytes(data)
    brokers = brokers_of([f"{b}={folder / b / 'data'}" for b in ("b1", "b2")])
    logs = (str(folder / "b2" / f"{name}*"),)
    evidence: Evidence = read(Inputs(brokers, logs, **options), folder / "out", ())
    return inspect(evidence, specifications=SPECIFICATIONS)


def lost(inspection: Inspection) -> list[str]:
    return [one.title for one in inspection.discoveries if one.kind == "CommittedNeverLost"]


@pytest.mark.parametrize("name", RENDERED)
def test_a_truncation_below_the_high_watermark_fails_in_every_layout(
    tmp_path: Path, name: str
) -> None:
    inspection = inspected(tmp_path / "cut", text_of(RENDERED[name]))
    assert inspection.verdict is Verdict.FAIL
    assert lost(inspection) == ["t-0: committed records 4 to 8 are lost"]
    sound = inspected(tmp_path / "sound", text_of(RENDERED[name], cut=9))
    assert lost(sound) == []


# What is not understood


def gaps(inspection: Inspection) -> dict[str, str]:
    """What could not be judged of server logs, by subject."""
    return {
        gap.subject: f"{gap.what}: {gap.why}"
        for gap in inspection.unjudged
        if "log" in gap.subject and gap.matters and "__cluster_metadata" not in gap.why
    }


UNKNOWN = by_pattern("%t;%c;%m;%d")
NOT_UNDERSTOOD: dict[str, tuple[bytes, str]] = {
    "binary": (bytes(range(256)) * 40, "no line has a layout that is known"),
    "unknown layout": (text_of(UNKNOWN), "line 1 begins 'ReplicaFetcherThread-0-1;kafka"),
    "another archive": (b"BZh91AY&SY" + bytes(range(256)), "other archives are not"),
    "UTF-16": (text_of(KAFKA).decode().encode("utf-16"), "--log-layout"),
    "empty": (b"", "the file is empty"),
    "an empty archive": (gzip.compress(b""), "the file is empty"),
    "a stack trace alone": (b"\tat kafka.log.Log.append(Log.scala:1)\n" * 9, "no line has a"),
    "mostly unreadable": (
        text_of(KAFKA) + text_of(UNKNOWN) * 3,
        "they are unreadable; line 10 begins",
    ),
}


@pytest.mark.parametrize("kind", NOT_UNDERSTOOD)
def test_a_log_that_was_not_understood_is_named_and_no_pass(tmp_path: Path, kind: str) -> None:
    data, words = NOT_UNDERSTOOD[kind]
    inspection = inspected(tmp_path, data)
    assert words in gaps(inspection)[f"b2: {tmp_path / 'b2' / 'server.log'}"]
    assert passes_but_for_server_logs(inspection) is Verdict.INCONCLUSIVE


def passes_but_for_server_logs(inspection: Inspection) -> Verdict:
    """The verdict, had everything else been judged and fine."""
    inspection.discoveries, inspection.any_holds = (), True
    names = gaps(inspection)
    inspection.unjudged = tuple(gap for gap in inspection.unjudged if gap.subject in names)
    return inspection.verdict


def test_a_log_that_was_understood_may_pass(tmp_path: Path) -> None:
    inspection = inspected(tmp_path, text_of(KAFKA, cut=9))
    assert passes_but_for_server_logs(inspection) is Verdict.PASS
    (log,) = inspection.server_logs
    assert log.counts() == "9 lines, 2 understood, 7 other, 0 unreadable"
    (in_json,) = inspection.figures()["server_logs"]
    assert (in_json["layout"], in_json["understood"]) == ("kafka", 2)


def test_a_broker_whose_logs_say_nothing_is_named(tmp_path: Path) -> None:
    """Its layout is known, and none of its wordings: another product, or another level."""
    quiet = [said for said in story(4) if said.logger == "kafka.log.LogCleaner"]
    data = "".join(f"{KAFKA(said)}\n" for said in quiet * 7).encode()
    inspection = inspected(tmp_path, data)
    assert "none of their 7 lines says anything" in gaps(inspection)["the server logs of b2"]
    assert passes_but_for_server_logs(inspection) is Verdict.INCONCLUSIVE


def test_a_quiet_file_beside_one_that_was_understood_is_no_gap(tmp_path: Path) -> None:
    (tmp_path / "b2").mkdir()
    (tmp_path / "b2" / "server.log.1").write_bytes(f"{KAFKA(story(4)[5])}\n".encode())
    assert gaps(inspected(tmp_path, text_of(KAFKA, cut=9))) == {}


def test_a_few_unreadable_lines_are_counted_and_no_gap(tmp_path: Path) -> None:
    warning = b"OpenJDK 64-Bit Server VM warning: option was deprecated\n"
    inspection = inspected(tmp_path, warning + text_of(KAFKA, cut=9))
    assert gaps(inspection) == {}
    (log,) = inspection.server_logs
    assert (log.unreadable, log.first_unreadable) == (1, 1)
    assert log.sample.startswith("OpenJDK")


def test_lines_without_a_date_in_several_files_have_no_order(tmp_path: Path) -> None:
    """server.log.1 is the older one, and sorted behind: its truncation came first."""
    dateless = by_pattern(PATTERNS["log4j2-default"])
    (tmp_path / "b2").mkdir()
    (tmp_path / "b2" / "server.log.1").write_bytes(text_of(dateless))
    inspection = inspected(tmp_path, text_of(dateless, cut=9))
    assert lost(inspection) == []
    assert "4 lines without a date" in gaps(inspection)["the server logs of b2"]
    assert passes_but_for_server_logs(inspection) is Verdict.INCONCLUSIVE


def test_a_log_of_nobody_accuses_nobody(tmp_path: Path) -> None:
    copies(tmp_path)
    (tmp_path / "somewhere.log").write_bytes(text_of(KAFKA))
    brokers = brokers_of([f"{b}={tmp_path / b / 'data'}" for b in ("b1", "b2")])
    inputs = Inputs(brokers, (str(tmp_path / "somewhere.log"),))
    inspection = inspect(read(inputs, tmp_path / "out", ()), specifications=SPECIFICATIONS)
    assert lost(inspection) == []
    assert "NAME=PATTERN" in gaps(inspection)[str(tmp_path / "somewhere.log")]


def test_gzip_is_known_by_its_bytes_and_a_mark_of_utf_8_is_no_text(tmp_path: Path) -> None:
    data = gzip.compress(b"\xef\xbb\xbf" + text_of(KAFKA))
    assert lost(inspected(tmp_path, data, "server.log.2026-01-05")) != []


def test_a_line_that_a_container_runtime_cut_goes_on_in_the_next_one() -> None:
    said = story(4)[3]
    cut = f"{iso(said.time)} stdout P {KAFKA(said)[:90]}\n{iso(said.time)} stdout F {'x' * 9}\n"
    tally, found = tallied(cut.encode() + text_of(WRAPPERS["cri"]))
    assert [row["kind"] for row in found] == ["truncated", "become-follower", "truncated"]
    assert tally.unreadable == 0


def test_a_file_may_change_its_layout() -> None:
    """After an upgrade, or with several appenders on one console."""
    tally, found = tallied(text_of(KAFKA) * 200 + text_of(RENDERED["strimzi"]))
    assert len(found) == 402
    assert tally.unreadable == 0


# What a user declares

DECLARED = {
    "pattern": ("%t;%c;%m;%d%n", UNKNOWN),
    "date of its own": (
        "%d{yyyy.MM.dd'T'HH:mm:ss,SSS} <%p> %m%n",
        by_pattern("%d <%p> %m", lambda t: local(t).replace("-", ".").replace(" ", "T")),
    ),
    "zone of its own": (
        "%d{yyyy-MM-dd HH:mm:ss,SSS}{Europe/Berlin}|%-5p|%m%n",
        by_pattern("%d|%-5p|%m", lambda t: local(t + timedelta(hours=1))),
    ),
    "coloured pattern": (
        "%highlight{%d;%p}{INFO=green};%X{user};%style{%m}{bold}",
        by_pattern("%d;%p;%x;%m"),
    ),
    "regular expression": (
        r"<(?P<level>\w+)> at (?P<time>\S+): (?P<message>.*)",
        by_pattern("<%p> at %d: %m", iso),
    ),
    "keys": (
        "json:message=text,time=when,level=how",
        by_json(lambda s: {"text": s.message, "when": iso(s.time), "how": s.level}),
    ),
    "name": ("strimzi", RENDERED["strimzi"]),
}


@pytest.mark.parametrize("kind", DECLARED)
def test_a_declared_layout_is_read(kind: str) -> None:
    text, render = DECLARED[kind]
    tally, found = tallied(text_of(render), text)
    assert [row["kind"] for row in found] == ["become-follower", "truncated"]
    assert found[1]["time"] == int((START + timedelta(seconds=3)).timestamp() * 1000)
    assert (tally.unreadable, tally.layout) == (0, text)


def test_a_declared_layout_is_the_only_one() -> None:
    tally, found = tallied(text_of(KAFKA), "%t;%c;%m;%d")
    assert found == []
    assert (tally.understood, tally.other, tally.unreadable) == (0, 0, tally.lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kafcka", "there is no layout of that name"),
        ("%d %p (%c)%n", "has 0 places for the message"),
        ("%d %Q %m", "%Q is no conversion that is known"),
        ("%d{yyyy-ww} %m", "'ww' in %d{yyyy-ww} is not known"),
        ("%d{HH:mm}{Mars} %m", "no time zone"),
        ("(?P<message>.*", "no regular expression"),
        ("(?P<text>.*)", "has no group (?P<message>...)"),
        ("json:time=t", "message must be there"),
        ("json:message=m,colour=c", "looks like"),
    ],
)
def test_a_layout_that_is_none_is_the_users(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        inspected(tmp_path, text_of(KAFKA), layouts=(text,))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-05 10:00:00,123", START),
        ("2026-01-05T10:00:00.123456789Z", START),
        ("2026/01/05 10:00:00.123", START),
        ("2026-01-05 12:00:00,123 +0200", START),
        ("2026-01-05T12:00:00.123+02", START),
        ("2026-01-05 10:00:00,123 UTC", START),
        ("05 Jan 2026 10:00:00,123", START),
        ("20260105100000123", START),
        ("1767607200123", START),
        ("1767607200.123", START),
        ("1767607200123456", START),
        ("10:00:00,123", None),
        ("2026-13-05 10:00:00", None),
        ("", None),
    ],
)
def test_times(text: str, wanted: datetime | None) -> None:
    expected = None if wanted is None else int(wanted.timestamp() * 1000)
    assert milliseconds(text, UTC) == expected
