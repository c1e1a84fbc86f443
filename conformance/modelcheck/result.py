"""The result of checking a model: TLC's facts beside what the model expects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.events import Exhibit, Finding, JsonValue
from conformance.modelcheck.broken import NOT_ASKED, BrokenFormulas
from conformance.modelcheck.form import Expect
from conformance.modelcheck.left_out import IgnoredEntry
from conformance.modelcheck.manifest import Model, near, reference
from conformance.modelcheck.outcome import EngineOutcome
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place, with_texts
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.modelcheck.wording import breaks, to_break
from conformance.printable import counted
from conformance.story.behaviour import Step, lines
from conformance.story.exhibit import exhibit
from conformance.story.key import formula_key
from conformance.story.why import reason_lines
from conformance.tla import Action
from conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """One thing that is not as expected. `key` is a finding's: no figures, so that it stays."""

    key: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came out, what was expected, and the verdict on the two.

    PASS: as expected, or nothing was expected and the model holds. FAIL: otherwise. INCONCLUSIVE:
    TLC did not finish in time. ERROR: TLC could not evaluate the model.
    """

    model: Model
    outcome: EngineOutcome
    verdict: Verdict
    problems: tuple[ModelProblem, ...]
    """In what it differs from the expectation."""
    seconds: float
    jar_sha256: str
    cached: bool
    engine: str = "tlc"
    """`python` if our own evaluator searched."""
    unchecked: tuple[str, ...] = ()
    """Properties that the engine could not check in full: then what holds is inconclusive."""
    left_out: tuple[IgnoredEntry, ...] = ()
    """Entries of the configuration that the engine did not follow."""
    broken: BrokenFormulas = NOT_ASKED
    """All that it breaks, if that was asked."""
    idle_overrides: tuple[str, ...] = ()
    """Overridden operators without whose override it has the same states and steps."""

    @property
    def counterexample_length(self) -> int | None:
        """States of the counterexample, the initial one included; None if there is none."""
        return len(self.outcome.steps) or None

    def counterexample(self, variables: Sequence[str]) -> tuple[Step, ...]:
        """The counterexample in values, the states in the order of `variables`."""
        return self.outcome.counterexample(variables)

    def story(self) -> tuple[str, ...]:
        """The counterexample told step by step, and why it ends there; of an ASSUME only why."""
        outcome = self.outcome
        return lines(outcome.behaviour()) if outcome.steps else reason_lines(outcome.why)

    def exhibit(self) -> Exhibit | None:
        """The counterexample to be looked at; None if there is none."""
        if not self.outcome.steps:
            return None
        title = f"{self.model.name}: {self.outcome.is_broken()}"
        shown = exhibit(self.outcome.behaviour(), picture_of(self.model), title, self._place_of)
        return with_texts(shown, self.model, self._location())

    def _place_of(self, action: Action) -> str:
        at = self.outcome.places.get(action.name, "")
        return place(self.model, at) if at else ""

    def summary(self) -> str:
        """One line for the terminal."""
        further = (self.broken.summary(), _idle(self.idle_overrides))
        return "; ".join(filter(None, (self._answer(), *further)))

    def _answer(self) -> str:
        outcome = self.outcome
        if self.problems:
            return "; ".join(map(str, self.problems))
        if outcome.result == "violated":
            return f"{outcome.breaks()}{_after(outcome)}{self._not_stated()}"
        if outcome.result == "not exhausted":
            generated = outcome.generated_states or 0
            return f"not exhausted: {generated:,} states of random behaviours, no violation"
        if _only_assumes(self.model):
            return "the assumptions hold; there are no behaviours"
        report = f"{outcome.result}, {counted(outcome.distinct_states or 0, 'distinct state')}"
        if self.unchecked:
            names = ", ".join(self.unchecked)
            report += f"; not checked, check it with TLC: {names}"
        if entries := [entry.entry for entry in self.left_out if entry.judges]:
            report += f"; not checked: {', '.join(entries)}"
        return report + self._not_exercised() + self._not_stated()

    def _not_exercised(self) -> str:
        """What a model that holds says nothing of: formulas that it lacks, actions not taken.

        A manifest that states its number of states has been looked at: it may leave actions out.
        """
        text = "; no formula was judged" if _judges_nothing(self.model, self.outcome) else ""
        if names := self.outcome.constant_formulas:
            text += f"; reads no variable: {', '.join(names)}"
        expect = self.model.expect
        stated = self.model.likely_states or (expect is not None and expect.distinct_states)
        if self.outcome.never_fired and not stated:
            text += f"; never taken: {', '.join(self.outcome.never_fired)}"
        return text

    def _not_stated(self) -> str:
        """What the model's manifest could state, so that it stays; empty if it states it."""
        expect, outcome = self.model.expect, self.outcome
        if expect is None:
            return ""
        lasso = outcome.kind == ViolationKind.TEMPORAL_PROPERTY
        if outcome.result == "holds" and not expect.distinct_states:
            line = f"distinct_states = {outcome.distinct_states}"
        elif outcome.result == "violated" and not (expect.counterexample_length or lasso):
            line = f"counterexample_length = {len(outcome.steps)}"
        else:
            return ""
        return f"; write `{line}` below `[expect]` of {near(self.model.origin)} to keep it"

    def findings(self, artifact: str = "") -> tuple[Finding, ...]:
        """A finding for each problem; the counterexample stands with the first.

        `artifact` is the file in which that is kept.
        """
        if not self.problems:  # a counterexample takes longer to draw than some are to find
            return ()
        story, shown = self.story(), self.exhibit()
        return tuple(
            Finding(
                key=problem.key,
                title=f"{self.model.name}: {problem}",
                stage="check",
                message=self._message(),
                formula=self.outcome.violated,
                location=self._location(),
                story=() if number else story,
                reproduce=self._command(),
                about=self.model.name,
                artifact="" if number else artifact,
                exhibit=None if number else shown,
            )
            for number, problem in enumerate(self.problems)
        )

    def _location(self) -> str:
        """Of the formula that is violated; of anything else, the model's manifest."""
        at = self.outcome.violated_at
        return place(self.model, at) if at else near(self.model.origin)

    def _message(self) -> str:
        text = self.outcome.is_broken()
        text = f"{text[:1].upper()}{text[1:]}"
        match self.outcome.kind:
            case ViolationKind.ASSUMPTION:
                return (
                    f"{text} for the constants of {near(self.model.origin)}. Mend the one or the "
                    "other: nothing was searched."
                )
            case ViolationKind.POSTCONDITION:
                result = counted(self.outcome.distinct_states or 0, "distinct state")
                return f"{text} after the search, which found {result}."
            case _:
                return self.model.description

    def _command(self) -> str:
        model = self.model
        own = f"{model.spec_path} --config {model.origin}"
        named = own if model.expect is None else reference(model)
        # Our own search keeps nothing that could be cold or warm.
        return f"kconform check {named} " + (
            "--cold" if self.engine == "tlc" else f"--engine {self.engine}"
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The model's object in the JSON report."""
        model, outcome = self.model, self.outcome
        return {
            "model": model.name,
            "spec": model.spec,
            "variant": model.variant,
            "labels": dict(model.labels),
            "tier": model.tier,
            "mutant": model.mutant,
            "verdict": str(self.verdict),
            "expected": model.expect.result if model.expect else None,
            "result": outcome.result,
            "violated": outcome.violated or None,
            "distinct_states": outcome.distinct_states,
            "generated_states": outcome.generated_states,
            "depth": outcome.depth,
            "counterexample_length": self.counterexample_length,
            "collision_probability": outcome.collision_probability,
            "never_fired": None if outcome.never_fired is None else list(outcome.never_fired),
            "unchecked": list(self.unchecked),
            "broken": [
                {"formula": item.formula, "length": item.length or None}
                for item in self.broken.formulas
            ],
            "idle_overrides": list(self.idle_overrides),
            "left_out": [{"entry": entry.entry, "why": entry.why} for entry in self.left_out],
            "problems": list(map(str, self.problems)),
            "story": list(self.story()),
            "seconds": round(self.seconds, 3),
            "cached": self.cached,
            "tlc_exit_code": outcome.exit_code,
            "tlc_version": outcome.tlc_version,
            "tlc_jar_sha256": self.jar_sha256,
        }


def judge(
    model: Model,
    outcome: EngineOutcome,
    jar_sha256: str,
    seconds: float,
    *,
    cached: bool,
    engine: str = "tlc",
    unchecked: tuple[str, ...] = (),
    left_out: tuple[IgnoredEntry, ...] = (),
    broken: BrokenFormulas = NOT_ASKED,
    idle_overrides: tuple[str, ...] = (),
) -> CheckResult:
    """Hold what the engine found against what the model expects.

    `unchecked` are properties that the engine could not check in full, `left_out` entries of the
    configuration that it did not follow. A mutant whose own override is idle is a problem.
    """
    not_judged = model.expect is not None and model.expect.violated in unchecked
    open_question = not_judged and outcome.result == "holds"
    problems = () if open_question else tuple(_problems(model, outcome))
    if outcome.is_answer and model.mutant in idle_overrides:
        text = f"is no mutant: without its override of {model.mutant} it has the same steps"
        problems += (ModelProblem(f"{model.name}:no_mutant", text),)
    verdict = _verdict(outcome, problems)
    partly = unchecked or any(entry.judges for entry in left_out)
    partly = partly or (_judges_nothing(model, outcome) and not _is_driven(model))
    if verdict is Verdict.PASS and outcome.result == "holds" and partly:
        verdict = Verdict.INCONCLUSIVE
    return CheckResult(
        model, outcome, verdict, problems, seconds, jar_sha256, cached, engine, unchecked, left_out,
        broken, idle_overrides,
    )  # fmt: skip


def _idle(overrides: Sequence[str]) -> str:
    """That overrides change nothing; empty if each does."""
    if not overrides:
        return ""
    names = " or ".join(overrides)
    which = "its override of" if len(overrides) == 1 else "any one of its overrides of"
    return f"without {which} {names} it has the same states and steps"


def _judges_nothing(model: Model, outcome: EngineOutcome) -> bool:
    """Whether there is no formula that could be false; assumptions are judged in any case."""
    check = model.check
    formulas = {*check.invariants, *check.properties} - {*outcome.constant_formulas}
    judged = formulas or check.deadlock or model.postconditions
    return not judged and not _only_assumes(model)


def _is_driven(model: Model) -> bool:
    """Whether it is there for a system to be driven by it; a .cfg, which says so nowhere, is if it
    feeds a suite."""
    return bool(model.system) or (model.expect is None and model.feeds_suite)


def _only_assumes(model: Model) -> bool:
    """Whether there are assumptions to check and nothing else: no behaviour has a beginning."""
    return not (model.check.specification or model.check.init)


def _verdict(outcome: EngineOutcome, problems: Sequence[ModelProblem]) -> Verdict:
    if outcome.result == "error":
        return Verdict.ERROR
    if outcome.result == "timeout":
        return Verdict.INCONCLUSIVE
    return Verdict.FAIL if problems else Verdict.PASS


def _problems(model: Model, outcome: EngineOutcome) -> list[ModelProblem]:
    def problem(kind: str, text: str) -> list[ModelProblem]:
        return [ModelProblem(f"{model.name}:{kind}", text)]

    result, expect = outcome.result, model.expect
    violation = [ModelProblem(formula_key(outcome.violated), _violation(model, outcome))]
    if result == "error":
        return problem("cannot_be_evaluated", f"TLC cannot evaluate it: {outcome.error}")
    if result == "timeout":
        so_far = f"({outcome.distinct_states or 0:,} distinct states so far)"
        return problem("not_finished", f"not finished in time {so_far}")
    if _is_empty(model, outcome):
        return problem("no_state", "it has no state: nothing was checked")
    if expect is None:
        return violation if result == "violated" else []
    if result != expect.result:
        return (
            violation if result == "violated" else problem("holds", _no_violation(expect, outcome))
        )
    if result == "holds":
        return [
            model_problem
            for text in _other_numbers(expect, outcome)
            for model_problem in problem("size", text)
        ]
    if result == "not exhausted":
        return []
    if outcome.violated != expect.violated:
        return violation
    return [
        model_problem
        for text in _other_length(expect, outcome)
        for model_problem in problem("length", text)
    ]


def _is_empty(model: Model, outcome: EngineOutcome) -> bool:
    if outcome.result == "not exhausted":
        return not outcome.generated_states
    return outcome.result == "holds" and not outcome.distinct_states and not _only_assumes(model)


def _violation(model: Model, outcome: EngineOutcome) -> str:
    expect = model.expect
    if expect is None:
        return outcome.is_broken()
    if expect.result == "violated":
        return f"{outcome.breaks()}, expected {expect.violated}"
    return f"{outcome.is_broken()}{_after(outcome)}, but the model holds"


def _no_violation(expect: Expect, outcome: EngineOutcome) -> str:
    if outcome.result == "not exhausted":
        return f"no random behaviour {breaks(expect.violated)}: let it simulate more"
    return (
        f"holds, but must {to_break(expect.violated)}: the formula or the model has lost its "
        f"teeth ({outcome.distinct_states:,} distinct states)"
    )


def _after(outcome: EngineOutcome) -> str:
    """How long the counterexample is; nothing where no behaviour was looked at."""
    return f" after {counted(len(outcome.steps), 'state')}" if outcome.steps else ""


def _other_numbers(expect: Expect, outcome: EngineOutcome) -> Iterator[str]:
    distinct, generated = outcome.distinct_states, outcome.generated_states
    if expect.distinct_states and distinct != expect.distinct_states:
        yield f"has {distinct} distinct states, expected {expect.distinct_states}"
    if expect.generated_states and generated != expect.generated_states:
        yield f"generated {generated} states, expected {expect.generated_states}"


def _other_length(expect: Expect, outcome: EngineOutcome) -> Iterator[str]:
    if outcome.kind == ViolationKind.TEMPORAL_PROPERTY:
        # TLC looks for lassos now and then while it searches: how long the first is, is chance.
        return
    length, expected = len(outcome.steps), expect.counterexample_length
    if expected and length != expected:
        yield f"has a counterexample of {counted(length, 'state')}, expected {expected}"
