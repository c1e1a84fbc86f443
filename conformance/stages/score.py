"""A score card: which areas of the protocols a system gets right, out of a run's report.json.

It runs nothing. What a suite showed is told by the reports of `gate --system` and of `client`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import cast

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviation
from conformance.errors import DataError, UserError
from conformance.inputs import read_text
from conformance.modelcheck.manifest import load_model
from conformance.modelcheck.names import bundled_manifests
from conformance.report.card import (
    CARD_SCHEMA,
    Departure,
    ScoreArea,
    ScoreCard,
    ScoreSuite,
    Standing,
)
from conformance.report.collect import SCHEMA_VERSION
from conformance.story.key import VIOLATED, kind_of, subjects_of
from conformance.systems.areas import ProtocolArea, area_of, protocol_areas
from conformance.tla import load_json

_Json = Mapping[str, object]
_NO_TIME = "there was no time for it"
_OTHERS = "whatever else failed"
"""The area of what belongs to no suite."""
_DRIVING = ("replay", "interleave", "turns", "explore", "record", "audit")
_ABSENT = ("gone", "not reachable")
"""What stage `deviations` says of one that the system does not have."""


def card_of(file: Path, factory: str = "") -> ScoreCard:
    """The card of a run's report.json. UserError for the report of another command.

    `factory` is the path of the system's factory, whose table says what its departures cost.
    """
    report = _object(load_json(read_text(file)))
    command = report.get("command")
    is_client = "duties" in report  # of `client`, whose `command` is the client's own
    if not is_client and not (command == "gate" and report.get("system")):
        what = f"a report of `kconform {command}`" if command else "no report of kconform"
        raise UserError(
            f"{file} is {what}, and says nothing of one system. Name a report of `kconform gate "
            "--system` or of `kconform client`."
        )
    if report.get("schema_version") != SCHEMA_VERSION:
        raise DataError(
            f"{file} has the schema_version {report.get('schema_version')}, and this kconform "
            f"reads {SCHEMA_VERSION}. Run the command again with it."
        )
    if not isinstance(report.get("findings"), list):
        raise DataError(f"{file} is damaged: it has no list of findings. Run the command again.")
    return _client_card(report) if is_client else _Gate(report, _table(factory)).card()


def _table(factory: str) -> Mapping[str, Deviation]:
    known = deviating(factory) if factory else None
    return {} if known is None else {item.id: item for item in known.deviations()}


class _Gate:
    """One report of a gate with a system."""

    def __init__(self, report: _Json, table: Mapping[str, Deviation]) -> None:
        self._report = report
        self._table = table
        self._stages = _object(report.get("stages"))
        self._findings = [_object(item) for item in _list(report.get("findings"))]

    def card(self) -> ScoreCard:
        suites: dict[str, list[ScoreSuite]] = {}
        for suite in (*self._driven(), *self._not_driven()):
            suites.setdefault(area_of(suite.name).id, []).append(suite)
        if others := [*self._others(suites)]:
            suites[_OTHERS] = others
        return _card(self._report, str(self._report["system"]), suites)

    def _driven(self) -> Iterator[ScoreSuite]:
        for entry in _entries(self._stages.get("replay")):
            tests, model = _object(entry.get("tests")), str(entry.get("subject"))
            declared = self._declared(entry)
            verdicts = {str(other.get("verdict")) for other in self._of_model(model)}
            yield ScoreSuite(
                name=model,
                standing=_standing(verdicts, declared, tests),
                tests=_number(tests, "in"),
                passed=_number(tests, "pass"),
                failed=_number(tests, "fail"),
                steps=_number(entry, "steps"),
                reason=_reason(entry),
                departures=tuple(self._departures(model, declared)),
            )

    def _of_model(self, model: str) -> Iterator[_Json]:
        """What each stage that drives says of a model."""
        for name in _DRIVING:
            for entry in _entries(self._stages.get(name)):
                if model in (entry.get("model"), entry.get("subject")):
                    yield entry

    def _declared(self, entry: _Json) -> list[str]:
        """The departures by which a suite was judged, but for those that were not seen."""
        presence = _object(_object(self._stages.get("deviations")).get("deviations"))
        known = [
            name for name in _texts(entry.get("deviations")) if presence.get(name) not in _ABSENT
        ]
        # In a suite that failed what was set aside includes what nobody declared.
        aside = _texts(entry.get("set_aside")) if entry.get("verdict") == "pass" else []
        return [*known, *aside]

    def _others(self, suites: Mapping[str, Sequence[ScoreSuite]]) -> Iterator[ScoreSuite]:
        """What failed and belongs to no suite that was driven: nothing that failed is left out.

        Nor is a run that did not pass for a reason that no suite and no stage of the report tells.
        """
        standings = {suite.standing for of_area in suites.values() for suite in of_area}
        for other in self._failed():
            standings.add(other.standing)
            yield other
        verdict = str(self._report.get("verdict"))
        if verdict != "pass" and standings.isdisjoint({Standing.DEPARTS, Standing.UNDECIDED}):
            standing = Standing.DEPARTS if verdict == "fail" else Standing.UNDECIDED
            yield ScoreSuite(name="run", standing=standing, reason=f"the run ended with {verdict}")

    def _failed(self) -> Iterator[ScoreSuite]:
        models = {str(entry.get("subject")) for entry in self._replayed()}
        for name in self._stages:
            for entry in _entries(self._stages[name]):
                subject = str(entry.get("subject") or "")
                named = {subject, str(entry.get("model") or "")} & models
                if entry.get("verdict") == "fail" and not (name in _DRIVING and named):
                    title = f"{name} {subject}".strip()
                    reason = str(entry.get("summary") or "")
                    yield ScoreSuite(name=title, standing=Standing.DEPARTS, reason=reason)
        unnamed = [_departure(item) for item in self._findings if not self._model_of(item, models)]
        if unnamed:
            yield ScoreSuite(name="findings", standing=Standing.DEPARTS, departures=tuple(unnamed))

    def _model_of(self, finding: _Json, models: Iterable[str]) -> str:
        """The model whose suite met a finding, by the name of the file that keeps it."""
        file = Path(str(finding.get("artifact") or "")).name
        stems = {f"{re.sub('[^A-Za-z0-9]+', '-', model)}-": model for model in models}
        fitting = sorted((stem for stem in stems if file.startswith(stem)), key=len)
        return stems[fitting[-1]] if fitting else ""

    def _departures(self, model: str, declared: Sequence[str]) -> Iterator[Departure]:
        for name in declared:
            known = self._table.get(name)
            yield Departure(
                title=name if known is None else f"{name}: {known.title}",
                declared=True,
                consequence="" if known is None else _cost(known),
            )
        models = [str(entry.get("subject")) for entry in self._replayed()]
        for finding in self._findings:
            if self._model_of(finding, models) == model:
                yield _departure(finding)

    def _not_driven(self) -> Iterator[ScoreSuite]:
        budget = _object(self._stages.get("budget"))
        for model in _object(budget.get("no_time_for")):
            yield ScoreSuite(name=model, standing=Standing.NOT_DRIVEN, reason=_NO_TIME)
        driven = {_specification(str(entry["subject"])) for entry in self._replayed()}
        for model, reason in _object(self._report.get("left_out")).items():
            # Other models of its specification drive it: this is what the system itself lacks.
            lacks = _specification(model) in driven or "does not offer" in str(reason)
            standing = Standing.NOT_OFFERED if lacks else Standing.NOT_DRIVEN
            yield ScoreSuite(name=model, standing=standing, reason=str(reason))

    def _replayed(self) -> list[_Json]:
        return _entries(self._stages.get("replay"))


def _cost(deviation: Deviation) -> str:
    violated = f", violates {deviation.violated}" if deviation.violated else ""
    return f"{deviation.severity}{violated}"


def _standing(verdicts: Set[str], declared: Sequence[str], tests: _Json) -> Standing:
    if "fail" in verdicts:
        return Standing.DEPARTS
    if verdicts != {"pass"} or not _number(tests, "pass"):
        return Standing.UNDECIDED
    return Standing.DECLARED if declared else Standing.AGREES


def _departure(finding: _Json) -> Departure:
    return Departure(
        title=str(finding.get("title")),
        count=_number(finding, "count"),
        consequence=_consequence(finding),
        story=str(finding.get("artifact") or finding.get("reproduce") or ""),
    )


def _consequence(finding: _Json) -> str:
    """The formula that breaks, or the variables that differ."""
    formula, key = str(finding.get("formula") or ""), str(finding.get("key") or "")
    if kind_of(key) == VIOLATED:
        return f"violates {formula or ', '.join(subjects_of(key))}"
    names = [str(_object(item).get("variable")) for item in _list(finding.get("differences"))]
    return f"differs in {', '.join(sorted({*names}))}" if names else ""


def _reason(entry: _Json) -> str:
    """Why tests of a suite were not driven, the most frequent reason first."""
    reasons = _object(entry.get("not_driven"))
    worst = sorted(reasons, key=lambda reason: (-_number(reasons, reason), reason))
    return "; ".join(f"{reasons[reason]} tests not driven: {reason}" for reason in worst)


def _client_card(report: _Json) -> ScoreCard:
    examples = _object(report.get("examples"))
    passed, failed = _number(examples, "pass"), _number(examples, "fail")
    name = f"client/{report.get('variant')}"
    findings = [_departure(_object(item)) for item in _list(report.get("findings"))]
    suite = ScoreSuite(
        name=name,
        standing=_standing({str(report.get("verdict"))}, (), examples),
        tests=sum(_number(examples, key) for key in examples),
        passed=passed,
        failed=failed,
        steps=_number(report, "events"),
        departures=tuple(findings),
    )
    missing = [
        ScoreSuite(
            name=f"client/duty {kind}",
            standing=Standing.NOT_DRIVEN,
            reason="no answer of these examples asked for it",
        )
        for kind in _texts(report.get("not_exercised"))
    ]
    return _card(report, str(report.get("command")), {area_of(name).id: [suite, *missing]})


def _card(report: _Json, system: str, suites: Mapping[str, Sequence[ScoreSuite]]) -> ScoreCard:
    """The areas in the table's order, then those of a user's own models."""
    known = {area.id: area for area in protocol_areas()}
    order = [*known, *(name for name in suites if name not in known)]
    areas = [
        ScoreArea(
            id=name,
            title=area.title,
            kips=area.kips,
            requests=_with_versions(area.requests, system),
            suites=tuple(sorted(suites.get(name, ()), key=lambda suite: suite.name)),
        )
        for name in order
        for area in [known.get(name) or ProtocolArea(name, name)]
        if suites.get(name)
    ]
    return ScoreCard(
        schema=CARD_SCHEMA,
        system=system,
        version=str(report.get("version") or ""),
        tier=str(report.get("tier") or ""),
        seed=_number(report, "seed"),
        incomplete=report.get("incomplete") is True,
        areas=tuple(areas),
    )


def _with_versions(requests: Iterable[str], system: str) -> tuple[str, ...]:
    """The requests with the versions that the system's name fixes, as JoinGroup=5 does."""
    given = dict(re.findall(r"[?&]([A-Z]\w+)=(\d+)", system))
    return tuple(f"{name} {given[name]}" if name in given else name for name in requests)


def _specification(model: str) -> str:
    """The root module of a model that belongs to kconform; any other stands for itself."""
    known = bundled_manifests()
    return load_model(known[model]).spec if model in known else model


def _entries(stage: object) -> list[_Json]:
    """A stage's objects: one, or one for each model."""
    whole = _object(stage)
    if not whole:
        return []
    models = whole.get("models")
    return [_object(item) for item in _list(models)] if models is not None else [whole]


def _object(value: object) -> _Json:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise DataError("The report.json is damaged: an object is missing. Run the command again.")
    return cast("_Json", value)


def _list(value: object) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise DataError("The report.json is damaged: a list is missing. Run the command again.")
    return cast("Sequence[object]", value)


def _texts(value: object) -> list[str]:
    return [str(item) for item in _list(value)]


def _number(values: _Json, key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
