"""Makes the score cards that the documents keep (docs/cards).

Subjects: the classes of Kafka 4.4.0, our own server and kfake of franz-go through their ports, and
two clients in the loop. Each is started here, `kconform score` judges it, and the card is kept
under the subject's name, with the stories of what departs beside it. An address of this machine is
in no card. A subject that cannot be started here is told of, and its old card stays.
Run: python -m experiments.score_cards [SUBJECT ...] [--minutes N] [--examples N] [-o FOLDER]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from benchmarks.brokers import ROOT, ours
from conformance.errors import ExitCode
from conformance.files import written_aside
from conformance.report import card as cards
from conformance.report.card import Departure, ScoreCard
from experiments.wire_brokers import KCONFORM, Missing, kfake
from experiments.wire_clients import SUBJECTS as CLIENTS
from experiments.wire_clients import Missing as MissingClient
from experiments.wire_clients import Subject as Client

SEED = 1
FOLDER = ROOT / "docs" / "cards"
_JUDGED = (ExitCode.PASS, ExitCode.FAIL, ExitCode.INCONCLUSIVE)


@dataclass(frozen=True, slots=True)
class Subject:
    """A system: its name for readers, and how it is started; that gives the words of `score`."""

    name: str
    serve: Callable[[], AbstractContextManager[list[str]]]


@contextmanager
def classes(release: str) -> Iterator[list[str]]:
    yield [f"kafka-{release}"]


@contextmanager
def broker(serve: Callable[[], AbstractContextManager[str]]) -> Iterator[list[str]]:
    with serve() as system:
        yield [system]


@contextmanager
def client(start: Callable[[], Client]) -> Iterator[list[str]]:
    subject = start()
    yield [f"client:{subject.command}", "--variant", subject.variant]


SUBJECTS: Mapping[str, Subject] = {
    "kafka-4.4.0": Subject("Apache Kafka 4.4.0, its classes", lambda: classes("4.4.0")),
    "own-server": Subject("python -m impl.wire", lambda: broker(ours)),
    "kfake": Subject("kfake of franz-go", lambda: broker(kfake)),
    "java-client": Subject("Java client of Kafka 4.4.0", lambda: client(CLIENTS["kafka-4.4.0"])),
    "librdkafka": Subject("librdkafka", lambda: client(CLIENTS["librdkafka"])),
}


def card_of(subject: Subject, words: list[str], folder: Path) -> ScoreCard:
    """The card of one run of `kconform score`, under the subject's name."""
    with subject.serve() as system:
        command = [str(KCONFORM), "score", *system, *words, "--seed", str(SEED)]
        ended = subprocess.run(
            [*command, "--output", str(folder)], capture_output=True, text=True, check=False
        )
    if ended.returncode not in _JUDGED:
        raise Missing(f"kconform score ended with {ended.returncode}: {ended.stderr[-500:]}")
    card = cards.load((folder / "card.json").read_text(encoding="utf-8"))
    return replace(card, system=subject.name)


def keep(card: ScoreCard, made: Path, folder: Path) -> None:
    """The card's files, and the stories of its departures beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def kept(departure: Departure) -> Departure:
        story = made / departure.story
        if not departure.story.endswith(".json") or not story.is_file():
            return departure
        trace = json.loads(story.read_text(encoding="utf-8"))
        trace["#meta"]["kconform"]["system"] = card.system
        (folder / story.name).write_text(json.dumps(trace) + "\n", encoding="utf-8")
        return replace(departure, story=quote(story.name))

    areas = tuple(
        replace(
            area,
            suites=tuple(
                replace(suite, departures=tuple(map(kept, suite.departures)))
                for suite in area.suites
            ),
        )
        for area in card.areas
    )
    own = replace(card, areas=areas)
    texts = {
        "card.md": cards.markdown(own),
        "card.json": cards.dumps(own),
        "badge.svg": cards.badge_of(own),
    }
    for name, text in texts.items():
        with written_aside(folder / name) as aside:
            aside.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--minutes", type=float, default=5.0, help="For one subject.")
    parser.add_argument("--examples", type=int, default=100, help="Of a client.")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER)
    options = parser.parse_args()
    unknown = [name for name in options.subjects if name not in SUBJECTS]
    if unknown:
        parser.error(f"there is no subject {unknown[0]}; there are {', '.join(SUBJECTS)}")
    words = ["--minutes", str(options.minutes), "--examples", str(options.examples)]
    for name in options.subjects or SUBJECTS:
        with tempfile.TemporaryDirectory() as work:
            try:
                card = card_of(SUBJECTS[name], words, Path(work))
            except (Missing, MissingClient) as missing:
                print(f"{name}: not judged: {missing}", file=sys.stderr)
                continue
            keep(card, Path(work), options.output / name)
        print(f"{name}: {card.score}", flush=True)


if __name__ == "__main__":
    main()
