"""Stage `client`: examples with a real client, each judged; what was given is counted."""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from conformance.client.answers import WISHES, AllowedAnswers
from conformance.client.breaches import Breach
from conformance.client.clock import BEAT, LoopClock
from conformance.client.duties import KINDS, DutyKind, not_exercised
from conformance.client.example import (
    LIMITS,
    OWES_CALLBACK,
    OWES_REQUEST,
    QUIET,
    ClientKind,
    Ending,
    ExamplePlan,
    ExampleResult,
    run_example,
    silent,
)
from conformance.client.subject import JoiningClient
from conformance.deviations.table import DeclaredTable
from conformance.errors import UserError
from conformance.events import Finding, JsonValue, Progress
from conformance.judge.events import Recording
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping as Declared
from conformance.judge.verdict import Judgement
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place_of
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.printable import counted
from conformance.stages.context import Context, Outcome, stage, with_constants
from conformance.stages.findings import finding_of
from conformance.stages.overridden import with_deviations
from conformance.tla import find_tools
from conformance.verdict import Verdict, merge

__all__ = [
    "BoundVariant",
    "ClientTestRequest",
    "ExampleTally",
    "client",
    "coverage_lines",
    "run_examples",
]

STAGE = "client"
_FREE = {"FailureLimit": "-1", "MaxSize": "10", "RequestsBehind": "1000"}
"""In place of what bounds the variant's model."""
_UNDECIDED = frozenset(
    {Ending.ABSENT, Ending.RESTLESS, Ending.LIMITED, Ending.STAYED, Ending.UNJUDGED}
)
"""They say nothing of the client: the machine may have been too slow, the loop too small."""
_JUDGE_LIMITS = replace(LIMITS, seconds=10.0)
"""For the judgement of a whole example, during which no other example is served."""
_RERUNS = 2
"""A finding is seen again, or not believed."""
_LATE_S, _TRIES = 1.0, 4
"""A client may give up what it does where its coordinator is silent for longer than it meant to be.
So what it does then is no finding, and the example is tried again."""
_BEHIND_S, _BEATS = 0.2, 10
"""A loop that is later than this in so many beats gets no further example."""


@dataclass(frozen=True, slots=True)
class ClientTestRequest:
    """What is to be run."""

    command: str
    variant: str
    examples: int
    requests: int
    jobs: int
    patience: float
    numbers: tuple[int, ...] = ()
    """The examples to run, if not those from 1 on."""
    deviations: Path | None = None
    """A table of departures that the client's maker declares."""


@dataclass(slots=True)
class ExampleTally:
    """What came of the examples."""

    told: bool = False
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    endings: Counter[Ending] = field(default_factory=Counter)
    given: Counter[tuple[str, str]] = field(default_factory=Counter)
    owed: Counter[DutyKind] = field(default_factory=Counter)
    done: Counter[DutyKind] = field(default_factory=Counter)
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    events: int = 0
    static: int = 0
    once: list[str] = field(default_factory=list)
    """What was seen, and not seen again."""
    spoiled: int = 0
    """Of the inconclusive examples, those that departed, and were late, each time."""

    def add(
        self,
        result: ExampleResult,
        verdict: Verdict,
        confirmed: Sequence[Finding] = (),
        unconfirmed: Sequence[Finding] = (),
    ) -> None:
        """Count an example; findings of one key are one."""
        self.verdicts[verdict] += 1
        self.endings[result.ending] += 1
        self.given.update(result.given)
        self.owed.update(result.owed)
        self.done.update(result.done)
        self.seen.update(result.seen)
        self.events += len(result.events)
        self.static += result.subject is not None and result.subject.instance is not None
        if result.ending in _UNDECIDED:
            self.once.append(f"example {result.number}: {result.ending}: {result.detail}")
        for finding in confirmed:
            known = self.findings.get(finding.key)
            merged = finding if known is None else replace(known, count=known.count + 1)
            self.findings[finding.key] = merged
        self.once += [f"{finding.trace}: {finding.title}" for finding in unconfirmed]

    @property
    def verdict(self) -> Verdict:
        """The worst of all; inconclusive where no client had to do what an answer asks for."""
        exercised = [] if self.done else [Verdict.INCONCLUSIVE]
        return merge([*self.verdicts, *exercised])


def client(context: Context, request: ClientTestRequest) -> ExampleTally:
    """Run the examples, judge each, tell what was found, and what was exercised.

    UserError for a client that cannot be judged: it never joins, or speaks of what is not modelled.
    """
    with stage(context, STAGE, request.command, len(_numbers(request))) as outcome:
        variant = BoundVariant(context, declared_model(request))
        tally = asyncio.run(run_examples(context, request, variant))
        for finding in sorted(tally.findings.values(), key=lambda finding: -finding.count):
            context.emit(finding)
        _tell(outcome, request, tally)
    return tally


def _numbers(request: ClientTestRequest) -> Sequence[int]:
    return request.numbers or range(1, request.examples + 1)


async def run_examples(
    context: Context, request: ClientTestRequest, variant: BoundVariant
) -> ExampleTally:
    """As `client`, but tells nothing. Several runs may share a variant, side by side."""
    return await _ClientBench(context, request, variant).run(_numbers(request))


@dataclass(slots=True)
class BoundVariant:
    """The specification of a variant, bound for each kind of client that comes."""

    context: Context
    model: Model
    _kinds: dict[tuple[tuple[str, str], ...], tuple[PreparedModel, ClientKind]] = field(
        default_factory=dict
    )
    _judges: dict[tuple[int, bool], Judge] = field(default_factory=dict)

    def kind(self, subject: JoiningClient) -> ClientKind:
        """The specification of a client, and the answers that it allows."""
        return self.prepared(subject)[1]

    def prepared(self, subject: JoiningClient) -> tuple[PreparedModel, ClientKind]:
        """The same, with the model that it is of."""
        constants = subject.constants()
        key = tuple(sorted(constants.items()))
        if key not in self._kinds:
            model = with_constants(self.model, {**constants, **_FREE})
            tools = self.context.check.tools or find_tools()
            prepared = bound(model, tools, self.context.check.parser)
            kind = ClientKind(prepared.spec, AllowedAnswers(prepared.spec, subject.others))
            self._kinds[key] = prepared, kind
        return self._kinds[key]

    def judge(self, subject: JoiningClient, *, report: bool) -> Judge:
        """What judges the recordings of a client; `told`: it tells of its callbacks."""
        prepared, kind = self.prepared(subject)
        key = id(kind), report
        if key not in self._judges:
            check = prepared.model.check
            properties = [n for n in check.properties if is_safety_property(prepared.module, n)]
            declared = Declared(declared=True, silent=silent(is_told=report), limits=_JUDGE_LIMITS)
            self._judges[key] = Judge(prepared.spec, declared, check.invariants, properties)
        return self._judges[key]


@dataclass(slots=True)
class _ClientBench:
    """Examples side by side, of one command."""

    context: Context
    request: ClientTestRequest
    variant: BoundVariant
    _tally: ExampleTally = field(default_factory=ExampleTally)
    _running: int = 0
    """Examples that run now."""

    async def run(self, numbers: Sequence[int]) -> ExampleTally:
        """All examples; first a quiet one, which shows whether the client tells of callbacks."""
        plan = self._plan(self.request.requests)
        quiet = replace(plan, requests=0)
        first = await run_example(quiet, QUIET, self.variant.kind, is_told=False)
        self._tally.told = first.told
        if first.ending is Ending.LIMITED:
            self._tally.add(first, Verdict.INCONCLUSIVE)
            return self._tally
        turns, start = asyncio.Semaphore(self.request.jobs), asyncio.Lock()

        async def item(number: int) -> None:
            async with turns:
                async with start:
                    await self._in_time()
                    self._running += 1
                try:
                    await self._example(plan, number)
                finally:
                    self._running -= 1

        try:
            async with asyncio.TaskGroup() as group:
                for number in numbers:
                    group.create_task(item(number))
        except ExceptionGroup as several:  # the first of them ended the others
            raise several.exceptions[0] from None
        return self._tally

    async def _in_time(self) -> None:
        """Wait until the loop keeps up with the examples that run: one more makes it later."""
        while self._running:
            clock = LoopClock()
            for _ in range(_BEATS):
                await asyncio.sleep(BEAT)
                clock.beat()
            if clock.late_by < _BEHIND_S:
                return

    def _plan(self, requests: int) -> ExamplePlan:
        request, seed = self.request, self.context.seed
        return ExamplePlan(request.command, seed, requests, patience=request.patience)

    async def _example(self, plan: ExamplePlan, number: int) -> None:
        result, findings = await self._judged_in_time(plan, number)
        if findings and _is_late(result):
            self._tally.spoiled += 1
            self._tally.add(result, Verdict.INCONCLUSIVE)
        else:
            confirmed = await self._seen_again(plan, number, findings)
            others = [finding for finding in findings if finding.key not in confirmed]
            undecided = bool(others) or result.ending in _UNDECIDED
            verdict = Verdict.INCONCLUSIVE if undecided else Verdict.PASS
            self._tally.add(
                result, Verdict.FAIL if confirmed else verdict, list(confirmed.values()), others
            )
        done = self._tally.verdicts.total()
        self.context.emit(Progress(STAGE, done, self.request.examples, counted(done, "example")))

    async def _seen_again(
        self, plan: ExamplePlan, number: int, findings: Sequence[Finding]
    ) -> dict[str, Finding]:
        """Those that come again when the example is run again, by their keys."""
        wanted = {finding.key: finding for finding in findings}
        seen: set[str] = set()
        for _ in range(_RERUNS):
            if seen == set(wanted):
                break
            result, again = await self._judged_in_time(plan, number)
            seen |= {finding.key for finding in again if not _is_late(result)} & set(wanted)
        return {key: finding for key, finding in wanted.items() if key in seen}

    async def _judged_in_time(
        self, plan: ExamplePlan, number: int
    ) -> tuple[ExampleResult, tuple[Finding, ...]]:
        """The first run that was in time or agrees all the same; if there is none, the last."""
        for _ in range(_TRIES):
            result, findings = await self._judged(plan, number)
            if not findings or not _is_late(result):
                break
        return result, findings

    async def _judged(
        self, plan: ExamplePlan, number: int
    ) -> tuple[ExampleResult, tuple[Finding, ...]]:
        result = await run_example(plan, number, self.variant.kind, is_told=self._tally.told)
        breaches = [self._breach(result, breach) for breach in result.breaches]
        if result.subject is None or result.ending is Ending.LIMITED:
            return result, tuple(breaches)
        prepared, _ = self.variant.prepared(result.subject)
        judgement = self.variant.judge(result.subject, report=self._tally.told).judge(
            Recording(f"example {number}", result.events, f"seed {plan.seed}")
        )
        if _is_unjudged(result.ending, judgement.verdict):
            result = replace(result, ending=Ending.UNJUDGED, detail=judgement.reason)
        departure = self._finding(result, judgement, prepared)
        return result, (*breaches, *([departure] if departure else []))

    # ---- findings --------------------------------------------------------------------------

    def _breach(self, result: ExampleResult, breach: Breach) -> Finding:
        return Finding(
            key=f"{STAGE}-breach-{breach.title}",
            stage=STAGE,
            title=f"the client {breach.title}",
            message=f"{breach.rule}. What it sent: {breach.evidence}.",
            trace=f"example {result.number} (seed {self.context.seed})",
            story=tuple(_around(result.story, breach.title)),
            reproduce=self._command(result.number),
        )

    def _finding(
        self, result: ExampleResult, judgement: Judgement, prepared: PreparedModel
    ) -> Finding | None:
        """What is wrong with an example; None if nothing is."""
        wrong = result.ending not in (Ending.WHOLE, Ending.FATAL, *_UNDECIDED)
        if not wrong and judgement.verdict is not Verdict.FAIL:
            return None
        finding = finding_of(
            judgement,
            prepared.spec,
            picture=picture_of(prepared.model),
            locate=partial(place_of, prepared),
            reproduce=self._command(result.number),
        )
        title, formula = _titled(result, finding)
        return replace(
            finding,
            key=finding.key
            if result.ending is Ending.DEPARTED
            else f"{STAGE}-{result.ending.name}",
            stage=STAGE,
            title=title,
            message=_message(result, finding),
            formula=formula or finding.formula,
            story=tuple(_story(result, finding)),
        )

    def _command(self, number: int) -> str:
        request = self.request
        words = ["kconform", "client", "--command", request.command, "--variant", request.variant]
        words += ["--requests", str(request.requests), "--seed", str(self.context.seed)]
        return shlex.join([*words, "--example", str(number)])


def _is_unjudged(ending: Ending, verdict: Verdict) -> bool:
    """Whether it is not known if the specification allows what the client did.

    The example follows the client within bounds, so a departure counts if the judge shows it.
    """
    if ending is Ending.DEPARTED:
        return verdict is not Verdict.FAIL
    return ending in (Ending.WHOLE, Ending.FATAL) and verdict is Verdict.INCONCLUSIVE


def _is_late(result: ExampleResult) -> bool:
    """Whether this process was kept from what it had to do, and a client may have given up for it.

    What a client owes is counted by a clock that leaves this out. A breach is no matter of time.
    """
    departs = result.ending in (Ending.DEPARTED, Ending.DIED)
    return departs and result.late_by > _LATE_S


def variant_model(name: str) -> Model:
    """The model of a named variant of clients. UserError lists those that there are."""
    known = {model.variant: model for model in find_models(["client"]) if not model.mutant}
    if name not in known:
        raise UserError(
            f"There is no variant {name} of clients: the variants are {', '.join(sorted(known))}. "
            "docs/clients.md tells how they differ."
        )
    owes = {OWES_REQUEST: 'OwesRequest("m1")', OWES_CALLBACK: 'OwesCallback("m1")'}
    return replace(known[name], definitions={**known[name].definitions, **owes})


def declared_model(request: ClientTestRequest) -> Model:
    """The model of the variant, as the declared departures override it. UserError for others."""
    model = variant_model(request.variant)
    if request.deviations is None:
        return model
    table = DeclaredTable(request.deviations)
    if table.mended():
        raise UserError(
            f"{request.deviations}: no departure of a client is known, so that none can be claimed "
            "to be mended. Leave `mended` out."
        )
    declared = table.deviations()
    without = next((entry.id for entry in declared if not entry.overrides), None)
    if without is not None:
        raise UserError(
            f"{request.deviations}: {without} overrides no operator. A client shows requests, not "
            "states: its departures are `definitions` and `overrides` (docs/clients.md)."
        )
    return with_deviations(model, declared)


def _titled(result: ExampleResult, finding: Finding) -> tuple[str, str]:
    """A finding's title, and the formula that it breaks where one says it."""
    if result.ending is Ending.WHOLE:
        return finding.title, finding.formula
    if result.ending is not Ending.DEPARTED:
        return str(result.ending), ""
    what = result.detail.removeprefix("client: ")
    places = {
        difference.variable.partition("[")[0].partition(".")[0]
        for difference in finding.differences
    }
    if "owned" in places and "JoinGroup" in what:
        return f"{what}, and has not given up its partitions", "RevokedBeforeJoining"
    if "owned" in places and "callback" in what:
        return f"{what}, of partitions that it does not hold", "PreparedOncePerRebalance"
    return f"{what}: the specification does not allow it here", ""


def _message(result: ExampleResult, finding: Finding) -> str:
    if result.ending is Ending.DEPARTED:
        return f"{finding.message} {_instead(result)}"
    return f"{result.detail or finding.message}."


def _instead(result: ExampleResult) -> str:
    if not result.instead:
        return "The specification allows no request here."
    return f"What the specification allows the client to send: {'; '.join(result.instead)}."


_TOLD = 30
"""The last so many lines of what was said are told in any case."""


def shortened(story: Sequence[str]) -> Iterator[str]:
    """The last lines, and of those before them the ones that no later line repeats.

    The answer that decides may have been given long before: it is never left out. A line begins
    with its time, which does not make it another one.
    """
    texts = [line.partition(" s  ")[2] or line for line in story]
    last = {text: number for number, text in enumerate(texts)}
    left_out = 0
    for number, line in enumerate(story):
        if number < len(story) - _TOLD and last[texts[number]] != number:
            left_out += 1
            continue
        if left_out:
            yield f"... {counted(left_out, 'line')} that later ones repeat"
            left_out = 0
        yield line


_BEFORE_BREACH = 12


def _around(story: Sequence[str], title: str) -> Sequence[str]:
    """The lines up to the breach."""
    at = next((n for n, line in enumerate(story) if title in line), 0)
    return story[max(0, at - _BEFORE_BREACH) : at + 1]


def _story(result: ExampleResult, finding: Finding) -> Iterator[str]:
    yield from shortened(result.story)
    if result.ending is Ending.DEPARTED:
        yield _instead(result)
    why = [n for n, line in enumerate(finding.story) if line.startswith("Why not")]
    yield from finding.story[why[0] :] if why else ()
    if result.last_lines:
        yield "The client's last lines:"
        yield from (f"  {line}" for line in result.last_lines.splitlines())


# ---- what is told ------------------------------------------------------------------------------


def _tell(outcome: Outcome, request: ClientTestRequest, tally: ExampleTally) -> None:
    outcome.verdict = tally.verdict
    verdicts = tally.verdicts
    parts = [
        f"{counted(verdicts.total(), 'example')}, {counted(tally.events, 'event')}",
        f"{verdicts[Verdict.PASS]} pass, {verdicts[Verdict.FAIL]} fail, "
        f"{verdicts[Verdict.INCONCLUSIVE]} inconclusive",
        f"{tally.given.total():,} answers of {len(tally.given)} kinds",
        _duties(tally),
        f"{tally.spoiled} of these spoiled by a slow machine" if tally.spoiled else "",
        "callbacks judged" if tally.told else "no callbacks: requests alone are judged",
    ]
    outcome.summary = "; ".join(filter(None, parts))
    outcome.figures = {
        "command": request.command,
        "variant": request.variant,
        "examples": {str(verdict): count for verdict, count in verdicts.items()},
        "endings": {ending.name.lower(): count for ending, count in tally.endings.items()},
        "events": tally.events,
        "callbacks": tally.told,
        "static_members": tally.static,
        "given": _by_request(tally.given),
        "duties": {
            str(kind): {"owed": tally.owed[kind], "done": tally.done[kind]} for kind in tally.owed
        },
        "not_exercised": [str(kind) for kind in not_exercised(tally.done)],
        "seen": _requests_seen(tally),
        "never_given": {api: list(names) for api, names in _never(tally).items()},
        "seen_once": list(tally.once),
        "spoiled": tally.spoiled,
    }


def _duties(tally: ExampleTally) -> str:
    """What the verdict rests on."""
    missing = len(not_exercised(tally.done))
    if not tally.done:
        return "nothing that an answer asks for had to be done: this says nothing of the client"
    return (
        f"{tally.done.total():,} duties done, of {len(KINDS) - missing} kinds; "
        f"{missing} kinds of duty not exercised"
    )


def _requests_seen(tally: ExampleTally) -> dict[str, JsonValue]:
    return {
        api: {state: n for (of, state), n in sorted(tally.seen.items()) if of == api}
        for api in WISHES
    }


def _by_request(given: Mapping[tuple[str, str], int]) -> dict[str, JsonValue]:
    return {
        api: {outcome: count for (of, outcome), count in sorted(given.items()) if of == api}
        for api in WISHES
    }


def _never(tally: ExampleTally) -> dict[str, list[str]]:
    result = {
        api: [name for name in names if not tally.given[api, name]] for api, names in WISHES.items()
    }
    return {api: names for api, names in result.items() if names}


def coverage_lines(tally: ExampleTally) -> Iterator[str]:
    """How often each answer was given, by request; what never was."""
    for api in WISHES:
        counts = [(n, outcome) for (of, outcome), n in tally.given.items() if of == api]
        if counts:
            shown = ", ".join(f"{outcome} {n}" for n, outcome in sorted(counts, reverse=True))
            yield f"  {api:<13} {shown}"
    for api in WISHES:
        states = [f"{state} {n}" for (of, state), n in sorted(tally.seen.items()) if of == api]
        yield f"  seen          {api} while the group was: {', '.join(states) or 'never'}"
    for kind in tally.owed:
        yield f"  duty          {kind}: {tally.done[kind]} of {tally.owed[kind]} done"
    for kind in not_exercised(tally.done):
        yield f"  not exercised {kind}"
    for api, names in _never(tally).items():
        yield f"  never given   {api}: {', '.join(names)}"
    if not tally.static:
        yield "  no example had a group.instance.id: let the command take {instance} for it"
    for name in tally.once:
        yield f"  ? seen once, and not again: {name}"
