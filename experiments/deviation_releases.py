"""Writes `seen` and `gone` of conformance/systems/kafka/deviations.toml from docs/releases.

What `kconform versions --all -o docs/releases` saw of each release is what the table says of it.
What the table says of a release that these files lack stays, and so does what it says of Kafka's
Java client.
Run: python -m experiments.deviation_releases
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.brokers import ROOT
from conformance.deviations.table import Deviation, load_deviations
from conformance.files import written_aside
from conformance.kafka.jars import release_of
from conformance.report.releases import ReleaseRecord, records
from conformance.stages.presence import Presence
from experiments.findings import TABLE, kind_of

RELEASES = ROOT / "docs" / "releases"
_WORD = {Presence.SEEN: "seen", Presence.GONE: "gone", Presence.UNREACHABLE: "gone"}
"""Where the release lacks another deviation that leads to it, it is not there either."""


def releases(
    deviation: Deviation, kept: Iterable[ReleaseRecord]
) -> Mapping[str, Sequence[str]] | None:
    """The releases in which it was seen, and in which not; None if these files cannot tell."""
    if deviation.part == "client":
        return None
    words = dict.fromkeys(deviation.seen, "seen") | dict.fromkeys(deviation.gone, "gone")
    for record in kept:
        kind, _, version = record.system.partition("-")
        word = _WORD.get(Presence(record.deviations.get(deviation.id, Presence.NOT_DRIVEN)))
        if kind == kind_of(deviation) and word is not None:
            words[version] = word
    return {
        word: sorted((version for version in words if words[version] == word), key=release_of)
        for word in ("seen", "gone")
    }


def with_releases(text: str, kept: Sequence[ReleaseRecord]) -> str:
    """The table's text, with the releases that were run."""
    for deviation in load_deviations(TABLE):
        found = releases(deviation, kept)
        if found is None:
            continue
        lines = "".join(
            f"{word} = {json.dumps(versions)}\n" for word, versions in found.items() if versions
        )
        entry = re.compile(
            rf'(^id = "{re.escape(deviation.id)}"\n(?:(?!^\[\[).*\n)*?)(?:^(?:seen|gone) = .*\n)+',
            re.MULTILINE,
        )
        text, number = entry.subn(rf"\g<1>{lines}", text)
        assert number == 1, deviation.id
    return text


def main() -> None:
    text = with_releases(TABLE.read_text(encoding="utf-8"), records(RELEASES))
    with written_aside(TABLE) as aside:
        aside.write_text(text, encoding="utf-8")
    print(f"{TABLE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
