"""The result of checking a model: TLC's facts beside what the model expects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.events import Exhibit, Finding, JsonValue
from conformance.modelcheck.left_out import LeftOut
from conformance.modelcheck.manifest import Expect, Model, near, reference
from conformance.modelcheck.outcome import EngineOutcome
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.modelcheck.wording import breaks, to_break
from conformance.printable import counted
from conformance.story.behaviour import Step, lines
from conformance.story.exhibit import exhibit
from conformance.story.why import reason_lines
from conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came out, what was expected, and the verdict on the two.

    PASS: as expected, or nothing was expected and the model holds. FAIL: otherwise. INCONCLUSIVE:
    TLC did not finish in time. ERROR: TLC could not evaluate the model.
    """

    model: Model
    outcome: EngineOutcome
    verdict: Verdict
    problems: tuple[str, ...]
    """In what it differs from the expectation."""
    seconds: float
    jar_sha256: str
    cached: bool
    engine: str = "tlc"
    """`python` if our own evaluator searched."""
    unchecked: tuple[str, ...] = ()
    """Properties that the engine could not check in full: then what holds is inconclusive."""
    left_out: tuple[LeftOut, ...] = ()
    """Entries of the configuration that the engine did not follow."""

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
        return exhibit(self.outcome.behaviour(), picture_of(self.model), title)

    def summary(self) -> str:
        """One line for the terminal."""
        outcome = self.outcome
        if self.problems:
            return "; ".join(self.problems)
        if outcome.result == "violated":
            return f"{outcome.breaks()}{_after(outcome)}"
        if outcome.result == "not exhausted":
            generated = outcome.generated_states or 0
            return f"not exhausted: {generated:,} states of random behaviours, no violation"
        if _only_assumes(self.model):
            return "the assumptions hold; there are no behaviours"
        told = f"{outcome.result}, {counted(outcome.distinct_states or 0, 'distinct state')}"
        if self.unchecked:
            names = ", ".join(self.unchecked)
            told += f"; not checked, since only TLC checks temporal formulas: {names}"
        if entries := [one.entry for one in self.left_out if one.judges]:
            told += f"; not checked: {', '.join(entries)}"
        return told

    def findings(self) -> tuple[Finding, ...]:
        """A finding for each problem; the counterexample stands with the first."""
        story, shown = self.story(), self.exhibit()
        return tuple(
            Finding(
                key=self._key(problem),
                title=f"{self.model.name}: {problem}",
                stage="check",
                message=self._message(),
                formula=self.outcome.violated,
                location=self._location(),
                story=() if number else story,
                reproduce=self._command(),
                exhibit=None if number else shown,
            )
            for number, problem in enumerate(self.problems)
        )

    def _key(self, problem: str) -> str:
        if self.outcome.kind in (ViolationKind.ASSUMPTION, ViolationKind.POSTCONDITION):
            return f"{self.outcome.violated}:violated"
        return f"check:{self.model.name}:{problem}"

    def _message(self) -> str:
        said = self.outcome.is_broken()
        said = f"{said[:1].upper()}{said[1:]}"
        match self.outcome.kind:
            case ViolationKind.ASSUMPTION:
                return (
                    f"{said} for the constants of {near(self.model.origin)}. Mend the one or the "
                    "other: nothing was searched."
                )
            case ViolationKind.POSTCONDITION:
                found = counted(self.outcome.distinct_states or 0, "distinct state")
                return f"{said} after the search, which found {found}."
            case _:
                return self.model.description

    def _location(self) -> str:
        """The file of the model, or where what is false stands if it is no formula of states."""
        where = self.outcome.place
        return place(self.model, where) if where else near(self.model.origin)

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
            "left_out": [{"entry": one.entry, "why": one.why} for one in self.left_out],
            "problems": list(self.problems),
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
    left_out: tuple[LeftOut, ...] = (),
) -> CheckResult:
    """Hold what the engine found against what the model expects.

    `unchecked` are properties that the engine could not check in full, `left_out` entries of the
    configuration that it did not follow.
    """
    not_judged = model.expect is not None and model.expect.violated in unchecked
    open_question = not_judged and outcome.result == "holds"
    problems = () if open_question else tuple(_problems(model, outcome))
    verdict = _verdict(outcome, problems)
    partly = unchecked or any(one.judges for one in left_out)
    if verdict is Verdict.PASS and outcome.result == "holds" and partly:
        verdict = Verdict.INCONCLUSIVE
    return CheckResult(
        model, outcome, verdict, problems, seconds, jar_sha256, cached, engine, unchecked, left_out
    )


def _only_assumes(model: Model) -> bool:
    """Whether there are assumptions to check and nothing else: no behaviour has a beginning."""
    return not (model.check.specification or model.check.init)


def _verdict(outcome: EngineOutcome, problems: Sequence[str]) -> Verdict:
    if outcome.result == "error":
        return Verdict.ERROR
    if outcome.result == "timeout":
        return Verdict.INCONCLUSIVE
    return Verdict.FAIL if problems else Verdict.PASS


def _problems(model: Model, outcome: EngineOutcome) -> list[str]:
    if outcome.result == "error":
        return [f"TLC cannot evaluate it: {outcome.error}"]
    if outcome.result == "timeout":
        return [f"not finished in time ({outcome.distinct_states or 0:,} distinct states so far)"]
    if outcome.result == "not exhausted" and not outcome.generated_states:
        return ["it has no state: nothing was checked"]
    if outcome.result == "holds" and not outcome.distinct_states and not _only_assumes(model):
        return ["it has no state: nothing was checked"]
    if model.expect is None:
        broken = outcome.is_broken()
        return [broken] if outcome.result == "violated" else []
    if outcome.result != model.expect.result:
        return [_other_result(model.expect, outcome)]
    if outcome.result == "holds":
        return _other_numbers(model.expect, outcome)
    if outcome.result == "not exhausted":
        return []
    return _other_violation(model.expect, outcome)


def _other_result(expect: Expect, outcome: EngineOutcome) -> str:
    if outcome.result == "not exhausted":
        return f"no random behaviour {breaks(expect.violated)}: let it simulate more"
    if outcome.result == "holds":
        return (
            f"holds, but must {to_break(expect.violated)}: the formula or the model has lost its "
            f"teeth ({outcome.distinct_states:,} distinct states)"
        )
    broken = outcome.is_broken()
    return f"{broken}{_after(outcome)}, but the model holds"


def _after(outcome: EngineOutcome) -> str:
    """How long the counterexample is; nothing where no behaviour was looked at."""
    return f" after {counted(len(outcome.steps), 'state')}" if outcome.steps else ""


def _other_numbers(expect: Expect, outcome: EngineOutcome) -> list[str]:
    if not expect.distinct_states:
        return [
            f"has {outcome.distinct_states} distinct states; `expect.distinct_states` states none"
        ]
    problems = []
    if outcome.distinct_states != expect.distinct_states:
        problems.append(
            f"has {outcome.distinct_states} distinct states, expected {expect.distinct_states}"
        )
    if expect.generated_states and outcome.generated_states != expect.generated_states:
        problems.append(
            f"generated {outcome.generated_states} states, expected {expect.generated_states}"
        )
    return problems


def _other_violation(expect: Expect, outcome: EngineOutcome) -> list[str]:
    if outcome.violated != expect.violated:
        return [f"{outcome.breaks()}, expected {expect.violated}"]
    if outcome.kind == ViolationKind.TEMPORAL_PROPERTY:
        # TLC looks for lassos now and then while it searches: how long the first is, is chance.
        return []
    length, expected = len(outcome.steps), expect.counterexample_length
    found = f"has a counterexample of {counted(length, 'state')}"
    if not expected:
        return [f"{found}; `expect.counterexample_length` states none"]
    if length != expected:
        return [f"{found}, expected {expected}"]
    return []
