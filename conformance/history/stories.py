"""A finding as a story: the operations concerned, in order, by process, with a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.events import Exhibit, Finding, JsonValue, ShownStep
from conformance.history.judgement import HistoryJudgement, RuleTally
from conformance.history.reading import History
from conformance.history.rows import COMMITTED, NO_OFFSET, READ, SENT, UNKNOWN
from conformance.history.rules import MODEL, Answer, HistoryFormulas
from conformance.history.situations import HistorySituation, SituationFact
from conformance.modelcheck.manifest import load_model
from conformance.modelcheck.places import with_texts
from conformance.printable import counted, path_text, printable
from conformance.resources import models_dir
from conformance.story.key import hashed_key
from conformance.story.scene import LaneCell, Scene, SceneRow
from conformance.story.svg import draw, standalone
from conformance.story.why import reason_lines

_OUTCOMES = ("ok", "fail", "unknown outcome")
_FURTHER = 5
"""Cases of a rule that are named beside the first one, which is told whole."""


def findings(judgement: HistoryJudgement, output: Path, reproduce: str) -> Iterator[Finding]:
    """A finding for each rule that was broken; its drawing is written below `output`."""
    for tally in judgement.broken():
        yield _finding(judgement.history, judgement.formulas, tally, output, reproduce)


def _finding(
    history: History, formulas: HistoryFormulas, tally: RuleTally, output: Path, reproduce: str
) -> Finding:
    cases = tally.cases[Answer.BROKEN]
    case = formulas.smallest(tally.rule, cases[0])
    count = tally.answers[Answer.BROKEN]
    scene = _scene(case)
    title = tally.rule.title
    place = output / f"{tally.rule.name}.svg"
    lines = tuple(operation_lines(history, case))
    reasons = formulas.why(tally.rule, case)
    place.write_text(standalone(scene, f"{tally.rule.name}: {title}", lines), encoding="utf-8")
    further = [
        f"also: {'; '.join(map(_fact_text, other.facts))}" for other in cases[1 : 1 + _FURTHER]
    ]
    return Finding(
        key=hashed_key("history", (tally.rule.name, *map(_fact_text, case.facts))),
        title=f"{title}: {_subject(case)}",
        stage="history",
        message=f"{counted(count, 'time')} {title}; the rule is {tally.rule.name}.",
        trace=_subject(case),
        formula=tally.rule.name,
        location=tally.location,
        story=(*lines, *reason_lines(reasons), *further, f"drawing: {path_text(place)}"),
        reproduce=reproduce,
        count=count,
        exhibit=with_texts(
            Exhibit(tuple(_steps(history, case)), draw(scene, title), reasons),
            load_model(models_dir() / f"{MODEL}.toml"),
            tally.location,
        ),
    )


def _subject(case: HistorySituation) -> str:
    fact = case.facts[0]
    return ", ".join(dict.fromkeys(printable(each.key) for each in case.facts)) or fact.process


def operation_lines(history: History, case: HistorySituation) -> Iterator[str]:
    """Each operation with what of it is concerned, and where it stands."""
    for order, process, what in _operations(case):
        file, number = history.line(order)
        yield f"{path_text(file.path.name)}:{number}: process {printable(process)}: {what}"


def _operations(case: HistorySituation) -> list[tuple[int, str, str]]:
    """The operations in their order, by process; also those that a step begins at."""
    parts: dict[int, tuple[str, list[str]]] = {}
    for fact in case.facts:
        if fact.after != NO_OFFSET and fact.before != fact.order:
            steps = parts.setdefault(fact.before, (fact.process, []))[1]
            steps.append(f"{_STEPS[fact.kind]} offset {fact.after} of {printable(fact.key)}")
        if fact.processed != NO_OFFSET and fact.given != fact.order:
            steps = parts.setdefault(fact.given, (fact.process, []))[1]
            steps.append(f"read offset {fact.processed} of {printable(fact.key)}")
    for fact in case.facts:
        parts.setdefault(fact.order, (fact.process, []))[1].append(_fact_text(fact))
    return [
        (order, process, "; ".join(dict.fromkeys(texts)))
        for order, (process, texts) in sorted(parts.items())
    ]


_STEPS = {SENT: "was told", READ: "read", COMMITTED: "committed"}


def _fact_text(fact: SituationFact) -> str:
    key = printable(fact.key)
    value = "a record" if fact.value is None else f"value {printable(fact.value)}"
    outcome = _OUTCOMES[fact.outcome]
    if fact.kind == SENT:
        at = "" if fact.offset == NO_OFFSET else f" at offset {fact.offset}"
        how = f"{outcome}, in a transaction" if fact.transactional else outcome
        after = "" if fact.after == NO_OFFSET else f", after offset {fact.after}"
        return f"sent {value} to {key}{at} ({how}{after})"
    if fact.kind == READ:
        after = "" if fact.after == NO_OFFSET else f", after offset {fact.after}"
        return f"read {value} from {key} at offset {fact.offset}{after}"
    if fact.kind == COMMITTED:
        processed = "" if fact.processed == NO_OFFSET else f", having read up to {fact.processed}"
        after = "" if fact.after == NO_OFFSET else f", after position {fact.after}"
        unknown = " (unknown outcome)" if fact.outcome == UNKNOWN else ""
        return f"committed position {fact.offset} of {key}{processed}{after}{unknown}"
    return f"fetched position {fact.offset} of {key}"


def _steps(history: History, case: HistorySituation) -> Iterator[ShownStep]:
    yield ShownStep("Before these operations", (), {})
    for line in operation_lines(history, case):
        yield ShownStep(line, (), {})


def _scene(case: HistorySituation) -> Scene:
    """A lane for each process, a row for each operation."""
    operations = _operations(case)
    lanes = tuple(dict.fromkeys(f"process {printable(process)}" for _, process, _ in operations))
    cells = tuple(LaneCell() for _ in lanes)
    rows = [SceneRow("", None, "", cells)]
    for order, process, what in operations:
        lane = lanes.index(f"process {printable(process)}")
        rows.append(SceneRow(what, lane, "", cells, bad=order == operations[-1][0]))
    return Scene(lanes, tuple(rows), ())


def as_json(judgement: HistoryJudgement) -> dict[str, JsonValue]:
    """The history's part of the JSON report."""
    history = judgement.history
    rules: dict[str, JsonValue] = {}
    for name, tally in judgement.tallies.items():
        answers: dict[str, JsonValue] = {str(answer): tally.answers[answer] for answer in Answer}
        rules[name] = {
            "location": tally.location,
            "bare": tally.rule.bare,
            "exercised": tally.exercised,
            **answers,
            "cases": _cases(history, tally),
        }
    return {
        "operations": dict(history.operations),
        "rows": int(history.rows.sum()),
        "processes": history.processes,
        "partitions": judgement.partitions,
        "processes_jumping": len(history.jumping),
        "lines_not_understood": history.bad_count,
        "not_understood": dict(history.reasons),
        "values_sent_twice": judgement.resent,
        "distinct_states": judgement.distinct,
        "configuration": {
            name: value
            for name, value in judgement.formulas.configuration.constants().items()
            if isinstance(value, (str, bool, int))
        },
        "rules": rules,
        "doubts": list(judgement.doubts()),
    }


def _cases(history: History, tally: RuleTally) -> list[JsonValue]:
    """What was not in order, as far as it was kept: the operations of each case."""
    if not tally.rule.decides:
        return []
    return [
        {"answer": str(answer), "operations": list(operation_lines(history, case))}
        for answer, cases in tally.cases.items()
        for case in cases
    ]


def allowed_lines(judgement: HistoryJudgement) -> Sequence[str]:
    """What was seen and is allowed under the configuration."""
    return [
        f"allowed here: {counted(tally.answers[Answer.ALLOWED], 'time')} {tally.rule.title}: "
        f"{tally.rule.bare} is false, and {tally.rule.name} does not forbid it"
        for tally in judgement.tallies.values()
        if tally.answers[Answer.ALLOWED]
    ]
