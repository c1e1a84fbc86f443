"""`kconform workload`, as a user mistypes it; what it makes is a matter of tests/e2e/kafka."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from conformance.cli.workload import workload
from conformance.errors import ExitCode
from conformance.workload import brokers


def refused(
    capsys: pytest.CaptureFixture[str],
    output: Path,
    bootstrap: str = "127.0.0.1:1",
    **options: object,
) -> str:
    with pytest.raises(SystemExit) as ended:
        workload(bootstrap, output, seconds=1.0, **options)  # type: ignore[arg-type]
    assert ended.value.code == ExitCode.USAGE
    text = capsys.readouterr().err
    assert "Traceback" not in text
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clients": "sarama"}, "There is no client 'sarama'. There are confluent-kafka, "),
        ({"clients": " , "}, "--clients takes names with commas"),
        ({"kinds": "plain,quick"}, "of plain, idempotent, transactional; not 'plain,quick'"),
        ({"kinds": ""}, "--kinds takes names with commas"),
        ({"clients": "java", "version": "9.9"}, "no released version of Kafka"),
    ],
)
def test_a_wrong_name_is_refused(
    options: dict[str, object], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused(capsys, tmp_path / "runs", **options)
    assert not (tmp_path / "runs").exists()


def test_a_history_that_is_there_is_not_mixed_with_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "earlier.ndjson").write_text("", "utf-8")
    assert f"{tmp_path} is not empty" in refused(capsys, tmp_path)


def test_brokers_that_do_not_answer_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "_PATIENCE_S", -1.0)
    if importlib.util.find_spec("aiokafka") is None:
        pytest.skip("the extra `clients` is not installed")
    text = refused(capsys, tmp_path / "runs", clients="aiokafka")
    assert "No broker answers at 127.0.0.1:1" in text
    text = refused(capsys, tmp_path / "runs", "broker", clients="aiokafka")
    assert "--bootstrap takes HOST:PORT, or several with commas; 'broker' is not that." in text


def test_a_library_that_is_not_installed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    text = refused(capsys, tmp_path / "runs", clients="kafka-python")
    assert "kafka-python is not installed. Run `pip install 'kafka-conformance[clients]'`" in text
